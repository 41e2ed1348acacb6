// GELU and its gradient, element by element (gelu_form.h). Floor: 4 bytes an element of 16 bits, 6 the gradient. An SM issues 128
// operations a cycle, 25 an element in the time that an H200 (4.8 TB/s over 132 SMs) moves 4 bytes, 35 on an H100; tanh's form is about
// 33 here, its gradient 42 of 37 and 53. So on the one arithmetic is as much of the limit as memory. In fast_activation.h they are 11 and
// 20, two of them the special function unit's, which takes 16 a cycle: 16 operations' time. Two groups are under way a thread (ahead.h).
#include "kernels/common/gelu_form.h"
#include "kernels/cuda/ahead.h"
#include "kernels/cuda/fast_activation.h"
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

enum class GeluBy { erf, tanh, special_unit };
template <GeluBy by>
STW_DEVICE F16 gelu_of(const F16& x) {
  if constexpr (by == GeluBy::erf) return erf_form(x);
  else if constexpr (by == GeluBy::tanh) return tanh_form(x);
  else return fast_gelu(x);
}
template <GeluBy by>
STW_DEVICE F16 gelu_slope(const F16& x) {
  if constexpr (by == GeluBy::erf) return erf_form_gradient(x);
  else if constexpr (by == GeluBy::tanh) return tanh_form_gradient(x);
  else return fast_gelu_gradient(x);
}

template <class Stored> inline constexpr GeluBy fast_way = takes_halves<Stored> ? GeluBy::special_unit : GeluBy::tanh;

template <class Stored, GeluBy by>
static __global__ void __launch_bounds__(block_threads) gelu_kernel(GeluArgs args, bool vectors) {
  for_groups_of_grid_ahead(args.count, vectors,
    [&](int64_t at, auto n) { return load_group(args.x.data, Stored::of(args.x.dtype), at, n); },
    [&](const F16& x, int64_t at, auto n) {
      store_group(args.y.data, Stored::of(args.y.dtype), at, gelu_of<by>(x), n);
    });
}

template <class Stored, GeluBy by>
static __global__ void __launch_bounds__(block_threads) gelu_gradient_kernel(GeluArgs args, bool vectors) {
  struct Operands { F16 x, dy; };
  for_groups_of_grid_ahead(args.count, vectors,
    [&](int64_t at, auto n) {
      return Operands{load_group(args.x.data, Stored::of(args.x.dtype), at, n), load_group(args.dy.data, Stored::of(args.dy.dtype), at, n)};
    },
    [&](const Operands& o, int64_t at, auto n) {
      store_group(args.y.data, Stored::of(args.y.dtype), at, mul(o.dy, gelu_slope<by>(o.x)), n);
    });
}

void gelu(const Launch& l, const GeluArgs& args) {
  const bool use_erf = args.activation == Activation::gelu_erf, fast = is_fast(args);
  const bool vectors = vectors_at(args.x.data, args.x.dtype) && vectors_at(args.y.data, args.y.dtype);
  for_dtypes({args.x.dtype, args.y.dtype}, [&](auto stored) {
    using Stored = decltype(stored);
    launch(l, use_erf ? gelu_kernel<Stored, GeluBy::erf> : fast ? gelu_kernel<Stored, fast_way<Stored>> : gelu_kernel<Stored, GeluBy::tanh>,
           blocks_for_ahead(args.count), block_threads, 0, args, vectors);
  });
}

void gelu_gradient(const Launch& l, const GeluArgs& args) {
  const bool use_erf = args.activation == Activation::gelu_erf, fast = is_fast(args);
  const bool vectors = vectors_at(args.x.data, args.x.dtype) && vectors_at(args.dy.data, args.dy.dtype) && vectors_at(args.y.data, args.y.dtype);
  for_dtypes({args.x.dtype, args.dy.dtype, args.y.dtype}, [&](auto stored) {
    using Stored = decltype(stored);
    launch(l, use_erf ? gelu_gradient_kernel<Stored, GeluBy::erf> : fast ? gelu_gradient_kernel<Stored, fast_way<Stored>> : gelu_gradient_kernel<Stored, GeluBy::tanh>,
           blocks_for_ahead(args.count), block_threads, 0, args, vectors);
  });
}

}  // namespace stw::kernels::cuda
