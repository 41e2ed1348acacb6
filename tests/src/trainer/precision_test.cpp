// fp16 with its loss scale, and the treatment of non-finite numbers.
#include <cmath>
#include <limits>

#include "src/base/numbers.h"
#include "src/trainer/trainer.h"
#include "tests/src/small_models.h"

namespace stw::precision_test {
namespace {

using namespace testing_tools;

constexpr int64_t batch_size = 5, sequence = 33;

Request half_request(Precision precision = Precision::fp16) {
  Request r = request_for(batch_size, sequence, 2);
  r.micro_batch = 2;
  r.precision = precision;
  return r;
}

TEST(Half, RoundsToNearestEven) {
  for (uint32_t h = 0; h < 0x10000; ++h) {
    const uint16_t half = static_cast<uint16_t>(h);
    if ((h & 0x7fff) > 0x7c00) {
      EXPECT_TRUE(std::isnan(from_f16(to_f16(from_f16(half)))));
      continue;
    }
    ASSERT_EQ(to_f16(from_f16(half)), half);
    if ((h & 0x7fff) >= 0x7bff) continue;
    const float low = from_f16(half), high = from_f16(static_cast<uint16_t>(h + 1)),
                middle = (low + high) / 2;
    ASSERT_EQ(to_f16(middle), h & 1 ? h + 1 : h);
    ASSERT_EQ(to_f16(std::nextafter(middle, low)), h);
    ASSERT_EQ(to_f16(std::nextafter(middle, high)), h + 1);
  }
  EXPECT_EQ(to_f16(65519.996f), 0x7bff);
  EXPECT_EQ(to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(to_f16(-1e30f), 0xfc00);
  EXPECT_EQ(to_f16(1e-30f), 0);
}

// The mean gradients of fp16 differ from those of fp32 by less than 2 % of a tensor's largest gradient. If
// the scale is 1, the limit is 20 %.
TEST(Half, GradientsAgreeWithFp32) {
  const auto model = model_of(small_gpt2());
  const GlobalBatch batch = random_batch(3, batch_size, sequence);
  GradientSums full;
  double full_norm = 0, full_loss = 0;
  for (const double scale : {0.0, 1.0, 65536.0, 1048576.0}) {
    const auto planned = plan_for(*model, half_request(scale == 0 ? Precision::fp32 : Precision::fp16));
    GradientSums gradients;
    double carried = 0;
    TrainerOptions options;
    if (scale > 0) options.loss_scale = scale;
    options.gradient_hook = [&](const GradientView& view) {
      gradients = gradients_in(*planned, view);
      carried = view.scale;
      return true;
    };
    auto trainer = trainer_for(model, planned, options);
    auto result = trainer->step(batch.source(), batch_size, 1e-3);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->skip, kernels::skip_none);
    if (scale == 0) {
      EXPECT_EQ(carried, 1);
      full = gradients;
      full_norm = result->grad_norm;
      full_loss = result->loss;
      continue;
    }
    EXPECT_EQ(carried, scale / 256);  // the next power of two after 5 · 33 tokens
    EXPECT_NEAR(result->loss, full_loss, 2e-3);
    EXPECT_NEAR(result->grad_norm / full_norm, 1, 1e-2);
    for (const auto& [name, values] : full) {
      double most = 0, error = 0;
      for (size_t i = 0; i < values.size(); ++i) {
        most = std::max(most, std::abs(values[i]));
        error = std::max(error, std::abs(gradients.at(name)[i] / carried - values[i]));
      }
      if (most > 1e-4) {
        // Small ones vanish without a scale.
        EXPECT_LT(error / most, scale == 1 ? 0.2 : 0.02) << name << ", scale " << scale;
      }
    }
  }
}

// Non-finite gradients at scripted steps: the scale, the bytes and the counts follow PyTorch's rules.
TEST(Half, FollowsAScriptOfOverflows) {
  const auto model = model_of(small_gpt2("0.1"));
  const auto planned = plan_for(*model, half_request());
  bool poison = false;
  TrainerOptions options;
  options.loss_scale = 1024;
  options.growth_interval = 3;
  options.gradient_hook = [&](const GradientView& view) {
    if (poison) view.data[7] = std::numeric_limits<float>::infinity();
    return true;
  };
  const struct {
    bool overflows;
    double after;
  } script[] = {{false, 1024}, {false, 1024}, {false, 2048}, {true, 1024}, {true, 512},
                {false, 512},  {false, 512},  {true, 256},   {false, 256}, {false, 256},
                {false, 512},  {false, 512},  {false, 512},  {false, 1024}};
  TrainerOptions constant = options;
  constant.growth_interval = 1000000;
  constant.gradient_hook = nullptr;
  OpenTrainer trainer(model, planned, options), straight(model, planned, constant);
  uint64_t batch = 0, skipped = 0;
  for (const auto& [overflows, after] : script) {
    poison = overflows;
    const GlobalBatch data = random_batch(batch++, batch_size, sequence);
    const State before = trainer.state();
    auto result = trainer->step(data.source(), batch_size, 1e-3);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->skip, overflows ? kernels::skip_not_finite : kernels::skip_none);
    EXPECT_EQ(trainer->progress().loss_scale, after) << "batch " << batch;
    skipped += overflows;
    EXPECT_EQ(trainer->progress().skipped, skipped);
    if (overflows) {
      EXPECT_EQ(differences(trainer.state(), before), "");
    } else {
      // Scales are powers of two: they change a bit only where numbers leave the range of fp16.
      ASSERT_TRUE(straight->step(data.source(), batch_size, 1e-3));
    }
  }
  EXPECT_EQ(trainer->progress().step, straight->progress().step);
}

// A scale that is far too large overflows in the backward pass of one micro-batch. The whole step is skipped,
// and the scale falls until steps succeed.
TEST(Half, FindsItsScale) {
  const auto model = model_of(small_llama());
  TrainerOptions options;
  options.loss_scale = 0x1p40;
  OpenTrainer trainer(model, plan_for(*model, half_request()), options);
  const State before = trainer.state();
  int skipped = 0;
  for (uint64_t step = 0; step < 40 && trainer->progress().step == 0; ++step) {
    ASSERT_TRUE(trainer->step(random_batch(1, batch_size, sequence).source(), batch_size, 1e-3));
    if (trainer->progress().step > 0) break;
    EXPECT_EQ(differences(trainer.state(), before), "");
    ++skipped;
  }
  EXPECT_GT(skipped, 5);
  EXPECT_EQ(trainer->progress().step, 1u);
  EXPECT_EQ(trainer->progress().loss_scale, std::ldexp(1.0, 40 - skipped));
}

TEST(Half, EndsWithADiagnosisWhereNoScaleHelps) {
  const auto model = model_of(small_gpt2());
  TrainerOptions options;
  options.loss_scale = 4;
  OpenTrainer trainer(model, plan_for(*model, half_request()), options);
  const float huge = 1e30f;  // infinite in fp16
  trainer->write_parameter(2, 5, &huge, 1);
  const State before = trainer.state();
  const GlobalBatch batch = random_batch(1, batch_size, sequence);
  for (int step = 0; step < 2; ++step) ASSERT_TRUE(trainer->step(batch.source(), batch_size, 1e-3));
  auto result = trainer->step(batch.source(), batch_size, 1e-3);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::numeric);
  EXPECT_NE(result.error().message.find("not finite"), std::string::npos) << result.error().message;
  EXPECT_EQ(differences(trainer.state(), before), "");
}

