// Scratch memory of the linear kernels: one product's panels a thread, and an fp32 tile where the output has 16 bits.
#include "kernels/cpu/product/linear_tiles.h"

namespace stw::kernels {

uint64_t linear_workspace(const LinearArgs& args, int threads) {
  return for_threads(linear_grid(args, threads), threads);
}

uint64_t linear_input_gradient_workspace(const LinearArgs& args, int threads) {
  return for_threads(input_gradient_grid(args, threads), threads);
}

uint64_t linear_weight_gradient_workspace(const LinearArgs& args, int threads) {
  return most_for_trained_parts(args, threads, [&](int64_t features) { return weight_gradient_grid(args, features, threads); });
}

uint64_t linear_bias_gradient_workspace(const LinearArgs&, int) { return 0; }

}  // namespace stw::kernels
