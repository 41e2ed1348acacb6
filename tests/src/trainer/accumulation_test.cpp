// The trainer must not make the known mistakes of gradient accumulation: results that depend on the
// micro-batch, a mean of means, frozen layers that change, clipping before unscaling, updates in the middle
// of a step.
#include <cmath>
#include <cstdio>

#include "tests/src/small_models.h"

namespace stw::accumulation_test {
namespace {

using namespace testing_tools;

constexpr int64_t batch_size = 16, sequence = 33;

// Sample s has targets in its first 1 + 2·s tokens: 16 samples with 1 to 31 targets.
GlobalBatch uneven_batch(uint64_t seed) {
  GlobalBatch batch = random_batch(seed, batch_size, sequence);
  for (int64_t s = 0; s < batch_size; ++s)
    for (int64_t i = 0; i < sequence; ++i) {
      int32_t& target = batch.targets[s * sequence + i];
      if (i > 2 * s) target = kernels::ignored_target;
      else if (target < 0) target = static_cast<int32_t>(i);
    }
  return batch;
}

GlobalBatch sample_of(const GlobalBatch& batch, int64_t sample) {
  GlobalBatch one;
  one.sequence = sequence;
  const auto part = [&](const std::vector<int32_t>& rows) {
    return std::vector<int32_t>(rows.begin() + sample * sequence, rows.begin() + (sample + 1) * sequence);
  };
  one.tokens = part(batch.tokens);
  one.targets = part(batch.targets);
  return one;
}

struct Measured {
  double loss = 0;
  GradientSums mean;  // gradients, divided by the number of targets
};

Measured measure(const std::shared_ptr<const Model>& model, const GlobalBatch& batch, int64_t micro_batch) {
  Request r = request_for(static_cast<int64_t>(batch.samples()), sequence, 2);
  r.micro_batch = micro_batch;
  const auto planned = plan_for(*model, r);
  Measured m;
  TrainerOptions options;
  options.gradient_hook = [&](const GradientView& view) {
    m.mean = gradients_in(*planned, view);
    for (auto& [name, values] : m.mean)
      for (double& x : values) x /= static_cast<double>(*view.target_count);
    return true;
  };
  auto result = trainer_for(model, planned, options)->step(batch.source(), batch.samples(), 0);
  EXPECT_TRUE(result);
  m.loss = result ? result->loss : NAN;
  return m;
}

double norm_of(const GradientSums& g) {
  double sum = 0;
  for (const auto& [name, values] : g)
    for (double x : values) sum += x * x;
  return std::sqrt(sum);
}

GradientSums difference(GradientSums a, const GradientSums& b) {
  for (auto& [name, values] : a)
    for (size_t i = 0; i < values.size(); ++i) values[i] -= b.at(name)[i];
  return a;
}

TEST(Accumulation, SixteenAtOnceAndOneByOneAndAMeanOfMeans) {
  const auto model = model_of(small_llama());
  const GlobalBatch batch = uneven_batch(1);
  const Measured at_once = measure(model, batch, 16), one_by_one = measure(model, batch, 1);
  Measured means;
  for (int64_t s = 0; s < batch_size; ++s) {
    const Measured one = measure(model, sample_of(batch, s), 1);
    means.loss += one.loss / batch_size;
    for (const auto& [name, values] : one.mean) {
      std::vector<double>& sum = means.mean[name];
      sum.resize(values.size());
      for (size_t i = 0; i < values.size(); ++i) sum[i] += values[i] / batch_size;
    }
  }
  const double norm = norm_of(at_once.mean), split = norm_of(difference(one_by_one.mean, at_once.mean));
  const double wrong = norm_of(difference(means.mean, at_once.mean));
  std::printf(
      "16 samples of 1 to 31 targets   loss      gradient norm   distance of the gradient from that of 16 at "
      "once\n");
  std::printf("  at once                       %.6f  %.6f\n", at_once.loss, norm);
  std::printf("  1 x 16, accumulated           %.6f  %.6f        %g\n", one_by_one.loss,
              norm_of(one_by_one.mean), split / norm);
  std::printf("  1 x 16, the mean of means     %.6f  %.6f        %.3f\n", means.loss, norm_of(means.mean),
              wrong / norm);
  EXPECT_EQ(one_by_one.loss, at_once.loss);
  EXPECT_EQ(split, 0);
  EXPECT_GT(std::abs(means.loss - at_once.loss), 1e-3);
  EXPECT_GT(wrong / norm, 0.1);
}

TEST(Accumulation, FrozenEmbeddingsAndTheFirstTwoBlocks) {
  const auto model = model_of(small_gpt2());
  Request r = request_for(batch_size, sequence, 2);
  const auto whole = plan_for(*model, r);
  r.groups = {{"embeddings", true, {}, {}, {}}, {"blocks.0-1", true, {}, {}, {}}};
  const auto frozen = plan_for(*model, r);
  OpenTrainer trainer(model, frozen);
  const State before = trainer.state();
  for (uint64_t step = 0; step < 5; ++step)
    ASSERT_TRUE(trainer->step(uneven_batch(step).source(), batch_size, 1e-2));
  const State after = trainer.state();
  size_t kept = 0, changed = 0;
  for (const auto& [name, bytes] : before) {
    const bool is_lower = name.find("wte") != std::string::npos || name.find("wpe") != std::string::npos ||
                          name.find(".h.0.") != std::string::npos || name.find(".h.1.") != std::string::npos;
    EXPECT_EQ(after.at(name) == bytes, is_lower) << name;
    ++(is_lower ? kept : changed);
  }
  const auto resident = [](const Planned& p) {
    return static_cast<double>(p.programs.arena.gradients_end) / 1024;
  };
  std::printf(
      "embeddings and blocks 0-1 frozen: %zu tensors keep their bytes, %zu change in 5 steps; %.0f KiB of "
      "parameters, gradients "
      "and states instead of %.0f; %.2f ms a step by the plan instead of %.2f\n",
      kept, changed, resident(*frozen), resident(*whole),
      static_cast<double>(frozen->plan.step_picoseconds) * 1e-9,
      static_cast<double>(whole->plan.step_picoseconds) * 1e-9);
  EXPECT_LT(resident(*frozen), resident(*whole) / 2);
  EXPECT_LT(frozen->plan.step_picoseconds, whole->plan.step_picoseconds);
}

// With clipping to 0.1 the longest step is 0.1, whatever the loss scale. If gradients were still scaled, it
// would be 0.1 divided by the scale.
TEST(Accumulation, ClippingComesAfterUnscaling) {
  const auto model = model_of(small_llama());
  Request r = request_for(batch_size, sequence, 2);
  r.precision = Precision::fp16;
  r.optimizer = Optimizer::sgd;
  r.micro_batch = 4;
  const auto planned = plan_for(*model, r);
  for (const double scale : {4096.0, 65536.0, 1048576.0}) {
    TrainerOptions options;
    options.loss_scale = scale;
    options.clip_norm = 0.1;
    options.weight_decay = 0;
    OpenTrainer trainer(model, planned, options);
    const State before = trainer.state();
    auto result = trainer->step(uneven_batch(3).source(), batch_size, 1);
    ASSERT_TRUE(result);
    ASSERT_EQ(result->skip, kernels::skip_none);
    double squares = 0;
    for (const auto& [name, bytes] : trainer.state()) {
      if (!name.ends_with(".master")) continue;
      const auto *from = reinterpret_cast<const float*>(before.at(name).data()),
                 *to = reinterpret_cast<const float*>(bytes.data());
      for (size_t i = 0; i < bytes.size() / sizeof(float); ++i)
        squares += std::pow(static_cast<double>(to[i]) - static_cast<double>(from[i]), 2);
    }
    std::printf("fp16, loss scale %7.0f, clip 0.1: gradient norm %.5f, the weights move by %.5f\n", scale,
                result->grad_norm, std::sqrt(squares));
    EXPECT_GT(result->grad_norm, 0.5);
    EXPECT_NEAR(std::sqrt(squares), 0.1, 1e-4);
  }
}

TEST(Accumulation, OneUpdateAfterTheLastMicroStep) {
  const auto model = model_of(small_qwen2());
  Request r = request_for(batch_size, sequence, 2);
  r.micro_batch = 1;
  const auto planned = plan_for(*model, r);
  OpenTrainer trainer(model, planned);
  const State before = trainer.state();
  int samples = 0, changed = 0;
  const GlobalBatch batch = uneven_batch(2);
  const SampleSource plain = batch.source();
  auto result = trainer->step(
      [&](uint64_t sample, const SampleRows& rows) {
        ++samples;
        changed += trainer.state() != before;  // changes by earlier micro-steps
        return plain(sample, rows);
      },
      batch_size, 1e-2);
  ASSERT_TRUE(result);
  std::printf(
      "16 micro-steps: %d samples read, %d times other weights than before the step, step %llu after it\n",
      samples, changed, static_cast<unsigned long long>(result->step));
  EXPECT_EQ(samples, 16);
  EXPECT_EQ(changed, 0);
  EXPECT_EQ(result->step, 1u);
  EXPECT_NE(trainer.state() == before, true);
}

}  // namespace
}  // namespace stw::accumulation_test
