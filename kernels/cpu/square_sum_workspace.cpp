// One fp32 sum a chunk of 4096 elements.
#include "kernels/kernels.h"

namespace stw::kernels {

uint64_t square_sum_workspace(const SquareSumArgs& args, int) {
  return ((uint64_t)args.count + 4095) / 4096 * sizeof(float);
}

}  // namespace stw::kernels
