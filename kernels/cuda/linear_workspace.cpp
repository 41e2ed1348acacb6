// The products keep everything in registers and shared memory; only the tiles of the bias's gradient need scratch memory.
#include "kernels/cuda/workspace.h"

#include "kernels/cuda/workspace_sizes.h"

namespace stw::kernels::cuda {

uint64_t linear_workspace(const LinearArgs&) { return 0; }
uint64_t linear_input_gradient_workspace(const LinearArgs&) { return 0; }
uint64_t linear_weight_gradient_workspace(const LinearArgs&) { return 0; }

uint64_t linear_bias_gradient_workspace(const LinearArgs& args) {
  uint64_t widest = 0;
  for (int i = 0; i < args.parts; ++i) {
    const auto features = static_cast<uint64_t>(args.part[i].bias_gradient != nullptr ? args.part[i].features : 0);
    if (features > widest) widest = features;
  }
  return token_tiles(args.rows, args.rows_per_sample) * widest * sizeof(float);
}

}  // namespace stw::kernels::cuda
