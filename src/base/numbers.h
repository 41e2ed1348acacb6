// Conversions between storage formats, on single values.
#pragma once
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace stw {

inline float from_bf16(uint16_t h) { return std::bit_cast<float>(static_cast<uint32_t>(h) << 16); }

// The shortest decimal that rounds to this float, as a double: 0.1 for 0.1f.
inline double as_written(float x) {
  char text[32];
  double value = 0;
  std::from_chars(text, std::to_chars(text, text + sizeof text, x).ptr, value);
  return value;
}

// Rounded to nearest, ties to even.
inline uint16_t to_bf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// IEEE half precision, exactly.
inline float from_f16(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 1023;
  if (exponent == 0) {
    const float tiny = std::ldexp(static_cast<float>(mantissa), -24);
    return std::bit_cast<float>(std::bit_cast<uint32_t>(tiny) | sign);
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

// Rounded to nearest, ties to even; 65,520 and above become infinity.
inline uint16_t to_f16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x), magnitude = bits & 0x7fffffffu;
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // subnormal: adding 0.5 shifts it into place and rounds it
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return static_cast<uint16_t>(sign | (rounded - 0x38000000u) >> 13);
}

// Splits a master weight: half = value rounded to nearest, ties away from zero. The remainder then fits 16
// signed bits: bits(value) = (half << 16) + remainder.
struct SplitValue {
  uint16_t half;
  int16_t remainder;
};
inline SplitValue split_master(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t half = static_cast<uint16_t>((bits + 0x8000u) >> 16);
  return {half, static_cast<int16_t>(static_cast<int32_t>(bits - (static_cast<uint32_t>(half) << 16)))};
}
// Rounded to nearest, ties away from zero, so that the remainder fits 8 bits.
inline float rounded_to_24_bits(float value) {
  return std::bit_cast<float>((std::bit_cast<uint32_t>(value) + 0x80u) & 0xffffff00u);
}

}  // namespace stw
