// Updates inside the backward pass: the same bits as updates after it, without memory for gradients; and
// their limits.
#include <functional>
#include <limits>

#include "src/trainer/trainer.h"
#include "tests/src/small_models.h"
#include "tests/src/small_trainer.h"
#include "tests/src/temporary_directory.h"

namespace stw::fused_update_test {
namespace {

using namespace testing_tools;

constexpr int64_t batch_size = 9, sequence = 33;  // so that loss chunks cut samples

TrainerOptions without_clipping() {
  TrainerOptions options;
  options.clip_norm = 0;
  return options;
}

Request request_of(const NumericsCase& c, bool fused, int threads = 2) {
  Request r = c.request(batch_size, sequence, threads);
  r.fused_update = fused;
  return r;
}

Trained train(const std::shared_ptr<const Model>& model, const std::shared_ptr<const Planned>& planned) {
  Trained outcome;
  OpenTrainer trainer(model, planned, without_clipping());
  for (uint64_t step = 0; step < 3; ++step) {
    GlobalBatch batch = random_batch(300 + step, batch_size, sequence);
    if (step == 1) ignore_sample(batch, 2);
    auto result = trainer->step(batch.source(), step == 2 ? 3 : 5, 3e-3);
    if (!result || result->skip != kernels::skip_none) {
      ADD_FAILURE() << "step " << step << " did not happen";
      return outcome;
    }
    outcome.figures.insert(outcome.figures.end(),
                           {result->loss, result->grad_norm, static_cast<double>(result->targets)});
  }
  outcome.state = trainer.state();
  return outcome;
}

class FusedUpdate : public testing::TestWithParam<NumericsCase> {};

TEST_P(FusedUpdate, GivesTheBitsOfAnUpdateAfterTheBackwardPass) {
  const auto model = model_of(GetParam().config);
  Request unfused = request_of(GetParam(), false, 1);
  unfused.micro_batch = 2;
  const Trained expected = train(model, plan_for(*model, unfused));
  ASSERT_EQ(expected.figures.size(), 9u);
  Request fused = request_of(GetParam(), true);
  const auto loose = plan_for(*model, fused);
  EXPECT_EQ(loose->plan.decisions.micro_batch, batch_size);
  expect_same(train(model, loose), expected);
  Decisions d = loose->plan.decisions;
  for (uint32_t sets : {0u, ~0u, 0x5u}) {
    for (uint32_t& saved : d.saved) saved = sets;
    d.loss_chunks = sets == 0 ? 4 : 1;
    expect_same(train(model, plan_with(*model, fused, d)), expected);
  }
  fused.memory_bytes = loose->plan.minimum_bytes;
  expect_same(train(model, plan_for(*model, fused)), expected);
}

TEST_P(FusedUpdate, KeepsNoGradientsOfBlocks) {
  const auto model = model_of(GetParam().config);
  const auto unfused = plan_for(*model, request_of(GetParam(), false)),
             fused = plan_for(*model, request_of(GetParam(), true));
  auto bytes = [](const Planned& p, bool of_blocks) {
    uint64_t sum = 0;
    for (const Buffer& b : p.programs.arena.persistent)
      if (b.owner == MemoryClass::gradients &&
          (p.graph.at(b.tensor).name.find(".h.") != std::string::npos ||
           p.graph.at(b.tensor).name.find(".layers.") != std::string::npos) == of_blocks)
        sum += b.bytes;
    return sum;
  };
  EXPECT_GT(bytes(*unfused, true), 0u);
  EXPECT_EQ(bytes(*fused, true), 0u);
  EXPECT_EQ(bytes(*fused, false), bytes(*unfused, false));
  EXPECT_EQ(fused->programs.micro_next.instructions.size(), 0u);
  Request least = request_of(GetParam(), false);
  least.micro_batch = batch_size;
  EXPECT_LT(fused->plan.minimum_bytes, plan_for(*model, least)->plan.minimum_bytes);
}

INSTANTIATE_TEST_SUITE_P(
    Models, FusedUpdate,
    testing::Values(
        NumericsCase{"gpt2_dropout", small_gpt2("0.1"), Precision::fp32, 32},
        NumericsCase{
            "llama_8bit", small_llama(), Precision::bf16, 8, Optimizer::adamw, {}, Master::short_remainder},
        NumericsCase{
            "qwen2_stochastic", small_qwen2(), Precision::bf16, 32, Optimizer::lion, {}, Master::stochastic},
        NumericsCase{"qwen3", small_qwen3(), Precision::bf16, 8},
        NumericsCase{"llama_muon", small_llama(), Precision::bf16, 32, Optimizer::muon},
        NumericsCase{"gpt2_adafactor", small_gpt2(), Precision::fp32, 32, Optimizer::adafactor},
        NumericsCase{
            "qwen2_frozen",
            small_qwen2(),
            Precision::fp32,
            32,
            Optimizer::sgd,
            {{"embeddings", true, {}, {}, {}}, {"blocks.0", true, {}, {}, {}}, {"norms", {}, 0.5, 0.0, {}}}}),
    [](const testing::TestParamInfo<NumericsCase>& c) { return std::string(c.param.name); });

class FusedStep : public testing::Test {
 protected:
  std::shared_ptr<const Planned> planned() const {
    return plan_for(*model_, request_of({"", small_llama(), Precision::fp32, 32}, true));
  }
  std::shared_ptr<const Model> model_ = model_of(small_llama());
};

TEST_F(FusedStep, WithoutTargetsOrWithALossThatIsNotFiniteChangesNothing) {
  OpenTrainer trainer(model_, planned(), without_clipping());
  GlobalBatch empty = random_batch(1, batch_size, sequence);
  for (int64_t s = 0; s < batch_size; ++s) ignore_sample(empty, s);
  const State before = trainer.state();
  auto result = trainer->step(empty.source(), batch_size, 1e-2);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->skip, kernels::skip_no_target);
  EXPECT_EQ(differences(trainer.state(), before), "");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  trainer->write_parameter(3, 5, &nan, 1);
  const State poisoned = trainer.state();
  result = trainer->step(random_batch(2, batch_size, sequence).source(), batch_size, 1e-2);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->skip, kernels::skip_not_finite);
  EXPECT_EQ(differences(trainer.state(), poisoned), "");
  EXPECT_EQ(trainer->progress().step, 0u);
  EXPECT_EQ(trainer->progress().skipped, 2u);
}

