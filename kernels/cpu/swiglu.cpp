// SwiGLU and GeGLU and their gradients (swiglu_form.h, geglu_form.h). Gate and up lie side by side in a row, as the one product that makes them
// leaves them.
#include "kernels/common/geglu_form.h"
#include "kernels/cpu/kernels_isa.h"

namespace stw::kernels::STW_ISA {

void swiglu(const Launch& launch, const SwigluArgs& args) {
  const int64_t features = args.features;
  const bool by_gelu = args.gate == Gate::gelu_tanh;
  for_rows(launch, args.rows, features, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for_groups(0, features, [&](int64_t i, int64_t n) {
        F16 gate = load_group(args.x.data, args.x.dtype, row * 2 * features + i, n);
        F16 up = load_group(args.x.data, args.x.dtype, row * 2 * features + features + i, n);
        store_group(args.y.data, args.y.dtype, row * features + i, by_gelu ? geglu_form(gate, up) : swiglu_form(gate, up), n);
      });
    }
  });
}

void swiglu_gradient(const Launch& launch, const SwigluArgs& args) {
  const int64_t features = args.features;
  const bool by_gelu = args.gate == Gate::gelu_tanh;
  for_rows(launch, args.rows, features, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t gate_at = row * 2 * features, up_at = gate_at + features;
      for_groups(0, features, [&](int64_t i, int64_t n) {
        F16 gate = load_group(args.x.data, args.x.dtype, gate_at + i, n);
        F16 up = load_group(args.x.data, args.x.dtype, up_at + i, n);
        F16 dy = load_group(args.dy.data, args.dy.dtype, row * features + i, n);
        const SwigluGradient dx = by_gelu ? geglu_gradient_form(gate, up, dy) : swiglu_gradient_form(gate, up, dy);
        store_group(args.y.data, args.y.dtype, gate_at + i, dx.gate, n);
        store_group(args.y.data, args.y.dtype, up_at + i, dx.up, n);
      });
    }
  });
}

}  // namespace stw::kernels::STW_ISA
