// Scratch memory of the kernels of adapters: one product's panels a thread, and an fp32 tile where the output has 16 bits.
#include "kernels/cpu/product/adapter_tiles.h"

namespace stw::kernels {

uint64_t adapter_workspace(const AdapterArgs& args, int threads) { return for_threads(adapter_grid(args, threads), threads); }

uint64_t adapter_input_gradient_workspace(const AdapterArgs& args, int threads) {
  return for_threads(adapter_input_gradient_grid(args, threads), threads);
}

uint64_t adapter_weight_gradient_workspace(const AdapterArgs& args, int threads) {
  return most_for_trained_parts(args, threads, [&](int64_t features) { return adapter_weight_gradient_grid(args, features, threads); });
}

}  // namespace stw::kernels