// The loss and the activation gradients are finite, but the gradient of one norm's weight is not. The layers
// above have been updated by then. The trainer reports it, and works again once a checkpoint is restored.
TEST_F(FusedStep, EndsTheRunWhereAGradientIsNotFinite) {
  TemporaryDirectory folder;
  OpenTrainer trainer(model_, planned(), without_clipping());
  ASSERT_TRUE(trainer->step(random_batch(1, batch_size, sequence).source(), batch_size, 1e-3));
  ASSERT_TRUE(trainer->save(folder / "good"));
  const State good = trainer.state();
  const auto& parameters = model_->parameters();
  for (size_t p = 0; p < parameters.size(); ++p) {
    const Tensor& t = model_->graph().at(parameters[p]);
    const bool is_norm = t.name == "model.layers.2.post_attention_layernorm.weight";
    if (!is_norm && t.name != "model.layers.2.mlp.up_proj.weight" &&
        t.name != "model.layers.2.mlp.gate_proj.weight")
      continue;
    const std::vector<float> values(t.shape.elements(), is_norm ? 1e-38f : 1e38f);
    trainer->write_parameter(p, 0, values.data(), values.size());
  }
  const State before = trainer.state();
  auto result = trainer->step(random_batch(2, batch_size, sequence).source(), batch_size, 1e-3);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::non_finite) << result.error().message;
  EXPECT_NE(result.error().message.find("restore a checkpoint"), std::string::npos);
  const State after = trainer.state();
  EXPECT_FALSE(after.at("model.layers.2.mlp.down_proj.weight") ==
               before.at("model.layers.2.mlp.down_proj.weight"));
  for (const char* name : {"model.layers.2.post_attention_layernorm.weight",
                           "model.layers.0.mlp.down_proj.weight", "lm_head.weight"})
    EXPECT_TRUE(after.at(name) == before.at(name)) << name;
  result = trainer->step(random_batch(3, batch_size, sequence).source(), batch_size, 1e-3);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::bad_state);
  ASSERT_TRUE(trainer->restore(folder / "good"));
  EXPECT_EQ(differences(trainer.state(), good), "");
  result = trainer->step(random_batch(3, batch_size, sequence).source(), batch_size, 1e-3);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->skip, kernels::skip_none);
}

