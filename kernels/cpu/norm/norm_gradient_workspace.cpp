// Mean and reciprocal deviation of every row, 8 bytes, between the two passes of norm_gradient.
#include "kernels/contract/kernels.h"

namespace stw::kernels {

uint64_t norm_gradient_workspace(const NormArgs& args, int) { return (uint64_t)args.rows * 8; }

}  // namespace stw::kernels
