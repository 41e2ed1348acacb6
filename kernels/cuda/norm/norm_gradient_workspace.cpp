#include "kernels/cuda/workspace.h"

#include "kernels/cuda/workspace_sizes.h"

namespace stw::kernels::cuda {

uint64_t norm_gradient_workspace(const NormArgs& args) {
  const uint64_t sums = 2 * token_tiles(args.rows, args.rows_per_sample) * static_cast<uint64_t>(args.features) * sizeof(float);
  return up(static_cast<uint64_t>(args.rows) * 8, 16) + sums + (args.biases != nullptr ? linear_bias_gradient_workspace(*args.biases) : 0);
}

}  // namespace stw::kernels::cuda
