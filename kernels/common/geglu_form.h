// GeGLU (Shazeer, arXiv:2002.05202): y = gelu(gate)·up, with GELU by tanh (Gemma) or by erf (ModernBERT);
// gelu_form.h.
#pragma once
#include "kernels/common/gelu_form.h"
#include "kernels/common/swiglu_form.h"

namespace stw::kernels::STW_ISA {

STW_INLINE F16 geglu_form(F16 gate, F16 up) { return mul(tanh_form(gate), up); }
STW_INLINE SwigluGradient geglu_gradient_form(F16 gate, F16 up, F16 dy) {
  return {mul(mul(dy, up), tanh_form_gradient(gate)), mul(dy, tanh_form(gate))};
}
STW_INLINE F16 geglu_erf_form(F16 gate, F16 up) { return mul(erf_form(gate), up); }
STW_INLINE SwigluGradient geglu_erf_gradient_form(F16 gate, F16 up, F16 dy) {
  return {mul(mul(dy, up), erf_form_gradient(gate)), mul(dy, erf_form(gate))};
}

}  // namespace stw::kernels::STW_ISA
