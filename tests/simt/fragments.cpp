// The product of fragments, with elements placed as in the tables of the PTX manual (section mma.m16n8k16).
#include "tests/simt/fragments.h"

#include <cmath>
#include <cstring>

#include "tests/simt/machine.h"

namespace simt {

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

namespace {

template <bool is_bf16>
SIMT_UNSEEN void multiply(void* const* in) {
  const auto part = [](uint32_t word, int upper) { return static_cast<uint16_t>(word >> (16 * upper)); };
  float a[16][16], b[16][8], d[16][8];
  for (int l = 0; l < 32; ++l) {
    const auto& f = *static_cast<const Fragments*>(in[l]);
    for (int r = 0; r < 4; ++r)
      for (int e = 0; e < 2; ++e)
        a[l / 4 + 8 * (r % 2)][2 * (l % 4) + e + 8 * (r / 2)] = half_value(part(f.a[r], e), is_bf16);
    for (int r = 0; r < 2; ++r)
      for (int e = 0; e < 2; ++e) b[2 * (l % 4) + e + 8 * r][l / 4] = half_value(part(f.b[r], e), is_bf16);
    for (int r = 0; r < 4; ++r) d[l / 4 + 8 * (r / 2)][2 * (l % 4) + r % 2] = f.d[r];
  }
  add_products_of_rows(d, a, b[0], 8);
  for (int l = 0; l < 32; ++l)
    for (int r = 0; r < 4; ++r)
      static_cast<const Fragments*>(in[l])->d[r] = d[l / 4 + 8 * (r / 2)][2 * (l % 4) + r % 2];
}

}  // namespace

void multiply_fragments(uint32_t mask, void* const* in, void* const*) {
  if (mask != 0xffffffffu) die("mma needs the whole warp");
  static_cast<const Fragments*>(in[0])->is_bf16 ? multiply<true>(in) : multiply<false>(in);
}

}  // namespace simt