TEST_F(FusedStep, RefusesOptionsThatNeedTheGradients) {
  auto refusal = [&](const TrainerOptions& options) {
    auto trainer = Trainer::create(best_device(), model_, planned(), options);
    return trainer ? std::string() : trainer.error().message;
  };
  EXPECT_NE(refusal({}).find("clipping"), std::string::npos);
  TrainerOptions options = without_clipping();
  EXPECT_EQ(refusal(options), "");
  options.outlier_limit = 6;
  EXPECT_NE(refusal(options).find("outliers"), std::string::npos);
  options = without_clipping();
  options.gradient_hook = [](const GradientView&) { return true; };
  EXPECT_NE(refusal(options).find("hook"), std::string::npos);

  auto refused = [&](const std::function<void(Request&)>& change) {
    Request r = request_of({"", small_llama(), Precision::bf16, 32}, true);
    change(r);
    auto planned = Planned::make(*model_, r);
    EXPECT_TRUE(!planned && planned.error().code == Code::bad_argument);
    return planned ? std::string() : planned.error().message;
  };
  EXPECT_NE(refused([](Request& r) { r.precision = Precision::fp16; }).find("fp16"), std::string::npos);
  EXPECT_NE(refused([](Request& r) { r.gradients = Gradients::bf16; }).find("use fp32 gradients"),
            std::string::npos);
  EXPECT_NE(refused([](Request& r) { r.micro_batch = 2; }).find("micro-batch"), std::string::npos);
  EXPECT_NE(refused([](Request& r) { r.host_bytes = 1 << 20; }).find("host memory"), std::string::npos);
}

// Checkpoints and re-planning work between budgets, but not with a plan whose update follows the backward
// pass.
TEST_F(FusedStep, ResumesAndReplansUnderOtherBudgets) {
  TemporaryDirectory folder;
  OpenTrainer straight(model_, planned(), without_clipping());
  Request r = request_of({"", small_llama(), Precision::fp32, 32}, true);
  r.memory_bytes = planned()->plan.minimum_bytes;
  const auto tight = plan_for(*model_, r);
  auto first = trainer_for(model_, planned(), without_clipping());
  for (uint64_t step = 0; step < 4; ++step) {
    const GlobalBatch batch = random_batch(400 + step, batch_size, sequence);
    ASSERT_TRUE(straight->step(batch.source(), batch_size, 1e-3));
    if (step > 1) continue;
    if (step == 1) { ASSERT_TRUE(first->replan(tight)); }
    ASSERT_TRUE(first->step(batch.source(), batch_size, 1e-3));
    ASSERT_TRUE(first->save(folder / "c"));
  }
  OpenTrainer second(model_, tight, without_clipping());
  ASSERT_TRUE(second->restore(folder / "c"));
  for (uint64_t step = 2; step < 4; ++step)
    ASSERT_TRUE(second->step(random_batch(400 + step, batch_size, sequence).source(), batch_size, 1e-3));
  EXPECT_EQ(differences(second.state(), straight.state()), "");
  const auto unfused = plan_for(*model_, request_of({"", small_llama(), Precision::fp32, 32}, false));
  EXPECT_FALSE(second->replan(unfused));
  OpenTrainer other(model_, unfused, without_clipping());
  auto restored = other->restore(folder / "c");
  ASSERT_FALSE(restored);
  EXPECT_NE(restored.error().message.find("fused_update"), std::string::npos) << restored.error().message;
}

}  // namespace
}  // namespace stw::fused_update_test
