// Our own exp, log, tanh and erf, because the last bits of a library's functions differ between machines
// (contract E4).
//
// Every function is a fixed sequence of lane-wise operations, so the bits of a lane depend on that lane
// alone. The scalar forms (exp1, …) put the argument into all lanes. The polynomials minimise the largest
// relative error of the function; they were found by Remez exchange in 40-digit arithmetic and rounded to
// fp32. NaN gives NaN. tests/kernels/math_test.cpp checks the accuracy.
#pragma once
#include "kernels/lanes/lanes.h"

namespace stw::kernels::STW_ISA {

inline constexpr float infinity = __builtin_inff();

#if !defined(STW_ISA_CUDA)  // On CUDA, gpu_lanes.h defines these functions.
// x · 2^(n - 1).
STW_INLINE F16 scale_by_power_below(F16 x, F16 n) { return scale_by_power(x, sub(n, splat(1.0f))); }
STW_INLINE F16 inverse(F16 x) { return div(splat(1.0f), x); }  // x is at least 1.
#endif

// e^x / 2, within 1 ulp if x >= -86.6433868. For smaller x, the result is at most 2^-126.
STW_INLINE F16 half_of_exp(F16 x) {
  F16 clamped = minimum(splat(89.0f), maximum(splat(-87.0f), x));
  F16 n = round_even(mul(clamped, splat(1.44269504f)));
  F16 r = fma(n, splat(-0.693145752f), clamped);  // ln 2 = 0x1.62e4p-1 (its product with n is exact) + rest.
  r = fma(n, splat(-1.42860677e-6f), r);
  F16 p = splat(0.00138146966f);
  p = fma(p, r, splat(0.00836877339f));
  p = fma(p, r, splat(0.041668389f));
  p = fma(p, r, splat(0.166665196f));
  p = fma(p, r, splat(0.49999994f));
  p = fma(mul(r, r), p, r);
  p = add(p, splat(1.0f));
  return scale_by_power_below(p, n);  // 2^n may be 2^128, which is no float.
}
// Within 1 ulp. Results below 2^-125 are flushed to 0: subnormal numbers are slow, and no kernel needs them.
STW_INLINE F16 exp(F16 x) {
  const F16 half = half_of_exp(x);
  return select_less(x, splat(-86.6433868f), zero(), add(half, half));
}

// Within 1 ulp. -inf at ±0, NaN below 0.
STW_INLINE F16 log(F16 x) {
  F16 smallest_normal = splat(1.17549435e-38f);
  F16 normal = select_less(x, smallest_normal, mul(x, splat(8388608.0f)), x);
  F16 exponent;
  F16 f = sub(split_exponent(normal, &exponent), splat(1.0f));
  exponent = sub(exponent, select_less(x, smallest_normal, splat(23.0f), zero()));
  F16 p = splat(0.120086744f);
  p = fma(p, f, splat(-0.128460348f));
  p = fma(p, f, splat(0.10753905f));
  p = fma(p, f, splat(-0.121956199f));
  p = fma(p, f, splat(0.1430448f));
  p = fma(p, f, splat(-0.16679585f));
  p = fma(p, f, splat(0.199995965f));
  p = fma(p, f, splat(-0.249998197f));
  p = fma(p, f, splat(0.333333343f));
  p = fma(p, f, splat(-0.5f));
  F16 tail = fma(exponent, splat(1.42860677e-6f), mul(mul(f, f), p));
  F16 r = fma(exponent, splat(0.693145752f), add(f, tail));
  r = add(r, sub(x, x));  // NaN for NaN, and for inf, which the next line corrects.
  r = select_less(splat(3.40282347e38f), x, x, r);
  r = select_less(x, splat(1.40129846e-45f), splat(-infinity), r);
  return select_less(x, zero(), splat(__builtin_nanf("")), r);
}

// Within 2 ulp, also near 0: an odd polynomial below 0.625, else 1 - 2 / (e^2x + 1).
STW_INLINE F16 tanh(F16 x) {
  F16 size = maximum(sub(zero(), x), x);
  F16 square = mul(x, x);
  F16 p = splat(0.00214317255f);
  p = fma(p, square, splat(-0.00817765575f));
  p = fma(p, square, splat(0.0217008218f));
  p = fma(p, square, splat(-0.0539467894f));
  p = fma(p, square, splat(0.133332059f));
  p = fma(p, square, splat(-0.333333313f));
  F16 near_zero = fma(mul(x, square), p, x);
  F16 e = exp(add(size, size));
  F16 far = sub(splat(1.0f), div(splat(2.0f), add(e, splat(1.0f))));
  far = select_less(x, zero(), sub(zero(), far), far);
  return select_less(size, splat(0.625f), near_zero, far);
}

// Within 2 ulp, also near 0: x · polynomial(x²) below 1, else 1 - e^-polynomial(|x|); ±1 from 4 on.
STW_INLINE F16 erf(F16 x) {
  F16 size = minimum(splat(4.0f), maximum(sub(zero(), x), x));
  F16 square = mul(size, size);
  F16 p = splat(7.85385855e-05f);
  p = fma(p, square, splat(-0.000801019254f));
  p = fma(p, square, splat(0.00518832775f));
  p = fma(p, square, splat(-0.026853811f));
  p = fma(p, square, splat(0.112835854f));
  p = fma(p, square, splat(-0.37612626f));
  p = fma(p, square, splat(0.128379167f));
  F16 near_zero = fma(x, p, x);
  F16 q = splat(-0.000186378675f);
  q = fma(q, size, splat(0.00294765341f));
  q = fma(q, size, splat(-0.0218380447f));
  q = fma(q, size, splat(0.103106715f));
  q = fma(q, size, splat(0.638144851f));
  q = fma(q, size, splat(1.12708914f));
  q = fma(q, size, splat(0.000341528299f));
  F16 far = sub(splat(1.0f), exp(sub(zero(), q)));
  far = select_less(x, zero(), sub(zero(), far), far);
  return select_less(size, splat(1.0f), near_zero, far);
}

// One of sixteen equal lanes.
STW_INLINE float any_lane(F16 x) {
#if defined(STW_ISA_CUDA)
  return x.f[0];
#else
  float f[16];
  store(f, x);
  return f[0];
#endif
}
STW_INLINE float exp1(float x) { return any_lane(exp(splat(x))); }
STW_INLINE float log1(float x) { return any_lane(log(splat(x))); }
STW_INLINE float tanh1(float x) { return any_lane(tanh(splat(x))); }
STW_INLINE float erf1(float x) { return any_lane(erf(splat(x))); }

}  // namespace stw::kernels::STW_ISA
