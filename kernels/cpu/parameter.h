// The fp32 master of a parameter, however it is stored.
#pragma once
#include "kernels/common/philox.h"
#include "kernels/common/update_scalars.h"

namespace stw::kernels::STW_ISA {

// The fp32 master of a group. Split storage: bits = (half << 16) + remainder, modulo 2^32; the half is the upper word of
// bits + 0x8000, which rounds the magnitude to nearest with ties upward, so what is missing lies in [-32768, 32767].
// The way there and back is exact for every bit pattern. With 8 of the 16 bits it is so for masters of 24 bits.
STW_INLINE F16 load_parameter(const UpdateArgs& args, int64_t at, int64_t n) {
  if (args.dtype == DType::f32) return load_group(args.parameter, DType::f32, at, n);
  if (args.dtype == DType::f16) return load_group(args.master, DType::f32, at, n);
  const uint16_t* half = (const uint16_t*)args.parameter + at;
  float f[16] = {0};
  if (args.short_remainder != nullptr) {
    const int8_t* remainder = args.short_remainder + at;
    for (int64_t i = 0; i < n; ++i) f[i] = float_of(((uint32_t)half[i] << 16) + ((uint32_t)(int32_t)remainder[i] << 8));
    return load(f);
  }
  if (args.remainder == nullptr) return load_group(args.parameter, DType::bf16, at, n);
  const int16_t* remainder = args.remainder + at;
  if (n == 16) {
    for (int i = 0; i < 16; ++i) f[i] = float_of(((uint32_t)half[i] << 16) + (uint32_t)(int32_t)remainder[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) f[i] = float_of(((uint32_t)half[i] << 16) + (uint32_t)(int32_t)remainder[i]);
  }
  return load(f);
}

// Sixteen random bits are added below the half, and cut off with what is there.
STW_INLINE void store_stochastic(const UpdateArgs& args, int64_t at, const float* f, int64_t n) {
  uint16_t half[16];
  int64_t block = -1;
  Philox4 words = {};
  for (int64_t i = 0; i < n; ++i) {
    const int64_t element = args.first_element + at + i;
    if (element / 8 != block) {
      block = element / 8;
      words = philox((uint32_t)block, (uint32_t)(block >> 32), args.stream, (uint32_t)args.state->step, args.state->seed);
    }
    const uint32_t random = words.w[element % 8 / 2] >> (element % 2 * 16) & 0xffffu;
    half[i] = (uint16_t)((bits_of(f[i]) + random) >> 16);
  }
  memcpy((uint16_t*)args.parameter + at, half, (size_t)n * 2);
}

STW_INLINE void store_parameter(const UpdateArgs& args, int64_t at, F16 p, int64_t n) {
  if (args.dtype == DType::f32) return store_group(args.parameter, DType::f32, at, p, n);
  if (args.dtype == DType::f16) {
    store_group(args.master, DType::f32, at, p, n);
    return store_group(args.parameter, DType::f16, at, p, n);
  }
  uint16_t half[16];
  float f[16];
  store(f, p);
  if (args.short_remainder != nullptr) {
    int8_t remainder[16];
#pragma GCC unroll 1
    for (int i = 0; i < 16; ++i) {
      const uint32_t bits = bits_of(f[i]) + 0x80u;   // rounded to 24 bits, once the lowest are gone
      half[i] = (uint16_t)(((bits & 0xffffff00u) + 0x8000u) >> 16);
      remainder[i] = (int8_t)(uint8_t)(bits >> 8);
    }
    memcpy((uint16_t*)args.parameter + at, half, (size_t)n * 2);
    memcpy(args.short_remainder + at, remainder, (size_t)n);
    return;
  }
  if (args.remainder == nullptr) return store_stochastic(args, at, f, n);
  int16_t remainder[16];
#pragma GCC unroll 1   // unrolled, g++ 12 no longer sees that this is a vector
  for (int i = 0; i < 16; ++i) {
    const uint32_t bits = bits_of(f[i]);
    half[i] = (uint16_t)((bits + 0x8000u) >> 16);
    remainder[i] = (int16_t)(uint16_t)bits;   // bits - (half << 16) needs only the lower word
  }
  memcpy((uint16_t*)args.parameter + at, half, (size_t)n * 2);
  memcpy(args.remainder + at, remainder, (size_t)n * 2);
}

}  // namespace stw::kernels::STW_ISA
