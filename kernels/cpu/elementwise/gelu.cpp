// Activations and their gradients, element by element. gelu_form.h has the formulas.
#include "kernels/common/gelu_form.h"
#include "kernels/cpu/kernels_isa.h"

namespace stw::kernels::STW_ISA {

namespace {

F16 value_of(Activation activation, F16 x) {
  switch (activation) {
    case Activation::gelu_tanh: return tanh_form(x);
    case Activation::gelu_erf: return erf_form(x);
    case Activation::tanh: return tanh(x);
    case Activation::relu: break;
  }
  return relu(x);
}

F16 slope_of(Activation activation, F16 x) {
  switch (activation) {
    case Activation::gelu_tanh: return tanh_form_gradient(x);
    case Activation::gelu_erf: return erf_form_gradient(x);
    case Activation::tanh: return tanh_gradient(x);
    case Activation::relu: break;
  }
  return relu_gradient(x);
}

}  // namespace

void gelu(const Launch& launch, const GeluArgs& args) {
  for_elements(launch, args.count, [&](int64_t begin, int64_t end) {
    for_groups(begin, end, [&](int64_t at, int64_t n) {
      F16 x = load_group(args.x.data, args.x.dtype, at, n);
      store_group(args.y.data, args.y.dtype, at, value_of(args.activation, x), n);
    });
  });
}

void gelu_gradient(const Launch& launch, const GeluArgs& args) {
  for_elements(launch, args.count, [&](int64_t begin, int64_t end) {
    for_groups(begin, end, [&](int64_t at, int64_t n) {
      F16 x = load_group(args.x.data, args.x.dtype, at, n),
          dy = load_group(args.dy.data, args.dy.dtype, at, n);
      store_group(args.y.data, args.y.dtype, at, mul(dy, slope_of(args.activation, x)), n);
    });
  });
}

}  // namespace stw::kernels::STW_ISA
