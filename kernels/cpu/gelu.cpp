// GELU and its gradient, element by element (gelu_form.h has the formulas).
#include "kernels/common/gelu_form.h"
#include "kernels/cpu/kernels_isa.h"

namespace stw::kernels::STW_ISA {

void gelu(const Launch& launch, const GeluArgs& args) {
  const bool use_tanh = args.activation == Activation::gelu_tanh;
  for_elements(launch, args.count, [&](int64_t begin, int64_t end) {
    for_groups(begin, end, [&](int64_t at, int64_t n) {
      F16 x = load_group(args.x.data, args.x.dtype, at, n);
      store_group(args.y.data, args.y.dtype, at, use_tanh ? tanh_form(x) : erf_form(x), n);
    });
  });
}

void gelu_gradient(const Launch& launch, const GeluArgs& args) {
  const bool use_tanh = args.activation == Activation::gelu_tanh;
  for_elements(launch, args.count, [&](int64_t begin, int64_t end) {
    for_groups(begin, end, [&](int64_t at, int64_t n) {
      F16 x = load_group(args.x.data, args.x.dtype, at, n), dy = load_group(args.dy.data, args.dy.dtype, at, n);
      F16 slope = use_tanh ? tanh_form_gradient(x) : erf_form_gradient(x);
      store_group(args.y.data, args.y.dtype, at, mul(dy, slope), n);
    });
  });
}

}  // namespace stw::kernels::STW_ISA