TEST(NonFinite, StopsOnRequestAndNamesTheParameter) {
  const auto model = model_of(small_gpt2());
  Trainer* self = nullptr;
  bool poison = true;
  TrainerOptions options;
  options.non_finite = NonFinite::stop;
  options.gradient_hook = [&](const GradientView&) {
    if (poison)
      static_cast<float*>(self->view(6, TensorView::gradient)->data)[3] =
          std::numeric_limits<float>::quiet_NaN();
    return true;
  };
  OpenTrainer trainer(model, plan_for(*model, half_request(Precision::fp32)), options);
  self = &*trainer;
  const State before = trainer.state();
  const GlobalBatch batch = random_batch(1, batch_size, sequence);
  auto result = trainer->step(batch.source(), batch_size, 1e-3);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::non_finite);
  EXPECT_NE(result.error().message.find(model->graph().at(model->parameters()[6]).name), std::string::npos)
      << result.error().message;
  EXPECT_EQ(differences(trainer.state(), before), "");
  EXPECT_EQ(trainer->progress().batches, 0u);
  poison = false;
  EXPECT_TRUE(trainer->step(batch.source(), batch_size, 1e-3));
}

TEST(Outlier, IsSkippedAndLeavesEveryByte) {
  const auto model = model_of(small_gpt2());
  double factor = 1;
  TrainerOptions options;
  options.outlier_limit = 6;
  options.clip_norm = 0;
  options.gradient_hook = [&](const GradientView& view) {
    for (uint64_t i = 0; i < view.count; ++i) view.data[i] *= static_cast<float>(factor);
    return true;
  };
  OpenTrainer trainer(model, plan_for(*model, half_request(Precision::fp32)), options);
  for (uint64_t step = 0; step < 70; ++step) {
    auto result = trainer->step(random_batch(step, batch_size, sequence).source(), batch_size, 0);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->skip, kernels::skip_none) << step;
  }
  const State before = trainer.state();
  factor = 100;
  auto result = trainer->step(random_batch(99, batch_size, sequence).source(), batch_size, 1e-3);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->skip, kernels::skip_outlier);
  EXPECT_EQ(differences(trainer.state(), before), "");
  EXPECT_EQ(trainer->progress().skip, kernels::skip_outlier);
  factor = 1;
  result = trainer->step(random_batch(100, batch_size, sequence).source(), batch_size, 1e-3);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->skip, kernels::skip_none);
}

// The scale and the statistics are part of a checkpoint, so that a resumed run has the same bits.
TEST(Half, ResumesWithItsScale) {
  TemporaryDirectory folder;
  const auto model = model_of(small_gpt2("0.1"));
  const auto planned = plan_for(*model, half_request());
  TrainerOptions options;
  options.loss_scale = 0x1p28;
  options.growth_interval = 4;
  options.outlier_limit = 8;
  auto train = [&](OpenTrainer& t, uint64_t from, uint64_t to) {
    for (uint64_t step = from; step < to; ++step)
      ASSERT_TRUE(t->step(random_batch(step, batch_size, sequence).source(), batch_size, 1e-3));
  };
  OpenTrainer straight(model, planned, options), first(model, planned, options);
  train(straight, 0, 30);
  train(first, 0, 13);
  ASSERT_TRUE(first->save(folder / "checkpoint"));
  Request tight = half_request();
  tight.micro_batch = 1;
  tight.recompute = Recompute::full;
  TrainerOptions others = options;
  others.loss_scale = 2;  // the checkpoint's scale replaces it
  OpenTrainer second(model, plan_for(*model, tight), others);
  const Status restored = second->restore(folder / "checkpoint");
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(second->progress().loss_scale, first->progress().loss_scale);
  train(second, 13, 30);
  EXPECT_EQ(differences(second.state(), straight.state()), "");
  EXPECT_EQ(second->progress().loss_scale, straight->progress().loss_scale);
  EXPECT_EQ(second->progress().skipped, straight->progress().skipped);
}

}  // namespace
}  // namespace stw::precision_test
