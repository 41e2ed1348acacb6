// The fp32 master of a parameter in all its storage formats.
#pragma once
#include "kernels/common/master_bits.h"
#include "kernels/common/update_scalars.h"

namespace stw::kernels::STW_ISA {

STW_INLINE F16 load_parameter(const UpdateArgs& args, int64_t at, int64_t n) {
  if (args.dtype == DType::f32) return load_group(args.parameter, DType::f32, at, n);
  if (args.dtype == DType::f16) return load_group(args.master, DType::f32, at, n);
  const uint16_t* half = (const uint16_t*)args.parameter + at;
  float f[16] = {0};
  if (args.short_remainder != nullptr) {
    const int8_t* remainder = args.short_remainder + at;
    for (int64_t i = 0; i < n; ++i) f[i] = joined_short(half[i], remainder[i]);
    return load(f);
  }
  if (args.remainder == nullptr) return load_group(args.parameter, DType::bf16, at, n);
  const int16_t* remainder = args.remainder + at;
  if (n == 16) {
    for (int i = 0; i < 16; ++i) f[i] = joined(half[i], remainder[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) f[i] = joined(half[i], remainder[i]);
  }
  return load(f);
}

STW_INLINE void store_stochastic(const UpdateArgs& args, int64_t at, const float* f, int64_t n) {
  uint16_t half[16];
  int64_t block = -1;
  Philox4 words = {};
  for (int64_t i = 0; i < n; ++i) {
    const int64_t element = args.first_element + at + i;
    if (element / 8 != block) {
      block = element / 8;
      words = rounding_block(args, block);
    }
    half[i] = stochastic_half(f[i], words.w[element % 8 / 2], element);
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
      const uint32_t bits = rounded_to_24(bits_of(f[i]));
      half[i] = short_half_of(bits);
      remainder[i] = short_remainder_of(bits);
    }
    memcpy((uint16_t*)args.parameter + at, half, (size_t)n * 2);
    memcpy(args.short_remainder + at, remainder, (size_t)n);
    return;
  }
  if (args.remainder == nullptr) return store_stochastic(args, at, f, n);
  int16_t remainder[16];
#pragma GCC unroll 1  // If this were unrolled, g++ 12 would not vectorise it.
  for (int i = 0; i < 16; ++i) {
    const uint32_t bits = bits_of(f[i]);
    half[i] = nearest_half(bits);
    remainder[i] = remainder_of(bits);
  }
  memcpy((uint16_t*)args.parameter + at, half, (size_t)n * 2);
  memcpy(args.remainder + at, remainder, (size_t)n * 2);
}

}  // namespace stw::kernels::STW_ISA
