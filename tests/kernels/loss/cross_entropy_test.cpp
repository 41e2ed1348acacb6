// cross_entropy, with and without label smoothing, z-loss, weights and a scaled gradient, and loss_sum,
// compared with double precision. Bits must be the same on every instruction set and with every number of
// threads.
#include "tests/kernels/update/update.h"

namespace stw::kernels::test::cross_entropy_test {
namespace {

struct Case {
  int64_t rows, vocabulary;
  DType dtype;
  double deviation;
  double smoothing = 0, z_loss = 0, scale = 1;
  std::vector<float> weights = {};  // Empty: null.
};

// The state of a step with the settings of the case. The gradient's scale is the product of two fields.
StepState state_of(const Case& c) {
  StepState state = unscaled_state();
  state.label_smoothing = c.smoothing, state.z_loss = c.z_loss;
  state.loss_scale = c.scale * 1024, state.batch_factor = 1.0 / 1024;
  return state;
}

struct Outcome {
  std::vector<float> loss;
  Buffer logits;
};

std::vector<int32_t> random_targets(Random& random, const Case& c) {
  std::vector<int32_t> targets;
  for (int64_t row = 0; row < c.rows; ++row)
    targets.push_back(random.between(0, 4) == 0 ? ignored_target
                                                : static_cast<int32_t>(random.between(0, c.vocabulary - 1)));
  return targets;
}

Outcome compute(const Table& table, const Case& c, const Buffer& logits, const std::vector<int32_t>& targets,
                bool gradient, int threads, const StepState* state, int64_t stride = 0, bool fast = false) {
  Outcome outcome{std::vector<float>(targets.size(), NAN), logits};
  CrossEntropyArgs args = {};
  args.rows = c.rows, args.vocabulary = c.vocabulary, args.targets = targets.data();
  args.logits = outcome.logits.matrix(), args.gradient = gradient, args.token_loss = outcome.loss.data();
  args.stride = stride > 0 ? stride : c.vocabulary, args.fast = fast,
  args.weights = c.weights.empty() ? nullptr : c.weights.data(), args.state = state;
  run(table.cross_entropy, args, threads, cross_entropy_workspace(args, threads));
  return outcome;
}
Outcome compute(const Table& table, const Case& c, const Buffer& logits, const std::vector<int32_t>& targets,
                bool gradient, int threads) {
  const StepState state = state_of(c);
  return compute(table, c, logits, targets, gradient, threads, &state);
}

// A row's loss and gradient from their definitions in kernels.h, without the row's weight; the gradient
// without the scale.
struct Row {
  double loss;
  std::vector<double> gradient;
};
Row reference_row(const Case& c, const std::vector<double>& x, int64_t target) {
  const auto vocabulary = static_cast<double>(x.size());
  double largest = -INFINITY, sum = 0, total = 0;
  for (double value : x) largest = std::fmax(largest, value), total += value;
  for (double value : x) sum += std::exp(value - largest);
  const double l = std::log(sum) + largest, smooth = c.smoothing;
  Row row;
  row.loss = l - (1 - smooth) * x[target] - smooth * total / vocabulary + c.z_loss * l * l;
  for (size_t j = 0; j < x.size(); ++j)
    row.gradient.push_back((1 + 2 * c.z_loss * l) * std::exp(x[j] - largest) / sum - smooth / vocabulary -
                           (static_cast<int64_t>(j) == target ? 1 - smooth : 0));
  return row;
}
double weight_of(const Case& c, size_t row) {
  return c.weights.empty() ? 1 : static_cast<double>(c.weights[row]);
}
std::vector<double> row_of(const Buffer& logits, const Case& c, int64_t row) {
  std::vector<double> x;
  for (int64_t j = 0; j < c.vocabulary; ++j) x.push_back(logits.get(row * c.vocabulary + j));
  return x;
}

void check(const Case& c, uint64_t seed) {
  SCOPED_TRACE(testing::Message() << c.rows << " rows, vocabulary " << c.vocabulary << ", deviation "
                                  << c.deviation << ", " << name_of(c.dtype) << ", smoothing " << c.smoothing
                                  << ", z-loss " << c.z_loss << ", scale " << c.scale
                                  << (c.weights.empty() ? "" : ", weighted"));
  Random random(seed);
  const Buffer logits = Buffer::normal(c.dtype, random, c.rows * c.vocabulary, c.deviation);
  const std::vector<int32_t> targets = random_targets(random, c);
  std::vector<double> loss, gradient;
  for (int64_t row = 0; row < c.rows; ++row) {
    const int32_t target = targets[row];
    const bool ignored = target == ignored_target;
    const Row expected = reference_row(c, row_of(logits, c, row), ignored ? 0 : target);
    const double weight = weight_of(c, static_cast<size_t>(row));
    loss.push_back(ignored ? 0 : expected.loss * weight);
    for (double value : expected.gradient) gradient.push_back(ignored ? 0 : value * c.scale * weight);
  }
  const Outcome first = compute(*tables()[0].table, c, logits, targets, true, 1);
  if (c.vocabulary > 1) {  // With one entry, every loss and gradient is 0 except for the z-loss.
    EXPECT_LE(relative_error(first.loss, loss), 1e-5);
    EXPECT_LE(relative_error(first.logits.floats(), gradient), tolerance(c.dtype));
  }
  for (size_t i = 0; i < targets.size(); ++i)
    if (targets[i] == ignored_target || (c.vocabulary == 1 && c.z_loss == 0)) {
      EXPECT_EQ(first.loss[i], 0.0f);
    }
  for (const NamedTable& named : tables())
    for (int threads : {1, 2, 3, 5}) {
      SCOPED_TRACE(testing::Message() << named.name << " " << threads);
      const Outcome both = compute(*named.table, c, logits, targets, true, threads);
      EXPECT_TRUE(same_bits(both.loss, first.loss));
      EXPECT_TRUE(same_bits(both.logits, first.logits));
      const Outcome only_loss = compute(*named.table, c, logits, targets, false, threads);
      EXPECT_TRUE(same_bits(only_loss.loss, first.loss));
      EXPECT_TRUE(same_bits(only_loss.logits, logits));
    }
}

TEST(CrossEntropy, AgreesWithDoublePrecision) {
  uint64_t seed = 1;
  for (DType dtype : all_dtypes) {
    for (int64_t vocabulary : {1, 2, 15, 16, 17, 63, 64, 65, 257, 1001})
      check({19, vocabulary, dtype, 2.0}, seed++);
    for (int64_t vocabulary : {loss_columns, loss_columns + 17, 3 * loss_columns + 1105})
      check({4, vocabulary, dtype, 3.0}, seed++);
  }
}

TEST(CrossEntropy, SmoothsPenalisesAndScales) {
  uint64_t seed = 100;
  const double terms[][3] = {{0.1, 0, 1}, {0, 1e-2, 1}, {0.25, 1e-3, 16}};
  for (DType dtype : all_dtypes)
    for (const auto& [smoothing, z_loss, scale] : terms) {
      for (int64_t vocabulary : {1, 2, 15, 16, 17, 63, 64, 65, 257, 1001})
        check({19, vocabulary, dtype, 2.0, smoothing, z_loss, scale}, seed++);
      check({4, 3 * loss_columns + 1105, dtype, 3.0, smoothing, z_loss, scale}, seed++);
    }
}

TEST(CrossEntropy, GradientsAgreeWithFiniteDifferences) {
  Random random(12);
  for (const Case& c : {Case{5, 23, DType::f32, 2, 0.1, 0, 1}, Case{5, 23, DType::f32, 2, 0, 1e-2, 1},
                        Case{5, 70, DType::f32, 2, 0.3, 1e-3, 0.125},
                        Case{5, 70, DType::f32, 2, 0.3, 1e-3, 2, {2, 0.3f, 0, 1, 5}}}) {
    const Buffer logits = Buffer::normal(c.dtype, random, c.rows * c.vocabulary, c.deviation);
    const std::vector<int32_t> targets = {0, 3, 22, 7, 16};
    std::vector<double> slopes;
    for (int64_t row = 0; row < c.rows; ++row) {
      std::vector<double> x = row_of(logits, c, row);
      const int32_t target = targets[row];
      for (double& value : x) {
        const double kept = value;
        value = kept + 1e-5;
        const double above = reference_row(c, x, target).loss;
        value = kept - 1e-5;
        const double slope = (above - reference_row(c, x, target).loss) / 2e-5;
        slopes.push_back(slope * c.scale * weight_of(c, static_cast<size_t>(row)));
        value = kept;
      }
    }
    for (const NamedTable& named : tables()) {
      const Outcome outcome = compute(*named.table, c, logits, targets, true, 1);
      EXPECT_LE(relative_error(outcome.logits.floats(), slopes), 1e-6) << named.name;
    }
  }
}

// If rows lie further apart than they are long, the bits are the same, and zeros follow a gradient.
TEST(CrossEntropy, RowsMayLieFurtherApart) {
  Random random(14);
  for (DType dtype : all_dtypes)
    for (const auto& [vocabulary, stride] :
         {std::pair<int64_t, int64_t>{61, 64}, {61, 67}, {130, 144}, {1, 16}, {64, 64}, {300, 512}}) {
      const Case c{9, vocabulary, dtype, 2, 0.1, 1e-3, 1, {1, 0, 1, 2, 1, 1, 0.5f, 1, 1}};
      const Buffer logits = Buffer::normal(dtype, random, c.rows * vocabulary, c.deviation);
      const std::vector<int32_t> targets = random_targets(random, c);
      const StepState state = state_of(c);
      for (const NamedTable& named : tables())
        for (bool gradient : {false, true}) {
          SCOPED_TRACE(testing::Message() << named.name << ", vocabulary " << vocabulary << ", stride "
                                          << stride << ", " << name_of(dtype));
          const Outcome expected = compute(*named.table, c, logits, targets, gradient, 1, &state);
          const Buffer apart = spread(logits, vocabulary, stride, [](int64_t) { return NAN; });
          const Outcome found = compute(*named.table, c, apart, targets, gradient, 2, &state, stride);
          EXPECT_TRUE(same_bits(found.loss, expected.loss));
          EXPECT_TRUE(same_bits(columns_of(found.logits, 0, vocabulary, stride), expected.logits));
          const Buffer past(dtype, c.rows * (stride - vocabulary));
          if (stride > vocabulary) {
            EXPECT_TRUE(same_bits(columns_of(found.logits, vocabulary, stride, stride),
                                  gradient ? past : columns_of(apart, vocabulary, stride, stride)));
          }
        }
    }
}

// Sums in the order of the device; the CPU has only one order.
TEST(CrossEntropy, FastOneAgreesWithDoublePrecision) {
  Random random(15);
  for (DType dtype : {DType::bf16, DType::f16})
    for (const auto& [vocabulary, stride] :
         {std::pair<int64_t, int64_t>{61, 64}, {256, 256}, {1001, 1008}, {1, 16}, {8, 8}, {33000, 33008}})
      for (bool plain : {true, false}) {
        const Case c = plain ? Case{9, vocabulary, dtype, 3}
                             : Case{9, vocabulary, dtype, 3, 0.1, 1e-3, 1, {1, 0, 1, 2, 1, 1, 0.5f, 1, 1}};
        SCOPED_TRACE(testing::Message() << "vocabulary " << vocabulary << ", stride " << stride << ", "
                                        << name_of(dtype) << (plain ? "" : ", with all terms"));
        const Buffer logits = Buffer::normal(dtype, random, c.rows * vocabulary, c.deviation);
        const std::vector<int32_t> targets = random_targets(random, c);
        const StepState state = state_of(c);
        std::vector<double> loss, gradient;
        for (int64_t row = 0; row < c.rows; ++row) {
          const bool ignored = targets[row] == ignored_target;
          const Row expected = reference_row(c, row_of(logits, c, row), ignored ? 0 : targets[row]);
          const double weight = ignored ? 0 : weight_of(c, static_cast<size_t>(row));
          loss.push_back(expected.loss * weight);
          for (double value : expected.gradient) gradient.push_back(value * c.scale * weight);
        }
        const Buffer apart = spread(logits, vocabulary, stride, [](int64_t) { return NAN; });
        for (const NamedTable& named : tables()) {
          const Outcome found = compute(*named.table, c, apart, targets, true, 2, &state, stride, true);
          const Outcome only_loss = compute(*named.table, c, apart, targets, false, 2, &state, stride, true);
          EXPECT_TRUE(same_bits(only_loss.loss, found.loss)) << named.name;
          EXPECT_TRUE(same_bits(only_loss.logits, apart)) << named.name;
          if (vocabulary > 1) {
            EXPECT_LE(relative_error(found.loss, loss), 1e-5) << named.name;
            EXPECT_LE(relative_error(columns_of(found.logits, 0, vocabulary, stride).floats(), gradient),
                      tolerance(dtype))
                << named.name;
          }
          if (stride > vocabulary) {
            EXPECT_TRUE(same_bits(columns_of(found.logits, vocabulary, stride, stride),
                                  Buffer(dtype, c.rows * (stride - vocabulary))));
          }
        }
      }
}

// A value that is not finite makes the result not finite. A logit of -inf, which is an impossible token, does
// not.
TEST(CrossEntropy, FastOneHidesNoNumberThatIsNotFinite) {
  for (const NamedTable& named : tables())
    for (float odd : {INFINITY, static_cast<float>(NAN), -INFINITY}) {
      const Case c{3, 300, DType::bf16, 1};
      Buffer logits(DType::bf16, c.rows * c.vocabulary);
      logits.set(300 + 77, odd);
      const StepState state = state_of(c);
      const Outcome found = compute(*named.table, c, spread(logits, 300, 304, [](int64_t) { return NAN; }),
                                    {5, 6, 7}, true, 1, &state, 304, true);
      EXPECT_EQ(std::isfinite(found.loss[1]), odd == -INFINITY) << named.name << " " << odd;
      EXPECT_NEAR(found.loss[0], std::log(300.0), 1e-5);
      EXPECT_NEAR(found.loss[2], std::log(300.0), 1e-5);
    }
}

// A power of two changes no digit of the gradient, and nothing of the loss.
TEST(CrossEntropy, ScaleIsExact) {
  Random random(13);
  for (const Case& plain : {Case{9, 77, DType::f32, 2}, Case{9, 77, DType::f32, 2, 0.1, 1e-3}}) {
    const Buffer logits = Buffer::normal(plain.dtype, random, plain.rows * plain.vocabulary, plain.deviation);
    const std::vector<int32_t> targets = random_targets(random, plain);
    for (const NamedTable& named : tables()) {
      const Outcome expected = compute(*named.table, plain, logits, targets, true, 1);
      for (int power : {-30, -4, 1, 7, 60}) {
        Case scaled = plain;
        scaled.scale = std::ldexp(1.0, power);
        const Outcome outcome = compute(*named.table, scaled, logits, targets, true, 1);
        EXPECT_TRUE(same_bits(outcome.loss, expected.loss));
        for (int64_t i = 0; i < logits.count(); ++i)
          ASSERT_EQ(outcome.logits.get(i), std::ldexp(expected.logits.get(i), power))
              << named.name << " " << power;
      }
    }
  }
}

TEST(CrossEntropy, NeutralStateChangesNoBit) {
  Random random(14);
  for (DType dtype : all_dtypes) {
    const Case c = {9, 301, dtype, 2};
    const Buffer logits = Buffer::normal(dtype, random, c.rows * c.vocabulary, c.deviation);
    const std::vector<int32_t> targets = random_targets(random, c);
    for (const NamedTable& named : tables()) {
      const Outcome with = compute(*named.table, c, logits, targets, true, 1);
      const Outcome without = compute(*named.table, c, logits, targets, true, 1, nullptr);
      EXPECT_TRUE(same_bits(with.loss, without.loss) && same_bits(with.logits, without.logits)) << named.name;
    }
  }
}

std::vector<float> random_weights(Random& random, int64_t rows) {
  const float some[] = {0, 1, 0.25f, 3};
  std::vector<float> weights;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t choice = random.between(0, 7);
    weights.push_back(choice < 4 ? some[choice] : static_cast<float>(2 * random.uniform()));
  }
  return weights;
}

TEST(CrossEntropy, WeightsLossAndGradient) {
  uint64_t seed = 200;
  const double terms[][3] = {{0, 0, 1}, {0.1, 0, 1}, {0.25, 1e-3, 16}};
  Random random(15);
  for (DType dtype : all_dtypes)
    for (const auto& [smoothing, z_loss, scale] : terms)
      for (int64_t vocabulary : {1, 2, 17, 64, 257, 1001})
        check({19, vocabulary, dtype, 2.0, smoothing, z_loss, scale, random_weights(random, 19)}, seed++);
}

TEST(CrossEntropy, WeightsOfOneChangeNoBit) {
  Random random(16);
  for (DType dtype : all_dtypes)
    for (const Case& plain : {Case{9, 301, dtype, 2}, Case{9, 301, dtype, 2, 0.1, 1e-3, 8}}) {
      const Buffer logits = Buffer::normal(dtype, random, plain.rows * plain.vocabulary, plain.deviation);
      const std::vector<int32_t> targets = random_targets(random, plain);
      Case ones = plain;
      ones.weights.assign(9, 1.0f);
      for (const NamedTable& named : tables()) {
        const Outcome expected = compute(*named.table, plain, logits, targets, true, 1);
        const Outcome outcome = compute(*named.table, ones, logits, targets, true, 1);
        EXPECT_TRUE(same_bits(outcome.loss, expected.loss)) << named.name;
        EXPECT_TRUE(same_bits(outcome.logits, expected.logits)) << named.name;
      }
    }
}

TEST(CrossEntropy, WeightOfZeroGivesZero) {
  for (DType dtype : all_dtypes) {
    const Case c = {3, 20, dtype, 1, 0.1, 1e-3, 4, {0, 0, -0.0f}};
    Random random(17);
    Buffer logits = Buffer::normal(dtype, random, 60);
    logits.set(25, NAN), logits.set(47, INFINITY), logits.set(51, -INFINITY);
    for (const NamedTable& named : tables()) {
      const Outcome outcome = compute(*named.table, c, logits, {3, 4, 7}, true, 1);
      EXPECT_TRUE(same_bits(outcome.loss, std::vector<float>(3, 0.0f))) << named.name;
      EXPECT_TRUE(same_bits(outcome.logits, Buffer(dtype, 60))) << named.name;
    }
  }
}

TEST(CrossEntropy, SurvivesExtremeLogits) {
  check({17, 333, DType::f32, 1e4}, 5);
  check({17, 333, DType::bf16, 1e4}, 6);
  check({17, 333, DType::f16, 1e4}, 7);
  check({17, 333, DType::f32, 1e4, 0.1, 1e-6}, 8);
  for (const NamedTable& named : tables()) {
    Buffer logits(DType::f32, std::vector<float>{1e4f, -1e4f, 0, -1e4f, -1e4f, -1e4f});
    const Outcome outcome = compute(*named.table, {2, 3, DType::f32, 0}, logits, {1, 2}, true, 1);
    EXPECT_EQ(outcome.loss[0], 2e4f);
    EXPECT_NEAR(outcome.loss[1], std::log(3.0), 1e-6);
    EXPECT_EQ(outcome.logits.get(0), 1.0f);
    EXPECT_EQ(outcome.logits.get(1), -1.0f);
    EXPECT_EQ(outcome.logits.get(2), 0.0f);
  }
}

// A row's result depends on that row alone.
TEST(CrossEntropy, RowsOneAtATimeHaveTheSameBits) {
  Random random(9);
  const Case all = {23, 301, DType::f32, 2.0}, one = {1, 301, DType::f32, 2.0};
  const Buffer logits = Buffer::normal(DType::f32, random, all.rows * all.vocabulary, 2);
  const std::vector<int32_t> targets = random_targets(random, all);
  const Outcome whole = compute(*tables().back().table, all, logits, targets, true, 2);
  const std::vector<float> values = logits.floats(), gradients = whole.logits.floats();
  for (int64_t row = 0; row < all.rows; ++row) {
    const std::span<const float> part(values.data() + row * 301, 301);
    const Outcome single =
        compute(*tables().back().table, one, Buffer(DType::f32, part), {targets[row]}, true, 1);
    const std::vector<float> gradient = single.logits.floats();
    EXPECT_TRUE(same_bits(std::span<const float>(gradient),
                          std::span<const float>(gradients.data() + row * 301, 301)));
    EXPECT_EQ(single.loss[0], whole.loss[row]);
  }
}

TEST(LossSum, IsTheSameForEverySplitIntoMicroBatches) {
  Random random(11);
  const int64_t samples = 6, rows = 37;
  const std::vector<float> losses = normals(random, samples * rows);
  const std::vector<int32_t> targets = random_targets(random, {samples * rows, 9, DType::f32, 1});
  double expected_sum = 0;
  uint64_t expected_count = 0;
  for (int64_t sample = 0; sample < samples; ++sample) {
    double sum = 0;
    for (int64_t row = sample * rows; row < (sample + 1) * rows; ++row)
      sum += losses[row], expected_count += targets[row] != ignored_target;
    expected_sum += sum;
  }
  for (const NamedTable& named : tables())
    for (int64_t micro_batch : {1, 2, 4, 6}) {
      StepState state = {};
      for (int64_t first = 0; first < samples; first += micro_batch) {
        const int64_t count = std::min(micro_batch, samples - first);
        const LossSumArgs args = {count, rows, losses.data() + first * rows, targets.data() + first * rows,
                                  &state};
        run(named.table->loss_sum, args, 2, loss_sum_workspace(args, 2));
      }
      EXPECT_EQ(state.loss_sum, expected_sum);
      EXPECT_EQ(state.target_count, expected_count);
    }
}

}  // namespace
}  // namespace stw::kernels::test::cross_entropy_test
