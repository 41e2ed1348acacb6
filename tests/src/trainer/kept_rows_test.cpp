// Plans that keep the gradients of all embedded tokens instead of a gradient of the token table train the
// same bits as plans with that gradient.
#include "planner/graph/kept_rows.h"

#include <bit>
#include <random>

#include "tests/planner/small_graphs.h"
#include "tests/src/small_models.h"
#include "tests/src/temporary_directory.h"

namespace stw::kept_rows_test {
namespace {

using namespace testing_tools;

// The vocabulary is larger than the batch. A text repeats its tokens.
constexpr int64_t batch_size = 5, sequence = 33, vocabulary = 1500;

// `labels`: of the tokens; 0: the targets are tokens.
GlobalBatch batch_of(uint64_t step, int64_t labels = 0) {
  GlobalBatch batch = random_batch(100 + step, batch_size, sequence);
  for (std::vector<int32_t>* list : {&batch.tokens, &batch.targets})
    for (int32_t& token : *list)
      if (token % 3 == 0) token *= 23;
  for (size_t i = 0; labels > 0 && i < batch.targets.size(); ++i) {
    if (int32_t& target = batch.targets[i]; target >= 0) target %= static_cast<int32_t>(labels);
    batch.positions.push_back(static_cast<int32_t>(i % sequence % 13));  // several texts
  }
  if (step == 1) ignore_sample(batch, 3);
  return batch;
}

Trained train(const std::shared_ptr<const Model>& model, const std::shared_ptr<const Planned>& planned,
              TrainerOptions options = {}) {
  Trained outcome;
  const TemporaryDirectory folder;
  const auto trainer = trainer_for(model, planned, options);
  for (uint64_t step = 0; step < 4; ++step)
    if (!take_step(*trainer, batch_of(step, planned->graph.head.labels()), step == 2 ? 4 : batch_size,
                   outcome.figures))
      return outcome;
  EXPECT_TRUE(trainer->save(folder / "saved"));  // with the tensors in host memory
  outcome.state["checkpoint"] = file_bytes(folder / "saved");
  return outcome;
}

std::vector<NumericsCase> cases() {
  const auto large = [](const std::string& config) { return with_vocabulary(config, vocabulary); };
  const std::string gpt2 = large(small_gpt2("0.1")), qwen2 = large(small_qwen2()),
                    gemma3 = large(small_gemma3()), bloom = large(small_bloom());
  // Their tables have one use.
  const std::string llama = large(small_llama()), phi3 = large(small_phi3("0.1")),
                    bert = large(token_classifier_of(small_bert("0.1"))),
                    deberta = large(token_classifier_of(small_deberta("0.1")));
  return {{"gpt2", gpt2, Precision::fp32, 32},
          {"gpt2", gpt2, Precision::bf16, 8},
          {"qwen2", qwen2, Precision::fp16, 32},
          {"qwen2", qwen2, Precision::bf16, 32, Optimizer::lion, {{"embeddings", {}, 0.5, 0.3, {}}}},
          {"qwen2", qwen2, Precision::fp32, 32, Optimizer::adafactor},
          {"gemma3", gemma3, Precision::bf16, 8, Optimizer::adamw, {}, Master::stochastic, Gradients::bf16},
          {"gemma3", gemma3, Precision::fp32, 32, Optimizer::muon},
          {"gemma3", gemma3, Precision::bf16, 32, Optimizer::sgd},
          {"bloom", bloom, Precision::bf16, 32},
          {"llama", llama, Precision::fp32, 32},
          {"llama", llama, Precision::fp16, 8},
          {"llama", llama, Precision::bf16, 32, Optimizer::lion, {{"embeddings", {}, 0.5, 0.3, {}}}},
          {"llama", llama, Precision::bf16, 8, Optimizer::adamw, {}, Master::stochastic, Gradients::bf16},
          {"llama", llama, Precision::bf16, 32, Optimizer::adamw, {{"head", true, {}, {}, {}}}},
          {"phi3", phi3, Precision::fp32, 32, Optimizer::muon},
          {"phi3", phi3, Precision::bf16, 32, Optimizer::sgd},
          {"bert", bert, Precision::bf16, 8},
          {"deberta", deberta, Precision::bf16, 8, Optimizer::lion}};
}

// Whether the token table is an input only.
bool has_one_use(const Graph& graph) {
  const auto is_embedding = [](const Op& op) { return op.kind == OpKind::embedding; };
  const Op& op = *std::find_if(graph.ops.begin(), graph.ops.end(), is_embedding);
  const int table = graph.resolve(op.inputs[in(OpKind::embedding, "table")]);
  return std::count_if(graph.gradients.begin(), graph.gradients.end(),
                       [&](const ParameterGradient& g) { return g.parameter == table; }) == 1;
}

class KeptRows : public testing::TestWithParam<NumericsCase> {
 protected:
  KeptRows() : model_(model_of(GetParam().config)) {}
  Request request(int threads) const { return GetParam().request(batch_size, sequence, threads); }
  std::shared_ptr<const Model> model_;
};

TEST_P(KeptRows, TrainTheSameBits) {
  const auto plain = plan_for(*model_, request(1));
  ASSERT_FALSE(plain->plan.decisions.keeps_rows);
  const Trained expected = train(model_, plain);
  std::mt19937 random(3);
  for (int64_t micro_batch = 1; micro_batch <= batch_size; ++micro_batch) {
    Decisions d = random_decisions(plain->graph, random, batch_size);
    d.micro_batch = micro_batch;
    d.keeps_rows = true;
    if (micro_batch > 3) {
      const int blocks = plain->graph.blocks();
      d.offload = {{blocks + 1, blocks + 1, blocks, 1, blocks}};
      d.offload.overlap = micro_batch == 4;
      d.offload.slice = 512;
    }
    const auto planned = plan_with(*model_, request(1 + micro_batch % 3), d);
    ASSERT_TRUE(planned->graph.kept.exist());
    ASSERT_EQ(planned->graph.kept.formed >= 0, has_one_use(plain->graph));
    expect_same(train(model_, planned), expected, "micro-batch " + std::to_string(micro_batch));
  }
}

// The smallest plan keeps rows. It reads back from its file, and a trainer changes between both kinds.
TEST_P(KeptRows, TakeLessMemory) {
  Request r = request(2);
  const auto plain = plan_for(*model_, r);
  r.memory_bytes = 1;
  auto refused = Planned::make(*model_, r);
  ASSERT_TRUE(refused);
  r.memory_bytes = (*refused)->plan.minimum_bytes;
  const auto smallest = plan_for(*model_, r);
  ASSERT_TRUE(smallest);
  ASSERT_TRUE(smallest->plan.decisions.keeps_rows);
  EXPECT_NE(smallest->report.find("token table"), std::string::npos);
  auto loaded = Planned::load(*model_, smallest->json);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ((*loaded)->json, smallest->json);
  Decisions with_gradient = smallest->plan.decisions;
  with_gradient.keeps_rows = false;
  EXPECT_GT(plan_with(*model_, request(2), with_gradient)->plan.bytes.arena, smallest->plan.bytes.arena);

  TemporaryDirectory folder;
  const auto straight = trainer_for(model_, plain), trainer = trainer_for(model_, smallest);
  const auto saved = [&](Trainer& t) {
    EXPECT_TRUE(t.save(folder / "saved"));
    return file_bytes(folder / "saved");
  };
  const int64_t labels = plain->graph.head.labels();
  for (uint64_t step = 0; step < 6; ++step) {
    for (Trainer* t : {straight.get(), trainer.get()})
      ASSERT_TRUE(t->step(batch_of(step, labels).source(), batch_size, 3e-3));
    const Status status = trainer->replan(step % 2 ? smallest : plain);
    ASSERT_TRUE(status) << status.error().message;
  }
  EXPECT_TRUE(saved(*trainer) == saved(*straight));
  const auto resumed = trainer_for(model_, smallest);
  ASSERT_TRUE(resumed->restore(folder / "saved"));
  for (Trainer* t : {straight.get(), resumed.get()})
    ASSERT_TRUE(t->step(batch_of(7, labels).source(), batch_size, 3e-3));
  EXPECT_TRUE(saved(*resumed) == saved(*straight));
}

INSTANTIATE_TEST_SUITE_P(Models, KeptRows, testing::ValuesIn(cases()), case_name);

std::shared_ptr<const Planned> kept_plan(const Model& model, Request r, int64_t micro_batch) {
  r.micro_batch = micro_batch;
  Decisions d = plan_for(model, r)->plan.decisions;
  d.keeps_rows = true;
  return plan_with(model, r, d);
}

// fp16: a step whose gradients are not finite halves the scale and changes nothing else.
void skip_the_same_steps(const std::string& config) {
  const auto model = model_of(with_vocabulary(config, vocabulary));
  Request r = request_for(batch_size, sequence, 2);
  r.precision = Precision::fp16;
  TrainerOptions options;
  options.loss_scale = 0x1p40;
  std::vector<State> states;
  std::vector<double> scales;
  for (const auto& planned : {plan_for(*model, r), kept_plan(*model, r, 2)}) {
    OpenTrainer trainer(model, planned, options);
    int skipped = 0;
    for (uint64_t step = 0; step < 40; ++step) {
      auto result = trainer->step(batch_of(0).source(), batch_size, 3e-3);
      ASSERT_TRUE(result) << result.error().message;
      skipped += result->skip != kernels::skip_none;
      scales.push_back(result->loss_scale);
    }
    EXPECT_GT(skipped, 5);
    EXPECT_LT(skipped, 38);
    states.push_back(trainer.state());
  }
  EXPECT_EQ(differences(states[0], states[1]), "");
  EXPECT_TRUE(std::equal(scales.begin(), scales.begin() + 40, scales.begin() + 40));
}
TEST(KeptRows, SkipTheSameSteps) { skip_the_same_steps(small_qwen2()); }
TEST(KeptRows, SkipTheSameStepsIfTheyAreFormed) { skip_the_same_steps(small_llama()); }

// The hook sees all gradients, those of the token table as one sum, also in a part of a joint batch.
TEST(KeptRows, ShowTheirSumsToAGradientHook) {
  const auto model = model_of(with_vocabulary(small_gpt2(), vocabulary));
  const Request r = request_for(batch_size, sequence, 2);
  std::vector<GradientSums> seen;
  for (const auto& planned : {plan_for(*model, r), kept_plan(*model, r, 2)}) {
    TrainerOptions options;
    options.first_sample = 1000;
    options.gradient_hook = [&](const GradientView& view) {
      seen.push_back(gradients_in(*planned, view));
      return true;
    };
    const auto trainer = trainer_for(model, planned, options);
    ASSERT_TRUE(trainer->step(batch_of(0).source(), batch_size, 3e-3));
  }
  ASSERT_EQ(seen.size(), 2u);
  ASSERT_EQ(seen[0].size(), seen[1].size());
  for (const auto& [name, sums] : seen[0]) {
    const std::vector<double>& other = seen[1].at(name);
    ASSERT_EQ(sums.size(), other.size());
    for (size_t i = 0; i < sums.size(); ++i)
      ASSERT_EQ(static_cast<float>(sums[i]), static_cast<float>(other[i])) << name << " " << i;
  }
}

// A gradient that the update forms has no place in the arena.
TEST(KeptRows, AreRefusedWithAGradientHookIfTheyAreFormed) {
  const auto model = model_of(with_vocabulary(small_llama(), vocabulary));
  const Request r = request_for(batch_size, sequence, 2);
  const auto plain = plan_for(*model, r), kept = kept_plan(*model, r, 2);
  TrainerOptions options;
  options.gradient_hook = [](const GradientView&) { return true; };
  const std::string refusal =
      "trainer: a gradient hook needs all gradients in the arena, this plan forms that of the token table in "
      "slices at the update; plan with gradient_hook";
  const auto refused = Trainer::create(best_device(), model, kept, options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::bad_state);
  EXPECT_EQ(refused.error().message, refusal);
  const auto trainer = trainer_for(model, plain, options);
  const Status status = trainer->replan(kept);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, refusal);
  EXPECT_TRUE(trainer->step(batch_of(0).source(), batch_size, 3e-3));
}

// A plan for a gradient hook stores all gradients on the device, also the smallest one.
TEST(KeptRows, AreNotFormedInPlansForAGradientHook) {
  const auto model = model_of(with_vocabulary(small_llama(), vocabulary));
  Request r = request_for(batch_size, sequence, 2);
  for (const uint64_t host_bytes : {uint64_t{0}, uint64_t{1} << 30}) {
    uint64_t smallest[2] = {};
    for (const bool hook : {false, true}) {
      r.gradient_hook = hook, r.host_bytes = host_bytes, r.memory_bytes = 1;
      auto refused = Planned::make(*model, r);
      ASSERT_TRUE(refused);
      r.memory_bytes = smallest[hook] = (*refused)->plan.minimum_bytes;
      const Plan plan = plan_for(*model, r)->plan;
      EXPECT_EQ(plan.decisions.keeps_rows, !hook);
      EXPECT_EQ(plan.decisions.offload[Offloaded::gradients] > 0, !hook && host_bytes > 0);
    }
    EXPECT_LT(smallest[false], smallest[true]);
  }
  const auto tied = model_of(with_vocabulary(small_qwen2(), vocabulary));
  r = request_for(batch_size, sequence, 2);
  r.gradient_hook = true, r.memory_bytes = 1;
  auto refused = Planned::make(*tied, r);
  ASSERT_TRUE(refused);
  EXPECT_TRUE((*refused)->plan.decisions.keeps_rows);  // they are added to the head's gradient
}

TEST(KeptRows, TrainWithUpdatesInTheBackwardPass) {
  for (const std::string& config : {small_gpt2(), small_llama()}) {
    const auto model = model_of(with_vocabulary(config, vocabulary));
    Request r = request_for(batch_size, sequence, 2);
    r.fused_update = true;
    TrainerOptions options;
    options.clip_norm = 0;
    const auto plain = plan_for(*model, r);
    expect_same(train(model, kept_plan(*model, r, batch_size), options), train(model, plain, options));
  }
}

// Timed micro-steps keep the rows of few samples.
TEST(KeptRows, AreTimed) {
  for (const std::string& config : {small_gpt2(), small_llama()}) {
    const auto model = model_of(with_vocabulary(config, vocabulary));
    const auto trainer = trainer_for(model, kept_plan(*model, request_for(batch_size, sequence, 2), 2));
    const auto profile = trainer->calibrate();
    ASSERT_TRUE(profile) << profile.error().message;
    EXPECT_GT(profile->calibration.ops[static_cast<size_t>(OpKind::kept_rows_gradient)].permille, 0u);
  }
}

// Frozen tables, and tables smaller than the batch, have none. A table with one use also needs an optimizer
// that updates each element by itself.
TEST(KeptRows, NeedATrainedTable) {
  const auto graph = [](const SmallModel& model, const char* frozen, Optimizer optimizer = Optimizer::adamw) {
    Numerics n;
    n.optimizer = optimizer;
    if (frozen) n.groups.push_back({frozen, true, {}, {}, {}});
    return build_model(config_of(model), sequence, n);
  };
  const std::string tied = with_vocabulary(small_qwen2(), vocabulary),
                    apart = with_vocabulary(small_llama(), vocabulary);
  EXPECT_TRUE(may_keep_rows(graph(tied, nullptr), batch_size));
  EXPECT_FALSE(may_keep_rows(graph(tied, nullptr), 2 * vocabulary / sequence));
  EXPECT_FALSE(may_keep_rows(graph(tied, "embeddings"), batch_size));
  EXPECT_TRUE(may_keep_rows(graph(tied, "blocks"), batch_size));
  EXPECT_TRUE(may_keep_rows(graph(apart, nullptr), batch_size));
  EXPECT_TRUE(may_keep_rows(graph(apart, "head"), batch_size));
  EXPECT_FALSE(may_keep_rows(graph(apart, nullptr), vocabulary / sequence));
  EXPECT_FALSE(may_keep_rows(graph(apart, "embeddings"), batch_size));
  EXPECT_TRUE(may_keep_rows(graph(tied, nullptr, Optimizer::adafactor), batch_size));
  EXPECT_FALSE(may_keep_rows(graph(apart, nullptr, Optimizer::adafactor), batch_size));
  EXPECT_FALSE(may_keep_rows(graph({tied, adapters_of_all(0.1)}, nullptr), batch_size));
  Graph kept = graph(tied, nullptr);
  keep_rows(kept, batch_size);
  EXPECT_FALSE(may_keep_rows(kept, batch_size));
}

}  // namespace
}  // namespace stw::kept_rows_test
