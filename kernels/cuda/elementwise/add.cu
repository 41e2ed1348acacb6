// y = a + b, the residual connection. Bound by memory: each operand is read once. y may be either operand. A
// thread has two groups of both in flight: 64 bytes of fp32, 32 of bf16 (ahead.h).
#include "kernels/cuda/ahead.h"
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

template <class Stored>
static __global__ void __launch_bounds__(block_threads) add_kernel(AddArgs args, bool vectors) {
  struct Terms {
    F16 a, b;
  };
  for_groups_of_grid_ahead(
      args.count, vectors,
      [&](int64_t at, auto n) {
        return Terms{load_group(args.a.data, Stored::of(args.a.dtype), at, n),
                     load_group(args.b.data, Stored::of(args.b.dtype), at, n)};
      },
      [&](const Terms& t, int64_t at, auto n) {
        store_group(args.y.data, Stored::of(args.y.dtype), at, add(t.a, t.b), n);
      });
}

void add(const Launch& l, const AddArgs& args) {
  const bool vectors = vectors_at(args.a.data, args.a.dtype) && vectors_at(args.b.data, args.b.dtype) &&
                       vectors_at(args.y.data, args.y.dtype);
  for_dtypes({args.a.dtype, args.b.dtype, args.y.dtype}, [&](auto stored) {
    launch(l, add_kernel<decltype(stored)>, blocks_for_ahead(args.count), block_threads, 0, args, vectors);
  });
}

}  // namespace stw::kernels::cuda
