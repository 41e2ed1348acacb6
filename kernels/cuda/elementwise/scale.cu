// y = factor·x, for the narrow activations of adapters. Bound by memory: x is read once. y may be x. A thread
// has two groups in flight (ahead.h).
#include "kernels/cuda/ahead.h"
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

template <class Stored>
static __global__ void __launch_bounds__(block_threads) scale_kernel(ScaleArgs args, bool vectors) {
  for_groups_of_grid_ahead(
      args.count, vectors,
      [&](int64_t at, auto n) { return load_group(args.x.data, Stored::of(args.x.dtype), at, n); },
      [&](const F16& x, int64_t at, auto n) {
        store_group(args.y.data, Stored::of(args.y.dtype), at, mul(x, splat(args.factor)), n);
      });
}

void scale(const Launch& l, const ScaleArgs& args) {
  const bool vectors = vectors_at(args.x.data, args.x.dtype) && vectors_at(args.y.data, args.y.dtype);
  for_dtypes({args.x.dtype, args.y.dtype}, [&](auto stored) {
    launch(l, scale_kernel<decltype(stored)>, blocks_for_ahead(args.count), block_threads, 0, args, vectors);
  });
}

}  // namespace stw::kernels::cuda
