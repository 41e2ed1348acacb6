// 1 / x by the special function unit and a correction (kernels/lanes/gpu_lanes.h): the nearest float for
// every mantissa, for every approximation that the unit may return.
#include <gtest/gtest.h>

#include <limits>

#include "tests/simt/simt.h"
// Included after simt.h, which defines the keywords of CUDA C++.
#include "kernels/lanes/gpu_lanes.h"

namespace stw::kernels::cuda {
namespace {

// The number of floats, among 4 · count from `first` on, whose inverse differs from the CPU's.
int64_t wrong_ones(uint32_t first, uint32_t step, int64_t count) {
  int64_t wrong = 0;
  for (int64_t k = 0; k < count; ++k) {
    F16 x;
    for (float& f : x.f) f = float_of(first), first += step;
    const F16 y = inverse(x);
    for (int i = 0; i < 4; ++i) wrong += bits_of(y.f[i]) != bits_of(1.0f / x.f[i]);
  }
  return wrong;
}

class Inverse : public testing::TestWithParam<simt::Answer> {
 protected:
  Inverse() { simt::inverse_answer = GetParam(); }
  ~Inverse() override { simt::inverse_answer = simt::Answer::any; }
};

// If the exponent of x changes but stays below 126, x · (1 / x) keeps its bits.
TEST_P(Inverse, IsTheNearestFloatForEveryMantissa) {
  EXPECT_EQ(wrong_ones(bits_of(1.0f), 1, (int64_t{1} << 23) / 4), 0);
}

TEST_P(Inverse, IsTheNearestFloatForEveryExponent) {
  constexpr uint32_t step = 8191 * 4 + 1, numbers = (0x7f800000u - 0x3f800000u) / step;
  EXPECT_EQ(wrong_ones(bits_of(1.0f), step, numbers / 4), 0);
  for (uint32_t exponent = 128; exponent < 255; ++exponent) {
    EXPECT_EQ(wrong_ones((exponent << 23) - 4, 1, 2), 0) << exponent;
  }
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(inverse(splat(infinity)).f[3], 0.0f);
  EXPECT_NE(inverse(splat(infinity - infinity)).f[3], inverse(splat(infinity - infinity)).f[3]);
}

INSTANTIATE_TEST_SUITE_P(Answers, Inverse,
                         testing::Values(simt::Answer::below, simt::Answer::nearest, simt::Answer::above));

}  // namespace
}  // namespace stw::kernels::cuda
