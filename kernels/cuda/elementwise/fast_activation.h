// GELU (by tanh), SwiGLU, GeGLU and their gradients by the special function unit. The functions are those of
// gelu_form.h and swiglu_form.h. σ takes two instructions of that unit, 2^x and 1 / x, where the portable σ
// takes about thirty others. Errors are far below the rounding to 16 bits
// (tests/kernels/elementwise/fast_activation_test.cpp has the bounds, for every 16-bit number). Results are
// finite for every finite x: 2^x may be infinite, but then σ is 0; results of 2^x below 2^-126 are 0.
#pragma once
#include "kernels/common/geglu_form.h"
#include "kernels/lanes/gpu_lanes.h"

namespace stw::kernels::cuda {

// σ(-x·ln 2).
STW_DEVICE float falling_sigmoid_of_power1(float x) { return approximate_inverse(1.0f + fast_exp2(x)); }

inline constexpr float falling_linear = -linear_term * log2_of_e, falling_cubic = -cubic_term * log2_of_e;
STW_DEVICE float fast_gelu1(float x) {
  return x * falling_sigmoid_of_power1(x * fma1(x * x, falling_cubic, falling_linear));
}

// s + s·(1 - s)·x·(linear + 3·cubic·x²). In fp32 it is 1 from x = 6 on, and 0 below x = -10.5, where s is 0.
// Between these limits x·(linear + 3·cubic·x²) is at most 56; it multiplies the error that the special
// function unit makes in s. Clamping x loses a NaN, but s is still NaN.
STW_DEVICE float fast_gelu_gradient1(float x) {
  const float below = smaller(x, 6.0f), square = smaller(below * below, 10.5f * 10.5f);
  const float s = falling_sigmoid_of_power1(x * fma1(square, falling_cubic, falling_linear));
  return fma1(fma1(-s, s, s) * below, fma1(square, 3.0f * cubic_term, linear_term), s);
}

STW_DEVICE float fast_sigmoid1(float x) { return falling_sigmoid_of_power1(x * -log2_of_e); }
STW_DEVICE float fast_swiglu1(float gate, float up) { return gate * fast_sigmoid1(gate) * up; }
// s·(1 + gate·(1 - s)) is 1 in fp32 from gate = 20 on. Without the limit, a larger gate would multiply the
// error of s.
struct FastSwigluGradient1 {
  float gate, up;
};
STW_DEVICE FastSwigluGradient1 fast_swiglu_gradient1(float gate, float up, float dy) {
  const float s = fast_sigmoid1(gate), slope = s * fma1(smaller(gate, 20.0f), 1.0f - s, 1.0f);
  return {dy * up * slope, dy * (gate * s)};
}

STW_DEVICE F16 fast_gelu(F16 x) {
  for (float& f : x.f) f = fast_gelu1(f);
  return x;
}
STW_DEVICE F16 fast_gelu_gradient(F16 x) {
  for (float& f : x.f) f = fast_gelu_gradient1(f);
  return x;
}
STW_DEVICE F16 fast_swiglu(F16 gate, const F16& up) {
  for (int i = 0; i < 4; ++i) gate.f[i] = fast_swiglu1(gate.f[i], up.f[i]);
  return gate;
}
STW_DEVICE SwigluGradient fast_swiglu_gradient(const F16& gate, const F16& up, const F16& dy) {
  SwigluGradient dx;
  for (int i = 0; i < 4; ++i) {
    const FastSwigluGradient1 one = fast_swiglu_gradient1(gate.f[i], up.f[i], dy.f[i]);
    dx.gate.f[i] = one.gate, dx.up.f[i] = one.up;
  }
  return dx;
}

STW_DEVICE F16 fast_geglu(const F16& gate, const F16& up) { return mul(fast_gelu(gate), up); }
STW_DEVICE SwigluGradient fast_geglu_gradient(const F16& gate, const F16& up, const F16& dy) {
  return {mul(mul(dy, up), fast_gelu_gradient(gate)), mul(dy, fast_gelu(gate))};
}

// Whether the operands of an instance (for_dtypes) may have 16 bits. The fast forms serve only those.
template <class Args>
bool is_fast(const Args& args) {
  return args.fast && args.x.dtype != DType::f32;
}
template <class Stored>
inline constexpr bool takes_halves = Stored::of(DType::bf16) != DType::f32;

}  // namespace stw::kernels::cuda
