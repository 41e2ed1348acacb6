// The scalars of a step: normalising, unscaling, clipping; skipped steps; running statistics; the dynamic
// loss scale.
#include <tuple>

#include "tests/kernels/update/update.h"

namespace stw::kernels::test::finish_step_test {
namespace {

StepState start_state() {
  StepState state = unscaled_state();
  state.learning_rate = 1e-3, state.beta1 = 0.9, state.beta2 = 0.999, state.epsilon = 1e-8,
  state.max_norm = 1;
  state.loss_sum = 16, state.target_count = 4, state.step = 99;
  return state;
}

TEST(FinishStep, NormalisesClipsAndSkips) {
  const StepState start = start_state();
  for (const NamedTable& entry : tables()) {
    StepState s = finished(*entry.table, start, {200, 56});  // Norm 16 / 4 = 4 becomes 1.
    EXPECT_EQ(s.skip, skip_none);
    EXPECT_EQ(s.loss, 4);  // Losses {1,2,3} and {10}: 4, where a mean of means is 6.
    EXPECT_EQ(s.grad_norm, 4);
    EXPECT_NEAR(s.coefficient * 16, 1, 1e-6);
    EXPECT_NEAR(s.step_size, 1e-3 / (1 - std::pow(0.9, 100)), 1e-15);
    EXPECT_NEAR(s.correction2, std::sqrt(1 - std::pow(0.999, 100)), 1e-14);
    EXPECT_EQ(finished(*entry.table, start, {1}).coefficient, 0.25);  // Below the limit: only 1 / N.
    StepState changed = start;
    changed.max_norm = 0;
    EXPECT_EQ(finished(*entry.table, changed, {256}).coefficient, 0.25);
    EXPECT_EQ(finished(*entry.table, start, {}).grad_norm, 0);
    EXPECT_EQ(finished(*entry.table, start, {NAN}).skip, skip_not_finite);
    s = finished(*entry.table, start, {1, INFINITY});
    EXPECT_EQ(s.skip, skip_not_finite);
    EXPECT_EQ(s.coefficient, 0);
    changed = start;
    changed.loss_sum = INFINITY;
    EXPECT_EQ(finished(*entry.table, changed, {1}).skip, skip_not_finite);
    changed = start;
    changed.target_count = 0, changed.loss_sum = 0;
    s = finished(*entry.table, changed, {0});
    EXPECT_EQ(s.skip, skip_no_target);
    EXPECT_EQ(s.loss, 0);
    EXPECT_EQ(s.grad_norm, 0);
    EXPECT_EQ(s.coefficient, 0);
  }
}

// Gradients with a power of two as factor give the same norm and clipping; only the coefficient removes the
// factor.
TEST(FinishStep, UnscalesExactly) {
  for (const NamedTable& entry : tables())
    for (double norm : {0.3, 16.0}) {
      StepState scaled = start_state();
      scaled.loss_scale = 65536, scaled.batch_factor = 0x1p-5;
      const double scale = 2048;
      const StepState expected = finished(*entry.table, start_state(), {norm * norm});
      const StepState s = finished(*entry.table, scaled, {norm * norm * scale * scale});
      EXPECT_EQ(s.loss, expected.loss);
      EXPECT_EQ(s.grad_norm, expected.grad_norm);
      EXPECT_EQ(s.coefficient * scale, expected.coefficient);
      EXPECT_EQ(s.loss_scale, 65536);
    }
}

struct ScaleStep {
  char kind;  // +: finite, x: overflow, 0: no targets.
  double scale;
  uint64_t good_steps;
};

void follow(const Table& table, StepState state, const std::vector<ScaleStep>& trace) {
  for (size_t i = 0; i < trace.size(); ++i) {
    state.target_count = trace[i].kind == '0' ? 0 : 4;
    state = finished(table, state, {trace[i].kind == 'x' ? INFINITY : 1.0});
    ASSERT_EQ(state.loss_scale, trace[i].scale) << "step " << i;
    ASSERT_EQ(state.good_steps, trace[i].good_steps) << "step " << i;
  }
}

TEST(LossScale, FollowsOverflows) {
  StepState start = start_state();
  start.loss_scale = 65536, start.growth_interval = 3;
  for (const NamedTable& entry : tables())
    follow(*entry.table, start,
           {{'+', 65536, 1},
            {'+', 65536, 2},
            {'+', 131072, 0},
            {'x', 65536, 0},
            {'x', 32768, 0},
            {'+', 32768, 1},
            {'x', 16384, 0},
            {'+', 16384, 1},
            {'+', 16384, 2},
            {'x', 8192, 0},
            {'+', 8192, 1},
            {'0', 8192, 1},
            {'+', 8192, 2},
            {'0', 8192, 2},
            {'+', 16384, 0},
            {'+', 16384, 1},
            {'+', 16384, 2},
            {'+', 32768, 0},
            {'x', 16384, 0}});
}

TEST(LossScale, StopsAtTheLargestPowerOfTwo) {
  StepState start = start_state();
  start.loss_scale = 0x1p125, start.growth_interval = 2;
  for (const NamedTable& entry : tables())
    follow(*entry.table, start,
           {{'+', 0x1p125, 1},
            {'+', 0x1p126, 0},
            {'+', 0x1p126, 1},
            {'+', 0x1p127, 0},
            {'+', 0x1p127, 1},
            {'+', 0x1p127, 0},
            {'+', 0x1p127, 1},
            {'+', 0x1p127, 0},
            {'x', 0x1p126, 0}});
}

TEST(LossScale, StaysWithoutAnInterval) {
  StepState start = start_state();
  start.loss_scale = 1024;
  for (const NamedTable& entry : tables())
    follow(*entry.table, start, {{'+', 1024, 0}, {'x', 1024, 0}, {'0', 1024, 0}, {'+', 1024, 0}});
}

StepState observed(const Table& table, StepState state, double loss, double norm) {
  state.target_count = 1, state.loss_sum = loss;
  return finished(table, state, {norm * norm});
}

// The running mean and variance are those of all values. Up to 64 values have equal weights. Later ones have
// weight w·(1 - w)^age, and the first 64 share the rest.
TEST(Outliers, StatisticsAreExponentiallyWeightedAfterAnEvenStart) {
  static_assert(outlier_weight > 1.0 / 65 && outlier_weight < 1.0 / 64);
  Random random(1);
  std::vector<double> losses, norms;
  std::vector<StepState> first;
  for (int i = 0; i < 200; ++i)
    losses.push_back(3 + random.normal()), norms.push_back(std::fabs(random.normal()));
  for (const NamedTable& entry : tables()) {
    StepState s = start_state();
    for (size_t n = 0; n < losses.size(); ++n) {
      s = observed(*entry.table, s, losses[n], norms[n]);
      if (first.size() <= n) first.push_back(s);
      ASSERT_EQ(std::memcmp(&s, &first[n], sizeof s), 0) << entry.name << ", step " << n;
      for (const auto& [values, mean, variance] : {std::tuple{&losses, s.loss_mean, s.loss_variance},
                                                   std::tuple{&norms, s.norm_mean, s.norm_variance}}) {
        double expected = 0, squares = 0;
        auto weight = [&](size_t i) {
          if (n < 64) return 1 / static_cast<double>(n + 1);
          return i < 64 ? std::pow(1 - outlier_weight, static_cast<double>(n - 63)) / 64
                        : std::pow(1 - outlier_weight, static_cast<double>(n - i)) * outlier_weight;
        };
        for (size_t i = 0; i <= n; ++i) expected += weight(i) * (*values)[i];
        for (size_t i = 0; i <= n; ++i) squares += weight(i) * std::pow((*values)[i] - expected, 2);
        ASSERT_NEAR(mean, expected, 1e-12);
        ASSERT_NEAR(variance, squares, 1e-12);
      }
    }
    EXPECT_EQ(s.observed, losses.size());
  }
}

// The first steps of a run lower the loss a lot. When steps are first judged, a spike as high as the first
// loss must be an outlier.
TEST(Outliers, TheFirstLossesOfARunDoNotHideASpike) {
  for (const NamedTable& entry : tables()) {
    StepState s = start_state();
    s.outlier_limit = 6;
    for (int i = 0; i < 100; ++i)
      s = observed(*entry.table, s, 6 + 4.8 * std::exp(-i / 10.0) + (i % 2 ? 0.1 : -0.1), 1);
    ASSERT_EQ(s.skip, skip_none);
    EXPECT_EQ(observed(*entry.table, s, 13, 1).skip, skip_outlier) << entry.name;
  }
}

TEST(Outliers, AreSkippedOnceHistoryIsLongEnough) {
  for (const NamedTable& entry : tables())
    for (bool in_loss : {true, false}) {
      StepState s = start_state();
      s.outlier_limit = 4, s.growth_interval = 1000, s.loss_scale = 256;
      const auto step = [&](double x) {
        s = observed(*entry.table, s, in_loss ? x : 1, (in_loss ? 1 : x) * 256);
      };
      const double &mean = in_loss ? s.loss_mean : s.norm_mean,
                   &variance = in_loss ? s.loss_variance : s.norm_variance;
      for (uint64_t i = 0; i + 1 < outlier_history; ++i) {
        step(i % 2 ? 3 : 1);
        ASSERT_EQ(s.skip, skip_none);
      }
      step(1000);  // The last step that is not judged.
      EXPECT_EQ(s.skip, skip_none);
      EXPECT_EQ(s.observed, outlier_history);
      EXPECT_EQ(s.good_steps, outlier_history);
      for (double size : {1e6, 1e9}) {
        const StepState before = s;
        const double old_mean = mean, deviation = std::sqrt(variance);
        step(size);
        EXPECT_EQ(s.skip, skip_outlier);
        EXPECT_EQ(s.coefficient, 0);
        EXPECT_EQ(s.good_steps, before.good_steps);
        EXPECT_EQ(s.loss_scale, before.loss_scale);
        EXPECT_EQ(s.observed, before.observed + 1);
        // The outlier enters the statistics as mean + 4 standard deviations.
        EXPECT_NEAR(mean, old_mean + outlier_weight * 4 * deviation, 1e-9);
        EXPECT_NEAR(variance, (1 - outlier_weight) * (1 + outlier_weight * 16) * deviation * deviation, 1e-6);
      }
      step(-1e6);  // Far below; for a norm, which has no sign, far above.
      EXPECT_EQ(s.skip, in_loss ? skip_none : skip_outlier);
      s.outlier_limit = 0;
      step(1e12);
      EXPECT_EQ(s.skip, skip_none);
    }
}

// A loss that has always been 1 has the least deviation: a larger one is an outlier, a smaller one is not.
TEST(Outliers, OnlyCountUpward) {
  for (const NamedTable& entry : tables()) {
    StepState s = start_state();
    s.outlier_limit = 5;
    for (uint64_t i = 0; i < outlier_history; ++i) s = observed(*entry.table, s, 1, 1);
    EXPECT_EQ(s.loss_mean, 1);
    EXPECT_EQ(s.loss_variance, 0);
    const double limit = 1 + 5 * outlier_spread;
    EXPECT_EQ(observed(*entry.table, s, 1 + 0.999 * 5 * outlier_spread, 1).skip, skip_none);
    const StepState above = observed(*entry.table, s, 1 + 1.001 * 5 * outlier_spread, 1);
    EXPECT_EQ(above.skip, skip_outlier);
    EXPECT_EQ(above.loss_mean, 1 + outlier_weight * (limit - 1));
    EXPECT_GT(above.loss_variance, 0);
    EXPECT_EQ(observed(*entry.table, s, 1, 1 + 1.001 * 5 * outlier_spread).skip, skip_outlier);
    // If the loss stays at a new value, that value does not remain an outlier.
    StepState moved = s;
    int skipped = 0;
    for (int i = 0; i < 200; ++i)
      skipped += (moved = observed(*entry.table, moved, 1.01, 1)).skip == skip_outlier;
    EXPECT_GT(skipped, 3) << entry.name;
    EXPECT_LT(skipped, 40) << entry.name;
    EXPECT_EQ(observed(*entry.table, s, 1, 1).skip, skip_none);
    const StepState below = observed(*entry.table, s, 0.5, 0);
    EXPECT_EQ(below.skip, skip_none);
    EXPECT_EQ(below.loss_mean, 1 - outlier_weight * 0.5);
    EXPECT_NEAR(below.norm_variance, (1 - outlier_weight) * outlier_weight, 1e-15);
  }
}

TEST(Outliers, StepsWithoutAVerdictLeaveTheStatistics) {
  for (const NamedTable& entry : tables()) {
    StepState s = start_state();
    s = observed(*entry.table, s, 2, 3);
    s = observed(*entry.table, s, 3, 5);
    for (int kind = 0; kind < 3; ++kind) {
      StepState bad = s;
      bad.target_count = kind == 0 ? 0 : 1, bad.loss_sum = kind == 1 ? NAN : 2;
      bad = finished(*entry.table, bad, {kind == 2 ? INFINITY : 1.0});
      EXPECT_EQ(bad.skip, kind == 0 ? skip_no_target : skip_not_finite);
      EXPECT_EQ(bad.observed, 2u);
      EXPECT_EQ(std::memcmp(&bad.loss_mean, &s.loss_mean, 4 * sizeof(double)), 0);
    }
  }
}

}  // namespace
}  // namespace stw::kernels::test::finish_step_test
