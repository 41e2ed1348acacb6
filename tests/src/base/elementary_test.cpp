#include "src/base/elementary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "src/base/hash.h"

namespace stw::elementary_test {
namespace {

double relative(double got, long double want) {
  return static_cast<double>(std::fabs((static_cast<long double>(got) - want) / want));
}

TEST(Elementary, AreNearTheTrueValues) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> unit(0, 1), sign(-1, 1);
  double log_worst = 0, exp_worst = 0, turn_worst = 0, pow_worst = 0;
  for (int i = 0; i < 200000; ++i) {
    const double x = std::exp(sign(random) * (i % 2 ? 700 : 1));
    if (std::fabs(x - 1) > 1e-3)
      log_worst = std::max(log_worst, relative(portable_log(x), std::log(static_cast<long double>(x))));
    const double e = sign(random) * (i % 2 ? 700 : 1);
    exp_worst = std::max(exp_worst, relative(portable_exp(e), std::exp(static_cast<long double>(e))));
    const double angle = sign(random) * (i % 3 == 0 ? 1 : i % 3 == 1 ? 1e4 : 0x1p27);
    turn_worst = std::max(
        turn_worst,
        static_cast<double>(std::fabs(portable_cos(angle) - std::cos(static_cast<long double>(angle)))));
    turn_worst = std::max(
        turn_worst,
        static_cast<double>(std::fabs(portable_sin(angle) - std::sin(static_cast<long double>(angle)))));
    const double base = 1 + unit(random) * 1e6, power = unit(random);
    pow_worst = std::max(pow_worst,
                         relative(portable_pow(base, power),
                                  std::pow(static_cast<long double>(base), static_cast<long double>(power))));
  }
  EXPECT_LT(log_worst, 4 * 0x1p-52);
  EXPECT_LT(exp_worst, 4 * 0x1p-52);
  EXPECT_LT(turn_worst, 1e-15);
  EXPECT_LT(pow_worst, 32 * 0x1p-52);
}

TEST(Elementary, Ends) {
  EXPECT_EQ(portable_log(1), 0);
  EXPECT_EQ(portable_exp(0), 1);
  EXPECT_EQ(portable_exp(-1000), 0);
  EXPECT_EQ(portable_exp(1000), HUGE_VAL);
  EXPECT_EQ(portable_cos(0), 1);
  EXPECT_EQ(portable_sin(0), 0);
  EXPECT_EQ(portable_pow(10000, 0), 1);
  EXPECT_NEAR(portable_log(0x1p-1022), std::log(0x1p-1022), 1e-12);
}

// Every compiler, C library and processor must give the same bits. The checksum comes from x86-64 with g++
// 12.
TEST(Elementary, BitsAreFrozen) {
  std::vector<double> values;
  for (int i = 1; i <= 20000; ++i) {
    const double x = i * 0.37 + 1.0 / i;
    values.insert(values.end(), {portable_log(x), portable_exp(x * 0.05), portable_cos(x * 100),
                                 portable_sin(x * 100), portable_pow(x, 1.0 / i)});
  }
  EXPECT_EQ(hash64(values.data(), values.size() * sizeof(double)), 3785877029430883671u);
}

}  // namespace
}  // namespace stw::elementary_test
