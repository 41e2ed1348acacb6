// 16-bit storage types, one number at a time, with the bits that x86 and ARM hardware give. simd.h and
// gpu_lanes.h include it after they define bits_of and float_of.
#pragma once

namespace stw::kernels::STW_ISA {

// bf16: to nearest, ties to even. NaN stays NaN.
STW_INLINE float from_bf16(uint16_t h) { return float_of((uint32_t)h << 16); }
STW_INLINE uint16_t to_bf16(float x) {
  uint32_t u = bits_of(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((u >> 16) | 0x40u);
  return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

// f16: IEEE binary16 (F16 is another thing: 16 lanes). The conversion to fp32 is exact. The conversion from
// fp32 rounds to nearest, ties to even; it keeps subnormals, and magnitudes from 65520 on become infinite. A
// NaN becomes a quiet NaN with the part of its payload that fits.
STW_INLINE float from_f16(uint16_t h) {
  const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, bits = (uint32_t)(h & 0x7fffu) << 13;
  const uint32_t subnormal = bits_of((float)(int32_t)(h & 0x3ffu) * 0x1p-24f);
  const uint32_t special = (bits + (224u << 23)) | ((h & 0x3ffu) != 0 ? 0x400000u : 0u);
  const uint32_t finite = (h & 0x7c00u) == 0 ? subnormal : bits + (112u << 23);
  return float_of(sign | ((h & 0x7c00u) == 0x7c00u ? special : finite));
}
STW_INLINE uint16_t to_f16(float x) {
  const uint32_t u = bits_of(x), sign = u >> 16 & 0x8000u, size = u & 0x7fffffffu;
  // Below 2^-14: a sum in [0.5, 1) is rounded to a multiple of 2^-24, the unit of the subnormals.
  const uint32_t subnormal = bits_of(float_of(size) + 0.5f) - bits_of(0.5f);
  const uint32_t normal = (size - (112u << 23) + 0xfffu + (size >> 13 & 1u)) >> 13;
  const uint32_t finite = size < 0x38800000u ? subnormal : normal;
  const uint32_t special = size > 0x7f800000u ? 0x7e00u | (size >> 13 & 0x3ffu) : 0x7c00u;
  return (uint16_t)(sign | (size < 0x477ff000u ? finite : special));
}

}  // namespace stw::kernels::STW_ISA
