// Scratch memory of the kernels of adapters: one product's panels a thread, and an fp32 tile where the output has 16 bits.
#include "kernels/cpu/adapter_tiles.h"

namespace stw::kernels {

uint64_t adapter_workspace(const AdapterArgs& args, int threads) { return for_threads(adapter_grid(args, threads), threads); }

uint64_t adapter_input_gradient_workspace(const AdapterArgs& args, int threads) {
  return for_threads(adapter_input_gradient_grid(args, threads), threads);
}

uint64_t adapter_weight_gradient_workspace(const AdapterArgs& args, int threads) {
  uint64_t largest = 0;
  for (int i = 0; i < args.parts; ++i) {
    if (args.part[i].weight_gradient == nullptr) continue;
    const uint64_t bytes = for_threads(adapter_weight_gradient_grid(args, args.part[i].features, threads), threads);
    if (bytes > largest) largest = bytes;
  }
  return largest;
}

}  // namespace stw::kernels
