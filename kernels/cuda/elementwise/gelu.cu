// Activations and their gradients, element by element (gelu_form.h). The lower bound is 4 bytes of memory for
// a 16-bit element, 6 for the gradient. An SM issues 128 operations a cycle. That is 25 operations an element
// in the time in which an H200 (4.8 TB/s over 132 SMs) moves 4 bytes, 35 on an H100. The tanh form takes
// about 33 operations, its gradient 42, where memory allows 37 (H200) and 53 (H100). So on an H200 arithmetic
// limits as much as memory. The forms of fast_activation.h take 11 and 20 operations. Two of these run on the
// special function unit, which does 16 a cycle, so together they take as long as 16 others. A thread has two
// groups in flight (ahead.h).
#include "kernels/common/gelu_form.h"
#include "kernels/cuda/ahead.h"
#include "kernels/cuda/elementwise/fast_activation.h"
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

// How an activation is computed: GELU by erf, by tanh or by the special function unit; the others in one way
// each.
enum class Formula { gelu_erf, gelu_tanh, gelu_special_unit, tanh, relu };
template <Formula formula>
STW_DEVICE F16 gelu_of(const F16& x) {
  if constexpr (formula == Formula::gelu_erf) return erf_form(x);
  else if constexpr (formula == Formula::gelu_tanh) return tanh_form(x);
  else if constexpr (formula == Formula::tanh) return tanh(x);
  else if constexpr (formula == Formula::relu) return relu(x);
  else return fast_gelu(x);
}
template <Formula formula>
STW_DEVICE F16 gelu_slope(const F16& x) {
  if constexpr (formula == Formula::gelu_erf) return erf_form_gradient(x);
  else if constexpr (formula == Formula::gelu_tanh) return tanh_form_gradient(x);
  else if constexpr (formula == Formula::tanh) return tanh_gradient(x);
  else if constexpr (formula == Formula::relu) return relu_gradient(x);
  else return fast_gelu_gradient(x);
}

template <class Stored>
inline constexpr Formula fast_form = takes_halves<Stored> ? Formula::gelu_special_unit : Formula::gelu_tanh;

template <class Stored, Formula formula>
static __global__ void __launch_bounds__(block_threads) gelu_kernel(GeluArgs args, bool vectors) {
  for_groups_of_grid_ahead(
      args.count, vectors,
      [&](int64_t at, auto n) { return load_group(args.x.data, Stored::of(args.x.dtype), at, n); },
      [&](const F16& x, int64_t at, auto n) {
        store_group(args.y.data, Stored::of(args.y.dtype), at, gelu_of<formula>(x), n);
      });
}

template <class Stored, Formula formula>
static __global__ void __launch_bounds__(block_threads) gelu_gradient_kernel(GeluArgs args, bool vectors) {
  struct Operands {
    F16 x, dy;
  };
  for_groups_of_grid_ahead(
      args.count, vectors,
      [&](int64_t at, auto n) {
        return Operands{load_group(args.x.data, Stored::of(args.x.dtype), at, n),
                        load_group(args.dy.data, Stored::of(args.dy.dtype), at, n)};
      },
      [&](const Operands& o, int64_t at, auto n) {
        store_group(args.y.data, Stored::of(args.y.dtype), at, mul(o.dy, gelu_slope<formula>(o.x)), n);
      });
}

template <class Kernel>
static Kernel* kernel_of(const GeluArgs& args, Kernel* erf, Kernel* by_tanh, Kernel* tanh, Kernel* relu) {
  switch (args.activation) {
    case Activation::gelu_tanh: return by_tanh;
    case Activation::gelu_erf: return erf;
    case Activation::tanh: return tanh;
    case Activation::relu: break;
  }
  return relu;
}

void gelu(const Launch& l, const GeluArgs& args) {
  const bool fast = is_fast(args);
  const bool vectors = vectors_at(args.x.data, args.x.dtype) && vectors_at(args.y.data, args.y.dtype);
  for_dtypes({args.x.dtype, args.y.dtype}, [&](auto stored) {
    using Stored = decltype(stored);
    launch(l,
           kernel_of(args, gelu_kernel<Stored, Formula::gelu_erf>,
                     fast ? gelu_kernel<Stored, fast_form<Stored>> : gelu_kernel<Stored, Formula::gelu_tanh>,
                     gelu_kernel<Stored, Formula::tanh>, gelu_kernel<Stored, Formula::relu>),
           blocks_for_ahead(args.count), block_threads, 0, args, vectors);
  });
}

void gelu_gradient(const Launch& l, const GeluArgs& args) {
  const bool fast = is_fast(args);
  const bool vectors = vectors_at(args.x.data, args.x.dtype) && vectors_at(args.dy.data, args.dy.dtype) &&
                       vectors_at(args.y.data, args.y.dtype);
  for_dtypes({args.x.dtype, args.dy.dtype, args.y.dtype}, [&](auto stored) {
    using Stored = decltype(stored);
    launch(
        l,
        kernel_of(args, gelu_gradient_kernel<Stored, Formula::gelu_erf>,
                  fast ? gelu_gradient_kernel<Stored, fast_form<Stored>>
                       : gelu_gradient_kernel<Stored, Formula::gelu_tanh>,
                  gelu_gradient_kernel<Stored, Formula::tanh>, gelu_gradient_kernel<Stored, Formula::relu>),
        blocks_for_ahead(args.count), block_threads, 0, args, vectors);
  });
}

}  // namespace stw::kernels::cuda
