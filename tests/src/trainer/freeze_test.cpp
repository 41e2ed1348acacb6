// Frozen parameters: their bytes stay, trained parameters keep their gradients, and the norm covers only
// those.
#include <cmath>

#include "src/trainer/trainer.h"
#include "tests/src/small_models.h"

namespace stw::freeze_test {
namespace {

using namespace testing_tools;

constexpr int64_t batch_size = 5, sequence = 33;

Request frozen_request(const std::vector<const char*>& patterns, Precision precision = Precision::fp32) {
  Request r = request_for(batch_size, sequence, 2);
  r.micro_batch = 2;
  r.precision = precision;
  for (const char* pattern : patterns) r.groups.push_back({pattern, true, {}, {}, {}});
  return r;
}

TEST(Frozen, KeepsItsBytes) {
  for (Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
    const auto model = model_of(small_gpt2("0.1"));
    const auto planned = plan_for(*model, frozen_request({"embeddings", "blocks.0-1", "*ln_f*"}, precision));
    OpenTrainer trainer(model, planned);
    const State before = trainer.state();
    for (uint64_t step = 0; step < 4; ++step)
      ASSERT_TRUE(trainer->step(random_batch(step, batch_size, sequence).source(), batch_size, 1e-2));
    const State after = trainer.state();
    for (const auto& [name, bytes] : before) {
      const bool is_frozen = name.find("h.2.") == std::string::npos;
      EXPECT_EQ(bytes == after.at(name), is_frozen) << name << " " << name_of(precision);
    }
  }
}

// The norm and the projection after an encoder's tables, and BLOOM's norm, are embeddings too. There is no
// backward pass below the lowest trained parameter.
TEST(Frozen, LowerBlocksHaveNoBackwardPass) {
  for (const std::string& config :
       {classifier_of(small_bert("0.1")), classifier_of(small_roberta()), classifier_of(small_distilbert()),
        classifier_of(small_electra()), classifier_of(small_deberta("0.1")), small_bloom("0.1")}) {
    const auto model = model_of(config);
    const auto planned = plan_for(*model, frozen_request({"embeddings", "blocks.0-1"}));
    for (const Segment& s : planned->graph.segments)
      EXPECT_EQ(s.gradient_op_count == 0,
                s.kind == SegmentKind::embedding || (s.kind == SegmentKind::block && s.block < 2))
          << planned->graph.architecture << " block " << s.block;
    OpenTrainer trainer(model, planned);
    const State before = trainer.state();
    for (uint64_t step = 0; step < 4; ++step)
      ASSERT_TRUE(trainer->step(batch_for(*model, step, batch_size, sequence).source(), batch_size, 1e-2));
    for (const auto& [name, bytes] : trainer.state()) {
      // The table of relative positions is an embedding, and so is its norm.
      const bool is_frozen =
          name.find("embeddings") != std::string::npos || name.starts_with("deberta.encoder.LayerNorm") ||
          name.find("r.0.") != std::string::npos || name.find("r.1.") != std::string::npos ||
          name.find("h.0.") != std::string::npos || name.find("h.1.") != std::string::npos;
      EXPECT_EQ(bytes == before.at(name), is_frozen) << name;
    }
  }
}

TEST(Frozen, ChangesNoGradientOfTheOthers) {
  for (const auto& [config, patterns] :
       {std::pair{small_llama(), std::vector<const char*>{"embeddings", "blocks.0", "*layers.1.*norm*"}},
        {small_gpt2(), {"blocks.1-2"}},
        {small_qwen2(), {"biases", "norms"}},
        {classifier_of(small_electra()), {"embeddings", "blocks.0-1"}},
        {classifier_of(small_bert()), {"head", "norms"}},
        {small_qwen3(),
         {"embeddings", "*layers.0.input_layernorm*", "*layers.0.self_attn.?_proj*", "*layers.1*k_norm*"}}}) {
    const auto model = model_of(config);
    GradientSums all, some;
    double all_norm = 0, some_norm = 0;
    const GlobalBatch batch = batch_for(*model, 3, batch_size, sequence);
    for (const bool freezes : {false, true}) {
      const auto planned = plan_for(*model, frozen_request(freezes ? patterns : std::vector<const char*>{}));
      TrainerOptions options;
      options.gradient_hook = [&](const GradientView& view) {
        (freezes ? some : all) = gradients_in(*planned, view);
        return true;
      };
      auto trainer = trainer_for(model, planned, options);
      auto result = trainer->step(batch.source(), batch_size, 1e-3);
      ASSERT_TRUE(result);
      (freezes ? some_norm : all_norm) = result->grad_norm;
    }
    EXPECT_LT(some.size(), all.size());
    EXPECT_GT(some.size(), 0u);
    double squares = 0;
    for (const auto& [name, values] : some) {
      EXPECT_EQ(values, all.at(name)) << name;
      for (double g : values) squares += g * g;
    }
    EXPECT_NEAR(some_norm, std::sqrt(squares) / static_cast<double>(batch.target_count()), 1e-6 * some_norm);
    EXPECT_LT(some_norm, all_norm);
  }
}

TEST(Frozen, TakesNoMemoryButItsOwn) {
  const auto model = model_of(small_llama());
  const auto whole = plan_for(*model, frozen_request({}, Precision::bf16));
  const auto frozen = plan_for(*model, frozen_request({"embeddings", "blocks"}, Precision::bf16));
  const auto bytes = [](const Planned& p, MemoryClass c) { return p.plan.bytes.of[static_cast<size_t>(c)]; };
  EXPECT_LT(bytes(*frozen, MemoryClass::gradients), bytes(*whole, MemoryClass::gradients) / 4);
  EXPECT_LT(bytes(*frozen, MemoryClass::optimizer), bytes(*whole, MemoryClass::optimizer) / 4);
  EXPECT_LT(bytes(*frozen, MemoryClass::saved_activations), bytes(*whole, MemoryClass::saved_activations));
  EXPECT_LT(frozen->plan.step_picoseconds, whole->plan.step_picoseconds / 2);
  EXPECT_LT(frozen->plan.trainable, whole->plan.trainable);
}

TEST(Group, RateAndDecayAreItsOwn) {
  const auto model = model_of(small_gpt2());
  Request r = frozen_request({});
  r.groups = {{"blocks.0", {}, 0.5, {}, {}},
              {"blocks.1", {}, 0.0, {}, {}},
              {"*h.2*", {}, {}, 0.0, {}},
              {"*ln_f.weight", {}, {}, 0.5, {}}};
  TrainerOptions options;
  options.weight_decay = 0.25;
  options.gradient_hook = [](const GradientView& view) {  // only decay remains
    std::fill_n(view.data, view.count, 0.0f);
    return true;
  };
  OpenTrainer trainer(model, plan_for(*model, r), options);
  const State before = trainer.state();
  ASSERT_TRUE(trainer->step(random_batch(1, batch_size, sequence).source(), batch_size, 0.1));
  const State after = trainer.state();
  const auto kept = [&](const std::string& name) {
    const float* from = reinterpret_cast<const float*>(before.at(name).data());
    const float* to = reinterpret_cast<const float*>(after.at(name).data());
    return static_cast<double>(to[1]) / static_cast<double>(from[1]);
  };
  EXPECT_NEAR(kept("transformer.wte.weight"), 1 - 0.1 * 0.25, 1e-6);
  EXPECT_NEAR(kept("transformer.h.0.attn.c_attn.weight"), 1 - 0.1 * 0.5 * 0.25, 1e-6);
  EXPECT_EQ(kept("transformer.h.1.attn.c_attn.weight"), 1);
  EXPECT_EQ(kept("transformer.h.2.attn.c_attn.weight"), 1);
  EXPECT_EQ(kept("transformer.h.0.ln_1.weight"), 1);
  EXPECT_NEAR(kept("transformer.ln_f.weight"), 1 - 0.1 * 0.5, 1e-6);
}

}  // namespace
}  // namespace stw::freeze_test
