// The update: norm of the gradients, AdamW with 32-bit moments, split bf16 parameters, and f16 parameters
// with a master.
#include <limits>

#include "tests/golden/adamw.h"
#include "tests/kernels/everywhere.h"
#include "tests/kernels/update/update.h"

namespace stw::kernels::test::adamw_test {
namespace {

TEST(SquareSum, FoldsChunksInOrder) {
  Random random(1);
  for (int64_t count : {1, 15, 4095, 4096, 4097, 16385, 50001})
    for (bool tied : {false, true}) {
      const std::vector<float> a = normals(random, count), b = normals(random, count);
      double sum = 0, expected = 0;
      const std::vector<Buffer> bits = everywhere([&](const Table& table, int threads) {
        const SquareSumArgs args{count, {a.data(), tied ? b.data() : nullptr}, &sum};
        run(table.square_sum, args, threads, square_sum_workspace(just(args), threads));
        Buffer out(DType::f32, 2);
        std::memcpy(out.data(), &sum, 8);
        return std::vector<Buffer>{out};
      });
      for (size_t i = 0; i < a.size(); ++i)
        expected += std::pow(static_cast<double>(a[i]) + (tied ? b[i] : 0.0f), 2);
      EXPECT_NEAR(sum / expected, 1, 1e-6);
    }
}

// Chunk sums whose sizes differ by more than the digits of a double: the last bits show their order.
TEST(SquareSum, FoldsChunksOfAnySizeInOrder) {
  Random random(3);
  for (int range : {0, 8, 15, 20, 60}) {
    std::vector<float> gradient = normals(random, 300 * 4096 + 5);
    for (size_t i = 0; i < gradient.size(); ++i)
      gradient[i] = std::ldexp(gradient[i], static_cast<int>(i / 4096 * 7919 % 97) * range / 97 - range);
    everywhere([&](const Table& table, int threads) {
      double sum = 0;
      const SquareSumArgs args{static_cast<int64_t>(gradient.size()), {gradient.data(), nullptr}, &sum};
      run(table.square_sum, args, threads, square_sum_workspace(just(args), threads));
      Buffer out(DType::f32, 2);
      std::memcpy(out.data(), &sum, 8);
      // The same sum in slices of so many chunks. The last slice may be one chunk, or a part of one.
      for (const int64_t slice : {1, 4, 150}) {
        double continued = -7;
        for (size_t first = 0; first < gradient.size(); first += static_cast<size_t>(slice) * square_chunk) {
          SquareSumArgs part = args;
          part.count = std::min(slice * square_chunk, static_cast<int64_t>(gradient.size() - first));
          part.gradient[0] = gradient.data() + first, part.sum = &continued, part.continues = first > 0;
          run(table.square_sum, part, threads, square_sum_workspace(just(part), threads));
        }
        EXPECT_EQ(std::memcmp(&continued, &sum, sizeof sum), 0) << range << " " << slice;
      }
      return std::vector<Buffer>{out};
    });
  }
}

TEST(SquareSum, KeepsNonFiniteValues) {
  for (float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    for (int64_t at : {0, 17, 4096, 9000})
      for (const NamedTable& entry : tables()) {
        std::vector<float> gradient(9001, 1.0f);
        gradient[at] = bad;
        double sum = 0;
        const SquareSumArgs args{9001, {gradient.data(), nullptr}, &sum};
        run(entry.table->square_sum, args, 2, square_sum_workspace(just(args), 2));
        EXPECT_FALSE(std::isfinite(sum));
      }
}

// The sum over bf16 gradients is the sum over the same numbers in fp32, wherever the gradients begin.
TEST(SquareSum, TakesGradientsInBf16) {
  Random random(2);
  for (int64_t count : {1, 15, 4095, 4097, 16385})
    for (int64_t first : {0, 1, 16})
      for (bool tied : {false, true}) {
        const Buffer a = Buffer::normal(DType::bf16, random, first + count),
                     b = Buffer::normal(DType::bf16, random, first + count);
        const std::vector<float> wide_a = a.floats(), wide_b = b.floats();
        everywhere([&](const Table& table, int threads) {
          double sum = 0, expected = -1;
          const auto half_at = [&](const Buffer& from) {
            return static_cast<const uint16_t*>(from.data()) + first;
          };
          const SquareSumArgs halves{count, {half_at(a), tied ? half_at(b) : nullptr}, &sum, DType::bf16};
          const SquareSumArgs floats{
              count, {wide_a.data() + first, tied ? wide_b.data() + first : nullptr}, &expected};
          run(table.square_sum, halves, threads, square_sum_workspace(just(halves), threads));
          run(table.square_sum, floats, threads, square_sum_workspace(just(floats), threads));
          EXPECT_EQ(sum, expected) << count << " from " << first;
          Buffer out(DType::f32, 2);
          std::memcpy(out.data(), &sum, 8);
          return std::vector<Buffer>{out};
        });
      }
}

// A sum that is not finite marks the step as skipped, unless it is already marked.
TEST(SquareSum, ChecksItself) {
  for (DType dtype : {DType::f32, DType::bf16})
    for (float value :
         {1.0f, 3e38f, -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
      for (uint64_t skip : {skip_none, skip_no_target, skip_not_finite, skip_outlier, skip_midway})
        for (const NamedTable& entry : tables()) {
          Buffer gradient(dtype, 5000);
          for (int64_t i = 0; i < 5000; ++i) gradient.set(i, i == 4321 ? value : 1.0f);
          double sum = 0;
          StepState state = unscaled_state();
          state.skip = skip, state.loss_scale = 7;
          StepState expected = state;
          if (value != 1.0f && skip == skip_none) expected.skip = skip_midway;
          const SquareSumArgs args{5000, {gradient.data(), nullptr}, &sum, dtype, &state};
          run(entry.table->square_sum, args, 2, square_sum_workspace(just(args), 2));
          EXPECT_EQ(std::isfinite(sum), value == 1.0f);
          EXPECT_EQ(std::memcmp(&state, &expected, sizeof state), 0)
              << entry.name << ", " << value << ", skip " << skip;
        }
}

float golden_number(int step, int element) {
  const uint32_t seed =
      static_cast<uint32_t>(step) * 7919u + static_cast<uint32_t>(element) * 104729u + 12345u;
  const uint32_t mixed = seed * 2654435761u;
  return (static_cast<float>(mixed >> 16) - 32768.0f) / 32768.0f;
}

TEST(AdamW, AgreesWithTorchAfterAHundredSteps) {
  for (const golden::AdamWCase& golden : golden::adamw_cases)
    for (const NamedTable& entry : tables()) {
      std::vector<float> p, m(golden::adamw_count), v = m, g = m;
      for (int i = 0; i < golden::adamw_count; ++i) p.push_back(golden_number(0, i));
      StepState state = unscaled_state();
      state.learning_rate = golden.learning_rate, state.beta1 = golden.beta1, state.beta2 = golden.beta2;
      state.epsilon = golden.epsilon, state.target_count = 1;
      for (int step = 1; step <= golden::adamw_steps; ++step) {
        for (int i = 0; i < golden::adamw_count; ++i) g[i] = golden_number(step, i);
        state.step = static_cast<uint64_t>(step - 1);
        state = finished(*entry.table, state, {1});
        UpdateArgs args = update_args(p, g, state, golden.decay);
        args.first = m.data(), args.second = v.data();
        run(entry.table->adamw, args, 1, 0);
      }
      for (size_t i = 0; i < p.size(); ++i)
        EXPECT_NEAR(p[i] / golden.weight[i], 1, 1e-6) << entry.name << " " << i;
    }
}

// One update of a random state; the result is compared by bits and by value.
struct Update {
  int64_t count;
  std::vector<float> p, m, v, g0, g1;
  StepState state = unscaled_state();
  Update(Random& random, int64_t n)
      : count(n),
        p(normals(random, n)),
        m(normals(random, n, 0.1)),
        v(normals(random, n, 0.1)),
        g0(normals(random, n)),
        g1(normals(random, n)) {
    for (float& value : v) value *= value;
    state.learning_rate = 1e-2, state.beta1 = 0.9, state.beta2 = 0.95, state.epsilon = 1e-8, state.step = 3;
    state.target_count = 7, state.max_norm = 1;
    state = finished(*tables()[0].table, state, {100});
  }
  // The arguments for the fp32 parameter p with its first gradient alone.
  UpdateArgs args(std::vector<float>& parameter, std::vector<float>& first,
                  std::vector<float>& second) const {
    UpdateArgs a = update_args(parameter, g0, state, 0.1);
    a.first = first.data(), a.second = second.data();
    return a;
  }
};

TEST(AdamW, SumsTiedGradientsAndUpdatesInFp32) {
  Random random(2);
  for (int64_t count : {1, 17, 1000, 16385, 30001})
    for (bool tied : {false, true}) {
      const Update u(random, count);
      const std::vector<Buffer> out = everywhere([&](const Table& table, int threads) {
        std::vector<float> p = u.p, m = u.m, v = u.v;
        UpdateArgs args = u.args(p, m, v);
        if (tied) args.gradient[1] = u.g1.data();
        run(table.adamw, args, threads, 0);
        return std::vector<Buffer>{Buffer(DType::f32, p), Buffer(DType::f32, m), Buffer(DType::f32, v)};
      });
      std::vector<double> p, m, v;
      for (size_t i = 0; i < u.p.size(); ++i) {
        const double g = u.state.coefficient * (static_cast<double>(u.g0[i]) + (tied ? u.g1[i] : 0.0f));
        m.push_back(0.9 * u.m[i] + 0.1 * g);
        v.push_back(0.95 * u.v[i] + 0.05 * g * g);
        p.push_back(u.p[i] * (1 - 1e-2 * 0.1) -
                    u.state.step_size * m[i] / (std::sqrt(v[i]) / u.state.correction2 + 1e-8));
      }
      EXPECT_LE(relative_error(out[0].floats(), p), 1e-6);
      EXPECT_LE(relative_error(out[1].floats(), m), 1e-6);
      EXPECT_LE(relative_error(out[2].floats(), v), 1e-6);
    }
}

// Splits as split masters are defined: nearest bf16, ties to the larger magnitude.
void split(float value, uint16_t& half, int16_t& remainder) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  half = static_cast<uint16_t>((bits >> 16) + ((bits & 0xffffu) >= 0x8000u ? 1u : 0u));
  remainder = static_cast<int16_t>(static_cast<int64_t>(bits) - (static_cast<int64_t>(half) << 16));
}

TEST(AdamW, SplitParametersFollowTheirMasterExactly) {
  Random random(3);
  for (int64_t count : {5, 1000, 20001}) {
    Update u(random, count);
    for (size_t i = 0; i < u.p.size(); i += 7)
      u.p[i] = -std::ldexp(1.0f + static_cast<float>(i % 5) * 0x1p-8f, 3);
    const std::vector<Buffer> out = everywhere([&](const Table& table, int threads) {
      std::vector<float> p = u.p, m = u.m, v = u.v, m2 = m, v2 = v;
      std::vector<uint16_t> half(u.p.size());
      std::vector<int16_t> remainder(u.p.size());
      for (size_t i = 0; i < u.p.size(); ++i) split(u.p[i], half[i], remainder[i]);
      UpdateArgs args = u.args(p, m, v);
      run(table.adamw, args, threads, 0);
      args.dtype = DType::bf16, args.parameter = half.data(), args.remainder = remainder.data();
      args.first = m2.data(), args.second = v2.data();
      run(table.adamw, args, threads, 0);
      uint64_t wrong = 0;
      for (size_t i = 0; i < u.p.size(); ++i) {
        uint16_t expected_half;
        int16_t expected_remainder;
        split(p[i], expected_half, expected_remainder);
        wrong += half[i] != expected_half || remainder[i] != expected_remainder;
      }
      EXPECT_EQ(wrong, 0u);
      EXPECT_TRUE(same_bits(m, m2) && same_bits(v, v2));
      return std::vector<Buffer>{Buffer(DType::f32, p)};
    });
  }
}

TEST(AdamW, HalfParametersAreTheirMasterRounded) {
  Random random(6);
  for (int64_t count : {5, 1000, 20001}) {
    Update u(random, count);
    for (size_t i = 0; i < u.p.size(); i += 3) u.p[i] *= i % 2 ? 1e5f : 1e-6f;  // Infinite, subnormal.
    everywhere([&](const Table& table, int threads) {
      std::vector<float> p = u.p, m = u.m, v = u.v, master = p, m2 = m, v2 = v;
      Buffer half(DType::f16, count);
      UpdateArgs args = u.args(p, m, v);
      run(table.adamw, args, threads, 0);
      args.dtype = DType::f16, args.parameter = half.data(), args.master = master.data();
      args.first = m2.data(), args.second = v2.data();
      run(table.adamw, args, threads, 0);
      EXPECT_TRUE(same_bits(p, master) && same_bits(m, m2) && same_bits(v, v2));
      EXPECT_TRUE(same_bits(half, Buffer(DType::f16, p)));
      return std::vector<Buffer>{half};
    });
  }
}

// With learning rate 0 and no gradient, every master must stay the same, bit for bit.
TEST(AdamW, SplitParametersSurviveTheRoundTrip) {
  Random random(4);
  std::vector<uint32_t> patterns;
  for (uint32_t high : {0u, 0x0080u, 0x3f80u, 0x7f7fu, 0x8000u, 0xbf80u, 0xff7fu})
    for (uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) patterns.push_back(high << 16 | low);
  while (patterns.size() < 200000) {
    const auto bits = static_cast<uint32_t>(random.bits());
    if ((bits & 0x7f800000u) != 0x7f800000u) patterns.push_back(bits);
  }
  StepState state = unscaled_state();
  state.beta1 = 0.9, state.beta2 = 0.95, state.epsilon = 1e-8, state.target_count = 1;
  state = finished(*tables()[0].table, state, {0});
  const std::vector<float> g(patterns.size());
  for (const NamedTable& entry : tables()) {
    std::vector<uint16_t> half(patterns.size());
    std::vector<int16_t> remainder(patterns.size());
    for (size_t i = 0; i < patterns.size(); ++i) {
      float value;
      std::memcpy(&value, &patterns[i], 4);
      split(value, half[i], remainder[i]);
    }
    const auto half_before = half;
    const auto remainder_before = remainder;
    std::vector<float> m(patterns.size()), v = m, unused = m;
    UpdateArgs args = update_args(unused, g, state, 0.1);
    args.dtype = DType::bf16, args.parameter = half.data(), args.remainder = remainder.data();
    args.first = m.data(), args.second = v.data();
    run(entry.table->adamw, args, 2, 0);
    uint64_t wrong = 0;
    for (size_t i = 0; i < patterns.size(); ++i) {
      const auto low = static_cast<uint32_t>(static_cast<int32_t>(remainder[i]));
      const uint32_t back = (static_cast<uint32_t>(half[i]) << 16) + low;
      wrong += back != patterns[i];
    }
    EXPECT_EQ(wrong, 0u) << entry.name;
    EXPECT_EQ(half, half_before);
    EXPECT_EQ(remainder, remainder_before);
  }
}

TEST(AdamW, SkippedStepTouchesNothing) {
  Random random(5);
  for (Skip skip : {skip_no_target, skip_not_finite, skip_outlier}) {
    Update u(random, 1000);
    u.state.skip = skip;
    for (const NamedTable& entry : tables()) {
      std::vector<float> p = u.p, m = u.m, v = u.v;
      run(entry.table->adamw, u.args(p, m, v), 2, 0);
      EXPECT_TRUE(same_bits(p, u.p) && same_bits(m, u.m) && same_bits(v, u.v));
    }
  }
}

}  // namespace
}  // namespace stw::kernels::test::adamw_test
