// SwiGLU, GeGLU and their gradients (swiglu_form.h, geglu_form.h). A row holds the gate, then the up
// projection: a single product computes both and stores them in this order.
#include "kernels/common/geglu_form.h"
#include "kernels/cpu/kernels_isa.h"

namespace stw::kernels::STW_ISA {

namespace {

F16 gated(Gate by, F16 gate, F16 up) {
  switch (by) {
    case Gate::silu: break;
    case Gate::gelu_tanh: return geglu_form(gate, up);
    case Gate::gelu_erf: return geglu_erf_form(gate, up);
  }
  return swiglu_form(gate, up);
}

SwigluGradient gated_gradient(Gate by, F16 gate, F16 up, F16 dy) {
  switch (by) {
    case Gate::silu: break;
    case Gate::gelu_tanh: return geglu_gradient_form(gate, up, dy);
    case Gate::gelu_erf: return geglu_erf_gradient_form(gate, up, dy);
  }
  return swiglu_gradient_form(gate, up, dy);
}

}  // namespace

void swiglu(const Launch& launch, const SwigluArgs& args) {
  const int64_t features = args.features;
  for_rows(launch, args.rows, features, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for_groups(0, features, [&](int64_t i, int64_t n) {
        F16 gate = load_group(args.x.data, args.x.dtype, row * 2 * features + i, n);
        F16 up = load_group(args.x.data, args.x.dtype, row * 2 * features + features + i, n);
        store_group(args.y.data, args.y.dtype, row * features + i, gated(args.gate, gate, up), n);
      });
    }
  });
}

void swiglu_gradient(const Launch& launch, const SwigluArgs& args) {
  const int64_t features = args.features;
  for_rows(launch, args.rows, features, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t gate_at = row * 2 * features, up_at = gate_at + features;
      for_groups(0, features, [&](int64_t i, int64_t n) {
        F16 gate = load_group(args.x.data, args.x.dtype, gate_at + i, n);
        F16 up = load_group(args.x.data, args.x.dtype, up_at + i, n);
        F16 dy = load_group(args.dy.data, args.dy.dtype, row * features + i, n);
        const SwigluGradient dx = gated_gradient(args.gate, gate, up, dy);
        store_group(args.y.data, args.y.dtype, gate_at + i, dx.gate, n);
        store_group(args.y.data, args.y.dtype, up_at + i, dx.up, n);
      });
    }
  });
}

}  // namespace stw::kernels::STW_ISA
