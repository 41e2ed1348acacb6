// y = a + b, the residual connection. Bound by memory: each operand is read once, y may be either.
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

static __global__ void __launch_bounds__(block_threads) add_kernel(AddArgs args) {
  for_groups_of_grid(args.count, [&](int64_t at, int64_t n) {
    const F16 a = load_group(args.a.data, args.a.dtype, at, n), b = load_group(args.b.data, args.b.dtype, at, n);
    store_group(args.y.data, args.y.dtype, at, add(a, b), n);
  });
}

void add(const Launch& l, const AddArgs& args) {
  launch(l, add_kernel, blocks_for_elements(args.count), block_threads, 0, args);
}

}  // namespace stw::kernels::cuda
