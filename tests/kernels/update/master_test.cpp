// Masters of fewer bits: 24 bits in a bf16 half and a byte, and bf16 alone with stochastic rounding.
#include <algorithm>
#include <bit>

#include "tests/kernels/everywhere.h"
#include "tests/kernels/update/update.h"

namespace stw::kernels::test::master_test {
namespace {

constexpr int64_t count = 20011;

StepState some_state(uint64_t step = 3) {
  StepState s = unscaled_state();
  s.seed = 7, s.step = step;
  s.learning_rate = 1e-3, s.beta1 = 0.9, s.beta2 = 0.95, s.epsilon = 1e-8;
  s.coefficient = 1, s.step_size = 1e-3, s.correction2 = 1;
  return s;
}

float from_half(uint16_t half) { return std::bit_cast<float>(static_cast<uint32_t>(half) << 16); }

TEST(ShortRemainder, IsTheFp32ResultRoundedTo24Bits) {
  Random random(1);
  const std::vector<float> start = normals(random, count), gradient = normals(random, count);
  std::vector<float> plain(start.size());
  std::vector<uint16_t> half(start.size());
  std::vector<int8_t> remainder(start.size());
  for (size_t i = 0; i < start.size(); ++i) {  // A master of 24 bits.
    plain[i] = std::bit_cast<float>((std::bit_cast<uint32_t>(start[i]) + 0x80u) & 0xffffff00u);
    const uint32_t bits = std::bit_cast<uint32_t>(plain[i]);
    half[i] = static_cast<uint16_t>((bits + 0x8000u) >> 16);
    remainder[i] = static_cast<int8_t>(static_cast<uint8_t>(bits >> 8));
  }
  const StepState state = some_state();
  const std::vector<Buffer> out = everywhere([&](const Table& table, int threads) {
    std::vector<float> p = plain, m(start.size()), v(start.size()), m2 = m, v2 = v;
    run(
        table.adamw,
        [&] {
          UpdateArgs a = update_args(p, gradient, state, 0.1);
          a.first = m.data(), a.second = v.data();
          return a;
        }(),
        threads, 0);
    std::vector<uint16_t> h = half;
    std::vector<int8_t> r = remainder;
    UpdateArgs a = update_args(p, gradient, state, 0.1);
    a.dtype = DType::bf16, a.parameter = h.data(), a.short_remainder = r.data();
    a.first = m2.data(), a.second = v2.data();
    run(table.adamw, a, threads, 0);
    for (size_t i = 0; i < p.size(); ++i) {
      const uint32_t bits = (std::bit_cast<uint32_t>(p[i]) + 0x80u) & 0xffffff00u;
      EXPECT_EQ((static_cast<uint32_t>(h[i]) << 16) + (static_cast<uint32_t>(int32_t{r[i]}) << 8), bits) << i;
      EXPECT_EQ(h[i], (bits + 0x8000u) >> 16) << i;  // The half, which products use, is the rounded master.
      if (testing::Test::HasFailure()) break;
    }
    Buffer b(DType::bf16, count);
    std::memcpy(b.data(), h.data(), h.size() * 2);
    return std::vector<Buffer>{b};
  });
  EXPECT_EQ(out.size(), 1u);
}

// Parameters of 1 that a step moves by 1/50 of the distance to the next bf16 number: one in fifty changes.
TEST(StochasticRounding, MovesInTheMean) {
  const float step = 1.0f / 128 / 50;
  std::vector<float> p(1), gradient(static_cast<size_t>(count), 1.0f);
  StepState state = some_state();
  state.learning_rate = static_cast<double>(-step);  // Upward.
  const std::vector<Buffer> out = everywhere([&](const Table& table, int threads) {
    Buffer half(DType::bf16, count);
    auto* h = static_cast<uint16_t*>(half.data());
    std::fill_n(h, count, static_cast<uint16_t>(0x3f80));
    UpdateArgs a = update_args(p, gradient, state, 0);
    a.count = count, a.dtype = DType::bf16, a.parameter = h, a.first = nullptr;
    run(table.sgd, a, threads, 0);
    return std::vector<Buffer>{half};
  });
  const auto* h = static_cast<const uint16_t*>(out[0].data());
  int moved = 0;
  for (int64_t i = 0; i < count; ++i) {
    EXPECT_TRUE(from_half(h[i]) == 1.0f || from_half(h[i]) == 1.0f + 1.0f / 128);
    moved += from_half(h[i]) > 1;
  }
  EXPECT_NEAR(moved, count / 50.0, 4 * std::sqrt(count / 50.0));  // 400 of 20,011, four standard deviations.
}

TEST(StochasticRounding, DependsOnSeedStepStreamAndElementAlone) {
  Random random(2);
  const std::vector<float> gradient = normals(random, count);
  std::vector<float> unused(1);
  auto result = [&](uint64_t step, uint32_t stream, int64_t first, int64_t n) {
    const StepState state = some_state(step);
    std::vector<uint16_t> h(static_cast<size_t>(count), 0x3f81);
    UpdateArgs a = update_args(unused, gradient, state, 0);
    a.gradient[0] = gradient.data() + first;
    a.count = n, a.dtype = DType::bf16, a.parameter = h.data() + first, a.first = nullptr, a.stream = stream,
    a.first_element = first;
    run(tables().back().table->sgd, a, 1, 0);
    return h;
  };
  const std::vector<uint16_t> whole = result(3, 5, 0, count);
  EXPECT_EQ(result(3, 5, 0, count), whole);
  EXPECT_NE(result(4, 5, 0, count), whole);
  EXPECT_NE(result(3, 6, 0, count), whole);
  for (int64_t first : {256, 7 * 256, 40 * 256}) {  // A slice draws the same numbers as the whole.
    const std::vector<uint16_t> part = result(3, 5, first, 1000);
    for (int64_t i = first; i < first + 1000; ++i) ASSERT_EQ(part[i], whole[i]) << i;
  }
}

}  // namespace
}  // namespace stw::kernels::test::master_test
