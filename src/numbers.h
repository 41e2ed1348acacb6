// Conversions between storage formats, on single values.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

namespace stw {

inline float from_bf16(uint16_t h) { return std::bit_cast<float>(static_cast<uint32_t>(h) << 16); }

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

// A split master: the half is the value rounded to nearest, ties upward in magnitude, so that what is missing fits 16
// signed bits: bits(value) = (half << 16) + remainder.
struct SplitValue { uint16_t half; int16_t remainder; };
inline SplitValue split_master(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t half = static_cast<uint16_t>((bits + 0x8000u) >> 16);
  return {half, static_cast<int16_t>(static_cast<int32_t>(bits - (static_cast<uint32_t>(half) << 16)))};
}
inline float join_master(uint16_t half, int16_t remainder) {
  return std::bit_cast<float>((static_cast<uint32_t>(half) << 16) + static_cast<uint32_t>(static_cast<int32_t>(remainder)));
}

}  // namespace stw
