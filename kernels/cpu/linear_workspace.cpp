// Scratch memory of the linear kernels: one product's panels a thread, and an fp32 tile where the output has 16 bits.
#include "kernels/cpu/linear_tiles.h"

namespace stw::kernels {

uint64_t linear_workspace(const LinearArgs& args, int threads) {
  return for_threads(linear_grid(args, threads), threads);
}

uint64_t linear_input_gradient_workspace(const LinearArgs& args, int threads) {
  return for_threads(input_gradient_grid(args, threads), threads);
}

uint64_t linear_weight_gradient_workspace(const LinearArgs& args, int threads) {
  uint64_t largest = 0;
  for (int i = 0; i < args.parts; ++i) {
    if (args.part[i].weight_gradient == nullptr) continue;
    const uint64_t bytes = for_threads(weight_gradient_grid(args, args.part[i].features, threads), threads);
    if (bytes > largest) largest = bytes;
  }
  return largest;
}

uint64_t linear_bias_gradient_workspace(const LinearArgs&, int) { return 0; }

}  // namespace stw::kernels
