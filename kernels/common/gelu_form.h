// GELU (Hendrycks and Gimpel, arXiv:1606.08415) and its derivative.
//   gelu_tanh: x·(1 + tanh(√(2/π)(x + 0.044715x³)))/2, as in GPT-2. It is computed as x·σ(2√(2/π)(x +
//              0.044715x³)), the same function, which does not cancel for negative x.
//   gelu_erf:  x·(1 + erf(x/√2))/2
// The activations of classification heads are here too: tanh, with the derivative 1 - tanh², and ReLU, with
// the derivative 0 at 0.
#pragma once
#include "kernels/common/sigmoid.h"

namespace stw::kernels::STW_ISA {

inline constexpr float linear_term = 1.5957691216057308f;  // 2√(2/π)
inline constexpr float cubic_term = 0.07135481282816626f;  // 0.044715 · 2√(2/π)
inline constexpr float half_root = 0.7071067811865476f;    // 1/√2
inline constexpr float density = 0.3989422804014327f;      // 1/√(2π)

STW_INLINE F16 tanh_form(F16 x) {
  F16 slope = fma(mul(x, x), splat(-cubic_term), splat(-linear_term));
  return mul(x, falling_sigmoid(mul(x, slope)));
}
STW_INLINE F16 tanh_form_gradient(F16 x) {
  // Beyond these limits, the derivative is 0 or 1. x² stays finite, and NaN stays NaN.
  x = minimum(splat(30.0f), maximum(splat(-30.0f), x));
  F16 square = mul(x, x);
  F16 s = falling_sigmoid(mul(x, fma(square, splat(-cubic_term), splat(-linear_term))));
  F16 inner = mul(x, fma(square, splat(3.0f * cubic_term), splat(linear_term)));
  return fma(mul(s, sub(splat(1.0f), s)), inner, s);
}

STW_INLINE F16 normal_distribution(F16 x) {
  return fma(erf(mul(x, splat(half_root))), splat(0.5f), splat(0.5f));
}
STW_INLINE F16 erf_form(F16 x) { return mul(x, normal_distribution(x)); }
STW_INLINE F16 erf_form_gradient(F16 x) {
  F16 bell = mul(exp(mul(mul(x, x), splat(-0.5f))), splat(density));
  return fma(x, bell, normal_distribution(x));
}

STW_INLINE F16 tanh_gradient(F16 x) {
  F16 y = tanh(x);
  return fma(sub(zero(), y), y, splat(1.0f));
}
// NaN stays NaN.
STW_INLINE F16 relu(F16 x) { return select_less(x, zero(), zero(), x); }
STW_INLINE F16 relu_gradient(F16 x) {
  return select_less(zero(), x, splat(1.0f), select_less(x, splat(1.0f), zero(), x));
}

}  // namespace stw::kernels::STW_ISA
