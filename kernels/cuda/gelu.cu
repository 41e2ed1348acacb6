// GELU and its gradient, element by element (gelu_form.h). Bound by memory in 16 bits too: about 40 operations an element
// against 4 to 6 bytes.
#include "kernels/common/gelu_form.h"
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

template <DType dtype, bool use_tanh>
static __global__ void __launch_bounds__(block_threads) gelu_kernel(GeluArgs args) {
  for_groups_of_grid(args.count, [&](int64_t at, int64_t n) {
    const F16 x = load_group(args.x.data, dtype, at, n);
    store_group(args.y.data, args.y.dtype, at, use_tanh ? tanh_form(x) : erf_form(x), n);
  });
}

template <DType dtype, bool use_tanh>
static __global__ void __launch_bounds__(block_threads) gelu_gradient_kernel(GeluArgs args) {
  for_groups_of_grid(args.count, [&](int64_t at, int64_t n) {
    const F16 x = load_group(args.x.data, dtype, at, n), dy = load_group(args.dy.data, args.dy.dtype, at, n);
    store_group(args.y.data, args.y.dtype, at, mul(dy, use_tanh ? tanh_form_gradient(x) : erf_form_gradient(x)), n);
  });
}

void gelu(const Launch& l, const GeluArgs& args) {
  for_dtype(args.x.dtype, [&](auto stored) {
    const bool use_tanh = args.activation == Activation::gelu_tanh;
    launch(l, use_tanh ? gelu_kernel<stored.dtype, true> : gelu_kernel<stored.dtype, false>,
           blocks_for_elements(args.count), block_threads, 0, args);
  });
}

void gelu_gradient(const Launch& l, const GeluArgs& args) {
  for_dtype(args.x.dtype, [&](auto stored) {
    const bool use_tanh = args.activation == Activation::gelu_tanh;
    launch(l, use_tanh ? gelu_gradient_kernel<stored.dtype, true> : gelu_gradient_kernel<stored.dtype, false>,
           blocks_for_elements(args.count), block_threads, 0, args);
  });
}

}  // namespace stw::kernels::cuda
