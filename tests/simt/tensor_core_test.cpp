// The sums of tensor cores in tiles have the bits of single sums, for all kinds of numbers.
#include "tests/simt/tensor_core.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

namespace simt {
namespace {

TEST(TensorCore, TilesHaveTheBitsOfSingleSums) {
  constexpr float infinity = std::numeric_limits<float>::infinity(),
                  nan = std::numeric_limits<float>::quiet_NaN();
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  int special = 0, rounded = 0;
  for (int round = 0; round < 3000; ++round) {
    // Numbers near one, far apart, tiny, with zeros, all zero on one side, infinite, NaN, cancelling.
    const int kind = round % 8;
    const auto draw = [&] {
      const float x = normal(random);
      switch (kind) {
        case 1: return std::ldexp(x, static_cast<int>(random() % 60) - 30);
        case 2: return std::ldexp(x, -70 - static_cast<int>(random() % 10));
        case 3: return random() % 2 ? x : random() % 2 ? 0.0f : -0.0f;
        case 5: return random() % 40 ? x : infinity;
        case 6: return random() % 40 ? x : nan;
        case 7: return random() % 2 ? 1.0f : -1.0f;
        default: return x;
      }
    };
    const int stride = 8 + static_cast<int>(random() % 3);
    float a[16][16], b[16 * 10], sums[16][8];
    for (auto& row : a)
      for (float& x : row) x = kind == 4 && random() % 4 ? 0.0f : draw();
    for (float& x : b) x = kind == 4 && round % 16 == 4 ? -0.0f : draw();
    for (auto& row : sums)
      for (float& x : row)
        x = kind == 5 && random() % 9 == 0 ? -infinity : kind == 4 && random() % 3 == 0 ? -0.0f : draw();
    if (kind == 4)
      for (float& x : a[round % 16]) x = 0;
    float expected[16][8];
    for (int row = 0; row < 16; ++row)
      for (int c = 0; c < 8; ++c) {
        float column[16];
        double exact = sums[row][c];
        for (int k = 0; k < 16; ++k)
          column[k] = b[k * stride + c], exact += static_cast<double>(a[row][k]) * column[k];
        expected[row][c] = add_products(sums[row][c], a[row], column);
        rounded += std::isfinite(exact) && static_cast<float>(exact) != expected[row][c];
      }
    add_products_of_rows(sums, a, b, stride);
    for (int row = 0; row < 16; ++row)
      for (int c = 0; c < 8; ++c) {
        const float found = sums[row][c], reference = expected[row][c];
        special += !std::isfinite(reference);
        if (std::isnan(reference)) EXPECT_TRUE(std::isnan(found)) << kind;
        else
          ASSERT_EQ(std::bit_cast<uint32_t>(found), std::bit_cast<uint32_t>(reference))
              << kind << ", " << found << ", " << reference;
      }
  }
  EXPECT_GT(special, 1000);
  EXPECT_GT(rounded, 1000);  // Sums whose truncation is not the nearest number.
}

// All patterns of 16 bits, compared with the definition of IEEE 754.
TEST(TensorCore, HalvesAgreeWithTheStandard) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 1023);
    const float found = half_value(static_cast<uint16_t>(bits), false);
    if (exponent == 31 && fraction != 0) {
      EXPECT_TRUE(std::isnan(found));
      continue;
    }
    const float size = exponent == 31
                           ? std::numeric_limits<float>::infinity()
                           : std::ldexp(static_cast<float>(exponent == 0 ? fraction : 1024 + fraction),
                                        exponent == 0 ? -24 : exponent - 25);
    ASSERT_EQ(std::bit_cast<uint32_t>(found), std::bit_cast<uint32_t>(bits >> 15 ? -size : size)) << bits;
    ASSERT_EQ(std::bit_cast<uint32_t>(half_value(static_cast<uint16_t>(bits), true)), bits << 16);
  }
}

}  // namespace
}  // namespace simt
