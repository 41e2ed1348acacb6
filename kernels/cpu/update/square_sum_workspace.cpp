// One fp32 sum a chunk of 4096 elements.
#include "kernels/contract/kernels.h"

namespace stw::kernels {

uint64_t square_sum_workspace(const List<SquareSumArgs>& args, int) {
  uint64_t chunks = 0;
  for (int i = 0; i < args.count; ++i) chunks += ((uint64_t)args.first[i].count + 4095) / 4096;
  return chunks * sizeof(float);
}

}  // namespace stw::kernels
