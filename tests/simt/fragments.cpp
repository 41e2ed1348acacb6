// The product of fragments, as the tables of the PTX manual (section mma.m16n8k16) place their elements.
#include "tests/simt/fragments.h"

#include <cmath>
#include <cstring>

#include "tests/simt/machine.h"

namespace simt {

float half_value(uint16_t bits, bool is_bf16) {
  if (is_bf16) {
    const uint32_t u = static_cast<uint32_t>(bits) << 16;
    float x;
    std::memcpy(&x, &u, 4);
    return x;
  }
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float size = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                     : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                     : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return bits & 0x8000 ? -size : size;
}

uint16_t half_bits(float x, bool is_bf16) {
  uint32_t u;
  std::memcpy(&u, &x, 4);
  if (x != x) return 0x7fff;
  if (is_bf16) return static_cast<uint16_t>((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
  const uint32_t sign = u >> 16 & 0x8000u;
  const double size = std::fabs(static_cast<double>(x));
  if (size >= 65520) return static_cast<uint16_t>(sign | 0x7c00u);
  const int exponent = size < 0x1p-14 ? -14 : std::ilogb(size);
  const auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  return static_cast<uint16_t>(sign | ((static_cast<uint32_t>(exponent + 14) << 10) + units));
}

// What the literature reports of Ampere and Hopper (Fasi, Higham, Mikaitis, Pranesh, "Numerical behavior of NVIDIA tensor cores",
// PeerJ CS 7:e330, 2021; Khattak, Mikaitis, arXiv 2512.07004, 2025): the products are exact; they and the accumulator are aligned to the
// largest of them and cut off a few bits below its last one of fp32, added without a rounding in between, and the sum is cut off to
// fp32. How many products a unit takes and how many bits it keeps differs between generations: here 16, as on Hopper, and 2.
float add_products(float sum, const float* a, const float* b) {
  double term[17], all = sum, largest = std::fabs(static_cast<double>(sum));
  term[16] = sum;
  for (int k = 0; k < 16; ++k) {
    term[k] = static_cast<double>(a[k]) * b[k];
    all += term[k];
    largest = std::fabs(term[k]) > largest ? std::fabs(term[k]) : largest;
  }
  if (!std::isfinite(all)) return static_cast<float>(all);   // no finite terms overflow a double
  if (largest == 0) return 0;
  uint64_t bits;
  std::memcpy(&bits, &largest, 8);
  const auto power_of_two = [](int exponent) {
    const uint64_t u = static_cast<uint64_t>(1023 + exponent) << 52;
    double x;
    std::memcpy(&x, &u, 8);
    return x;
  };
  constexpr int kept = 23 + 2;
  const int exponent = static_cast<int>(bits >> 52) - 1023;
  const double units = power_of_two(kept - exponent);
  int32_t total = 0;   // of 17 terms below 2^26
  for (const double t : term) total += static_cast<int32_t>(t * units);
  const double exact = total * power_of_two(exponent - kept);
  float nearest = static_cast<float>(exact);
  if (std::isfinite(nearest) && std::fabs(static_cast<double>(nearest)) > std::fabs(exact)) {
    uint32_t u;
    std::memcpy(&u, &nearest, 4);
    u -= 1;
    std::memcpy(&nearest, &u, 4);
  }
  return nearest;
}

void multiply_fragments(uint32_t mask, void* const* in, void* const*) {
  if (mask != 0xffffffffu) die("mma needs the whole warp");
  const auto part = [](uint32_t word, int upper) { return static_cast<uint16_t>(word >> (16 * upper)); };
  const bool is_bf16 = static_cast<const Fragments*>(in[0])->is_bf16;
  float a[16][16], b[8][16];   // rows of the one, columns of the other
  for (int l = 0; l < 32; ++l) {
    const auto& f = *static_cast<const Fragments*>(in[l]);
    for (int r = 0; r < 4; ++r)
      for (int e = 0; e < 2; ++e)
        a[l / 4 + 8 * (r % 2)][2 * (l % 4) + e + 8 * (r / 2)] = half_value(part(f.a[r], e), is_bf16);
    for (int r = 0; r < 2; ++r)
      for (int e = 0; e < 2; ++e) b[l / 4][2 * (l % 4) + e + 8 * r] = half_value(part(f.b[r], e), is_bf16);
  }
  for (int l = 0; l < 32; ++l) {
    float* d = static_cast<const Fragments*>(in[l])->d;
    for (int r = 0; r < 4; ++r) {
      const int row = l / 4 + 8 * (r / 2), column = 2 * (l % 4) + r % 2;
      d[r] = add_products(d[r], a[row], b[column]);
    }
  }
}

}  // namespace simt
