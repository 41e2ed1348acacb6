// The arithmetic of AdamW (Loshchilov and Hutter, arXiv:1711.05101; the order of torch.optim.AdamW), shared by the
// update with 32-bit and with 8-bit states. All in fp32, in this order, each line one or more single roundings:
//   g = coefficient · (g0 + g1)
//   p = p · decay                                  decay = 1 - learning_rate·weight_decay
//   m = fma(beta1, m, (1 - beta1)·g)
//   v = fma(beta2, v, ((1 - beta2)·g)·g),  r = √v
//   p = fma(-step_size, m / fma(r, 1/correction2, epsilon), p)
// The scalars are computed in double and rounded once. The parameter is rounded once more, where it is stored.
#pragma once
#include "kernels/cpu/split.h"

namespace stw::kernels::STW_ISA {

struct AdamWScalars { F16 coefficient, decay, beta1, rest1, beta2, rest2, step_size, correction, epsilon; };

STW_INLINE AdamWScalars adamw_scalars(const AdamWArgs& args) {
  const StepState& s = *args.state;
  return {splat((float)s.coefficient), splat((float)(1 - s.learning_rate * args.decay)),
          splat((float)s.beta1), splat((float)(1 - s.beta1)), splat((float)s.beta2), splat((float)(1 - s.beta2)),
          splat((float)-s.step_size), splat((float)(1 / s.correction2)), splat((float)s.epsilon)};
}

STW_INLINE F16 scaled_gradient(const AdamWArgs& args, const AdamWScalars& scalars, int64_t at, int64_t n) {
  F16 g = load_group(args.gradient[0], DType::f32, at, n);
  if (args.gradient[1] != nullptr) g = add(g, load_group(args.gradient[1], DType::f32, at, n));
  return mul(scalars.coefficient, g);
}
STW_INLINE F16 next_first(const AdamWScalars& s, F16 m, F16 g) { return fma(s.beta1, m, mul(s.rest1, g)); }
STW_INLINE F16 next_second(const AdamWScalars& s, F16 v, F16 g) { return fma(s.beta2, v, mul(mul(s.rest2, g), g)); }
STW_INLINE F16 next_parameter(const AdamWScalars& s, F16 p, F16 m, F16 root) {
  return fma(s.step_size, div(m, fma(root, s.correction, s.epsilon)), mul(p, s.decay));
}

// The fp32 master of a group. Split storage: bits = (half << 16) + remainder, modulo 2^32; the half is the upper word of
// bits + 0x8000, which rounds the magnitude to nearest with ties upward, so what is missing lies in [-32768, 32767].
// The way there and back is exact for every bit pattern.
STW_INLINE F16 load_parameter(const AdamWArgs& args, int64_t at, int64_t n) {
  if (args.dtype == DType::f32) return load_group(args.parameter, DType::f32, at, n);
  const uint16_t* half = (const uint16_t*)args.parameter + at;
  const int16_t* remainder = args.remainder + at;
  float f[16] = {0};
  if (n == 16) {
    for (int i = 0; i < 16; ++i) f[i] = float_of(((uint32_t)half[i] << 16) + (uint32_t)(int32_t)remainder[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) f[i] = float_of(((uint32_t)half[i] << 16) + (uint32_t)(int32_t)remainder[i]);
  }
  return load(f);
}
STW_INLINE void store_parameter(const AdamWArgs& args, int64_t at, F16 p, int64_t n) {
  if (args.dtype == DType::f32) return store_group(args.parameter, DType::f32, at, p, n);
  uint16_t half[16];
  int16_t remainder[16];
  float f[16];
  store(f, p);
  for (int i = 0; i < 16; ++i) {
    const uint32_t bits = bits_of(f[i]);
    half[i] = (uint16_t)((bits + 0x8000u) >> 16);
    remainder[i] = (int16_t)(uint16_t)bits;   // bits - (half << 16) needs only the lower word
  }
  memcpy((uint16_t*)args.parameter + at, half, (size_t)n * 2);
  memcpy(args.remainder + at, remainder, (size_t)n * 2);
}

}  // namespace stw::kernels::STW_ISA
