// The sum of a tensor core, and chains of fused multiply-adds: the arithmetic in which emulated training
// spends its time. These files contain only arithmetic on numbers that the callers have read. So they are
// compiled for the host's processor, without sanitizers.
#pragma once
#include <cstdint>
#include <cstring>
#include <limits>

namespace simt {

inline float half_value(uint16_t bits, bool is_bf16) {
  uint32_t u = is_bf16 ? static_cast<uint32_t>(bits) << 16 : static_cast<uint32_t>(bits & 0x7fff) << 13;
  float x;
  std::memcpy(&x, &u, 4);
  if (is_bf16) return x;
  constexpr float of_exponents = 0x1p112f;  // The factor between exponents with bias 15 and 127: exact.
  const bool is_finite = (bits & 0x7c00) != 0x7c00;
  const float size = is_finite             ? x * of_exponents
                     : (bits & 0x3ff) == 0 ? std::numeric_limits<float>::infinity()
                                           : std::numeric_limits<float>::quiet_NaN();
  return bits & 0x8000 ? -size : size;
}

// sum + a · b, 16 numbers each.
float add_products(float sum, const float* a, const float* b);
// The same for sixteen rows of a and of sums, and eight columns of b; element (k, column) of b is b[k *
// stride + column].
void add_products_of_rows(float (*sums)[8], const float (*a)[16], const float* b, int stride);

// sums[i] = fma(factor, row[i], sums[i]).
void add_multiple(float* sums, float factor, const float* row, int64_t count);

}  // namespace simt
