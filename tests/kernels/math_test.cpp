// exp, log, tanh and erf compared with long double, in units in the last place. Bits must be the same on
// every instruction set. Philox is compared with the known answers of its authors' library (Random123,
// kat_vectors).
#include <algorithm>
#include <string>

#include "tests/kernels/harness.h"
#include "tests/kernels/math_probe.h"

namespace stw::kernels {
namespace scalar {
extern const test::MathProbe math_probe;
}
#ifdef STW_HAVE_AVX2
namespace avx2 {
extern const test::MathProbe math_probe;
}
#endif
#ifdef STW_HAVE_AVX512
namespace avx512 {
extern const test::MathProbe math_probe;
}
#endif
#ifdef STW_HAVE_NEON
namespace neon {
extern const test::MathProbe math_probe;
}
#endif
}  // namespace stw::kernels

namespace stw::kernels::test {
namespace {

std::vector<const MathProbe*> probes() {
  std::vector<const MathProbe*> found = {&scalar::math_probe};
#ifdef STW_HAVE_AVX2
  if (cpu_table(Isa::avx2)) found.push_back(&avx2::math_probe);
#endif
#ifdef STW_HAVE_AVX512
  if (cpu_table(Isa::avx512)) found.push_back(&avx512::math_probe);
#endif
#ifdef STW_HAVE_NEON
  if (cpu_table(Isa::neon)) found.push_back(&neon::math_probe);
#endif
  return found;
}

using Lanes = void (*MathProbe::*)(const float*, float*, int64_t);
using One = float (*MathProbe::*)(float);

uint32_t bits(float x) {
  uint32_t u;
  std::memcpy(&u, &x, 4);
  return u;
}
float value(uint32_t u) {
  float x;
  std::memcpy(&x, &u, 4);
  return x;
}

// Every 1009th bit pattern, so all exponents, both signs, infinities and NaNs; then random values of usual
// size.
std::vector<float> arguments() {
  std::vector<float> x;
  for (uint64_t u = 0; u <= 0xffffffffu; u += 1009) x.push_back(value(static_cast<uint32_t>(u)));
  Random random(7);
  for (int i = 0; i < 1000000; ++i) x.push_back(static_cast<float>(8 * random.normal()));
  for (int i = 0; i < 1000000; ++i) x.push_back(static_cast<float>(180 * random.uniform() - 90));
  for (int i = 0; i < 500000; ++i) x.push_back(static_cast<float>(0.5 + random.uniform()));
  for (float special :
       {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 88.7228317f, 88.7228394f, 89.0f, -86.6f, -86.7f, -100.0f,
        0.625f, 1.0f, 4.0f, 1.17549435e-38f, 1.40129846e-45f, 3.40282347e38f})
    x.push_back(special);
  while (x.size() % 16 != 0) x.push_back(0.0f);
  return x;
}

double units(float got, long double expected) {
  if (std::isnan(expected)) return std::isnan(got) ? 0 : INFINITY;
  const float rounded = static_cast<float>(expected);
  if (std::isinf(rounded) || std::isinf(got)) return got == rounded ? 0 : INFINITY;
  int exponent;
  std::frexp(rounded, &exponent);
  return static_cast<double>(std::fabs(got - expected) / std::ldexp(1.0L, std::max(exponent - 24, -149)));
}

void check(Lanes function, One one, long double (*reference)(long double), double limit) {
  const std::vector<float> x = arguments();
  const std::vector<const MathProbe*> all = probes();
  std::vector<float> first(x.size()), other(x.size());
  (all[0]->*function)(x.data(), first.data(), static_cast<int64_t>(x.size()));
  double worst = 0;
  float worst_at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = units(first[i], reference(x[i]));
    if (error > worst) worst = error, worst_at = x[i];
  }
  EXPECT_LE(worst, limit) << "at " << worst_at;
  testing::Test::RecordProperty("units", std::to_string(worst));
  for (const MathProbe* probe : all) {
    (probe->*function)(x.data(), other.data(), static_cast<int64_t>(x.size()));
    int64_t differences = 0;
    for (size_t i = 0; i < x.size(); ++i)
      differences += std::isnan(first[i]) ? !std::isnan(other[i]) : bits(first[i]) != bits(other[i]);
    for (size_t i = 0; i < x.size(); i += 97)
      differences += !std::isnan(first[i]) && bits((probe->*one)(x[i])) != bits(first[i]);
    EXPECT_EQ(differences, 0);
  }
}

// Results that would be below 2^-125 are 0.
long double flushed_exp(long double x) { return x < -86.6433868L ? 0 : std::exp(x); }

TEST(Math, Exp) { check(&MathProbe::exp, &MathProbe::exp1, flushed_exp, 1.0); }
TEST(Math, Log) {
  check(
      &MathProbe::log, &MathProbe::log1, [](long double x) { return std::log(x); }, 1.0);
}
TEST(Math, Tanh) {
  check(
      &MathProbe::tanh, &MathProbe::tanh1, [](long double x) { return std::tanh(x); }, 2.0);
}
TEST(Math, Erf) {
  check(
      &MathProbe::erf, &MathProbe::erf1, [](long double x) { return std::erf(x); }, 2.0);
}

TEST(Math, Limits) {
  for (const MathProbe* probe : probes()) {
    EXPECT_EQ(bits(probe->exp1(0)), bits(1.0f));
    EXPECT_EQ(bits(probe->exp1(-100)), 0u);
    EXPECT_EQ(bits(probe->exp1(-INFINITY)), 0u);
    EXPECT_EQ(probe->exp1(89), INFINITY);
    EXPECT_EQ(bits(probe->log1(1)), 0u);
    EXPECT_EQ(probe->log1(0), -INFINITY);
    EXPECT_EQ(probe->log1(-0.0f), -INFINITY);
    EXPECT_TRUE(std::isnan(probe->log1(-1)));
    EXPECT_EQ(probe->tanh1(INFINITY), 1.0f);
    EXPECT_EQ(probe->tanh1(-INFINITY), -1.0f);
    EXPECT_EQ(probe->erf1(INFINITY), 1.0f);
    EXPECT_EQ(probe->erf1(-5), -1.0f);
    EXPECT_EQ(bits(probe->erf1(-0.0f)), bits(-0.0f));
  }
}

TEST(Philox, KnownAnswers) {
  const struct {
    uint32_t counter[4], key[2], words[4];
  } known[] = {{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
               {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                {0xffffffff, 0xffffffff},
                {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
               {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                {0xa4093822, 0x299f31d0},
                {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
  for (const MathProbe* probe : probes())
    for (const auto& answer : known) {
      uint32_t words[4];
      probe->philox(answer.counter, answer.key[0] | static_cast<uint64_t>(answer.key[1]) << 32, words);
      for (int i = 0; i < 4; ++i) EXPECT_EQ(words[i], answer.words[i]);
    }
}

TEST(Philox, ManyFactorsEqualTheFactorsOneByOne) {
  StepState state = {};
  state.seed = 0x0123456789abcdefu, state.step = 41, state.first_sample = 5;
  Random random(3);
  for (const MathProbe* probe : probes())
    for (int round = 0; round < 250; ++round) {
      // Also when the number of a block exceeds 32 bits.
      const int64_t first = random.between(0, 5000) +
                            (round < 200 ? 0 : (int64_t{4} << 32) * random.between(1, 3) - 2500),
                    count = random.between(1, 150);
      const float p = static_cast<float>(random.uniform());
      std::vector<float> factors(static_cast<size_t>((count + 31) / 32 * 32 + 32));
      probe->dropout_factors(state, p, 9, 2, first, count, factors.data());
      for (int64_t i = 0; i < count; ++i) {
        const float expected = probe->dropout_factor(state, p, 9, 2, first + i);
        ASSERT_EQ(factors[i], expected);
        const int64_t block = (first + i) / 4;
        const uint32_t counter[4] = {static_cast<uint32_t>(block), 7,
                                     9 + (static_cast<uint32_t>(block >> 32) << 16), 41};
        uint32_t words[4];
        probe->philox(counter, state.seed, words);
        ASSERT_EQ(expected != 0, words[(first + i) % 4] >= p * 4294967296.0);
      }
    }
}

}  // namespace
}  // namespace stw::kernels::test
