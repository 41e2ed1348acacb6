// SwiGLU (Shazeer, arXiv:2002.05202): y = silu(gate)·up, with silu(g) = g·σ(g).
// silu'(g) = σ(g)·(1 + g·(1 - σ(g))).
#pragma once
#include "kernels/common/sigmoid.h"

namespace stw::kernels::STW_ISA {

STW_INLINE F16 swiglu_form(F16 gate, F16 up) { return mul(mul(gate, sigmoid(gate)), up); }

struct SwigluGradient {
  F16 gate, up;
};
STW_INLINE SwigluGradient swiglu_gradient_form(F16 gate, F16 up, F16 dy) {
  const F16 s = sigmoid(gate), slope = mul(s, fma(gate, sub(splat(1.0f), s), splat(1.0f)));
  return {mul(mul(dy, up), slope), mul(dy, mul(gate, s))};
}

}  // namespace stw::kernels::STW_ISA
