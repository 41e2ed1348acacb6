// cross_entropy and loss_sum against double precision; the same bits on every instruction set and number of threads.
#include "tests/kernels/harness.h"

namespace stw::kernels::test {
namespace {

struct Case {
  int64_t rows, vocabulary;
  DType dtype;
  double deviation;
};

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
                bool gradient, int threads) {
  Outcome outcome{std::vector<float>(targets.size(), NAN), logits};
  CrossEntropyArgs args = {};
  args.rows = c.rows, args.vocabulary = c.vocabulary, args.targets = targets.data();
  args.logits = outcome.logits.matrix(), args.gradient = gradient, args.token_loss = outcome.loss.data();
  run(table.cross_entropy, args, threads, cross_entropy_workspace(args, threads));
  return outcome;
}

void check(const Case& c, uint64_t seed) {
  SCOPED_TRACE(testing::Message() << c.rows << " rows, vocabulary " << c.vocabulary << ", deviation " << c.deviation);
  Random random(seed);
  const Buffer logits = Buffer::normal(c.dtype, random, c.rows * c.vocabulary, c.deviation);
  const std::vector<int32_t> targets = random_targets(random, c);
  std::vector<double> loss, gradient;
  for (int64_t row = 0; row < c.rows; ++row) {
    const int32_t target = targets[static_cast<size_t>(row)];
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < c.vocabulary; ++j)
      largest = std::fmax(largest, static_cast<double>(logits.get(row * c.vocabulary + j)));
    for (int64_t j = 0; j < c.vocabulary; ++j) sum += std::exp(logits.get(row * c.vocabulary + j) - largest);
    const bool ignored = target == ignored_target;
    loss.push_back(ignored ? 0 : std::log(sum) + largest - logits.get(row * c.vocabulary + target));
    for (int64_t j = 0; j < c.vocabulary; ++j)
      gradient.push_back(ignored ? 0 : std::exp(logits.get(row * c.vocabulary + j) - largest) / sum - (j == target));
  }
  const Outcome first = compute(*tables()[0].table, c, logits, targets, true, 1);
  if (c.vocabulary > 1) {   // with one entry every loss and gradient is 0
    EXPECT_LE(relative_error(first.loss, loss), 1e-5);
    EXPECT_LE(relative_error(first.logits.floats(), gradient), c.dtype == DType::f32 ? 1e-5 : 1e-2);
  }
  for (size_t i = 0; i < targets.size(); ++i)
    if (targets[i] == ignored_target || c.vocabulary == 1) { EXPECT_EQ(first.loss[i], 0.0f); }
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
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (int64_t vocabulary : {1, 2, 15, 16, 17, 63, 64, 65, 257, 1001}) check({19, vocabulary, dtype, 2.0}, seed++);
    check({4, 50257, dtype, 3.0}, seed++);
  }
}

TEST(CrossEntropy, SurvivesExtremeLogits) {
  check({17, 333, DType::f32, 1e4}, 5);
  check({17, 333, DType::bf16, 1e4}, 6);
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
TEST(CrossEntropy, RowsOneAtATimeAreTheSameBits) {
  Random random(9);
  const Case all = {23, 301, DType::f32, 2.0}, one = {1, 301, DType::f32, 2.0};
  const Buffer logits = Buffer::normal(DType::f32, random, all.rows * all.vocabulary, 2);
  const std::vector<int32_t> targets = random_targets(random, all);
  const Outcome whole = compute(*tables().back().table, all, logits, targets, true, 2);
  const std::vector<float> values = logits.floats(), gradients = whole.logits.floats();
  for (int64_t row = 0; row < all.rows; ++row) {
    const std::span<const float> part(values.data() + row * 301, 301);
    const Outcome single = compute(*tables().back().table, one, Buffer(DType::f32, part),
                                   {targets[static_cast<size_t>(row)]}, true, 1);
    const std::vector<float> gradient = single.logits.floats();
    EXPECT_TRUE(same_bits(std::span<const float>(gradient), std::span<const float>(gradients.data() + row * 301, 301)));
    EXPECT_EQ(single.loss[0], whole.loss[static_cast<size_t>(row)]);
  }
}

TEST(LossSum, IsTheSameForEverySplitIntoMicroBatches) {
  Random random(11);
  const int64_t samples = 6, rows = 37;
  const std::vector<float> losses = normals(random, samples * rows);
  const std::vector<int32_t> targets = random_targets(random, {samples * rows, 9, DType::f32, 1});
  double wanted = 0;
  uint64_t wanted_count = 0;
  for (int64_t sample = 0; sample < samples; ++sample) {
    double sum = 0;
    for (int64_t row = sample * rows; row < (sample + 1) * rows; ++row)
      sum += losses[static_cast<size_t>(row)], wanted_count += targets[static_cast<size_t>(row)] != ignored_target;
    wanted += sum;
  }
  for (const NamedTable& named : tables())
    for (int64_t micro_batch : {1, 2, 4, 6}) {
      StepState state = {};
      for (int64_t first = 0; first < samples; first += micro_batch) {
        const int64_t count = std::min(micro_batch, samples - first);
        const LossSumArgs args = {count, rows, losses.data() + first * rows, targets.data() + first * rows, &state};
        run(named.table->loss_sum, args, 2, loss_sum_workspace(args, 2));
      }
      EXPECT_EQ(state.loss_sum, wanted);
      EXPECT_EQ(state.target_count, wanted_count);
    }
}

}  // namespace
}  // namespace stw::kernels::test
