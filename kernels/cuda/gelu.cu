// GELU and its gradient, element by element (gelu_form.h). Floor: 4 bytes an element of 16 bits, 6 the gradient. An SM issues 128
// operations a cycle, 25 an element in the time that an H200 (4.8 TB/s over 132 SMs) moves 4 bytes, 35 on an H100; tanh's form is about
// 33 here, its gradient 42 of 37 and 53. So on the one arithmetic is as much of the limit as memory. Two groups are under way a thread
// (ahead.h).
#include "kernels/common/gelu_form.h"
#include "kernels/cuda/ahead.h"
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

template <class Stored, bool use_tanh>
static __global__ void __launch_bounds__(block_threads) gelu_kernel(GeluArgs args, bool vectors) {
  for_groups_of_grid_ahead(args.count, vectors,
    [&](int64_t at, auto n) { return load_group(args.x.data, Stored::of(args.x.dtype), at, n); },
    [&](const F16& x, int64_t at, auto n) {
      store_group(args.y.data, Stored::of(args.y.dtype), at, use_tanh ? tanh_form(x) : erf_form(x), n);
    });
}

template <class Stored, bool use_tanh>
static __global__ void __launch_bounds__(block_threads) gelu_gradient_kernel(GeluArgs args, bool vectors) {
  struct Operands { F16 x, dy; };
  for_groups_of_grid_ahead(args.count, vectors,
    [&](int64_t at, auto n) {
      return Operands{load_group(args.x.data, Stored::of(args.x.dtype), at, n), load_group(args.dy.data, Stored::of(args.dy.dtype), at, n)};
    },
    [&](const Operands& o, int64_t at, auto n) {
      store_group(args.y.data, Stored::of(args.y.dtype), at, mul(o.dy, use_tanh ? tanh_form_gradient(o.x) : erf_form_gradient(o.x)), n);
    });
}

void gelu(const Launch& l, const GeluArgs& args) {
  const bool use_tanh = args.activation == Activation::gelu_tanh;
  const bool vectors = vectors_at(args.x.data, args.x.dtype) && vectors_at(args.y.data, args.y.dtype);
  for_dtypes({args.x.dtype, args.y.dtype}, [&](auto stored) {
    using Stored = decltype(stored);
    launch(l, use_tanh ? gelu_kernel<Stored, true> : gelu_kernel<Stored, false>, blocks_for_ahead(args.count), block_threads, 0, args, vectors);
  });
}

void gelu_gradient(const Launch& l, const GeluArgs& args) {
  const bool use_tanh = args.activation == Activation::gelu_tanh;
  const bool vectors = vectors_at(args.x.data, args.x.dtype) && vectors_at(args.dy.data, args.dy.dtype) && vectors_at(args.y.data, args.y.dtype);
  for_dtypes({args.x.dtype, args.dy.dtype, args.y.dtype}, [&](auto stored) {
    using Stored = decltype(stored);
    launch(l, use_tanh ? gelu_gradient_kernel<Stored, true> : gelu_gradient_kernel<Stored, false>, blocks_for_ahead(args.count), block_threads,
           0, args, vectors);
  });
}

}  // namespace stw::kernels::cuda
