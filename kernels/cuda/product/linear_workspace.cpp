// The products keep everything in registers and shared memory; only the tiles of biases' gradients need scratch memory.
#include "kernels/cuda/workspace.h"

#include "kernels/cuda/workspace_sizes.h"

namespace stw::kernels::cuda {

uint64_t linear_workspace(const LinearArgs&) { return 0; }
uint64_t linear_input_gradient_workspace(const LinearArgs& args) {
  return args.input_bias_gradient != nullptr ? linear_bias_gradient_workspace(input_bias_args(args)) : 0;
}
uint64_t linear_weight_gradient_workspace(const LinearArgs&) { return 0; }

uint64_t linear_bias_gradient_workspace(const LinearArgs& args) {
  uint64_t features = 0;
  for (int i = 0; i < args.parts; ++i) features += static_cast<uint64_t>(args.part[i].bias_gradient != nullptr && args.tile_sums == nullptr ? args.part[i].features : 0);
  const uint64_t further = args.further != nullptr ? linear_bias_gradient_workspace(*args.further) : 0;
  return token_tiles(args.rows, args.rows_per_sample) * features * sizeof(float) + further;
}

}  // namespace stw::kernels::cuda
