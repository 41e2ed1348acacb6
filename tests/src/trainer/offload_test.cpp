// Offload changes no bit of a step, a checkpoint, an evaluation or a generated text, for any set of tensors,
// whether copies run before and after each op or at the same time as ops.
#include "planner/graph/offload.h"

#include <bit>

#include "tests/planner/small_graphs.h"
#include "tests/src/small_models.h"
#include "tests/src/temporary_directory.h"

namespace stw::offload_test {
namespace {

using namespace testing_tools;

constexpr int64_t batch_size = 5, sequence = 20;
#ifdef STW_SANITIZED
constexpr int mixtures = 1;  // with sanitizers a step takes tens of times as long
#else
constexpr int mixtures = 10;
#endif

// All results of a run that a user can see.
struct Outcome {
  std::vector<double> figures;
  std::string checkpoint, model;
  std::vector<int32_t> sample;
};

Outcome run(const std::shared_ptr<const Model>& model, const std::shared_ptr<const Planned>& planned) {
  Outcome outcome;
  const TemporaryDirectory folder;
  const Dataset dataset = open_tokens(folder, 5, 2000);
  auto trainer = trainer_for(model, planned);
  if (!trainer) return outcome;
  for (uint64_t step = 0; step < 3; ++step) {
    const GlobalBatch batch = batch_for(*model, 300 + step, batch_size, sequence);
    if (!take_step(*trainer, batch, step == 1 ? 3 : batch_size, outcome.figures)) return outcome;
  }
  const std::vector<int32_t> prompt{1, 2, 3};
  if (architecture_of(model->config()).is_encoder) {
    const Text text{prompt.data(), prompt.size(), nullptr};
    std::vector<float> logits(small_labels);
    EXPECT_TRUE(trainer->classify({&text, 1}, logits.data()));
    outcome.figures.insert(outcome.figures.end(), logits.begin(), logits.end());
  } else {
    auto loss = trainer->evaluate(dataset, 2);
    EXPECT_TRUE(loss);
    outcome.figures.push_back(*loss);
    outcome.sample.resize(8);
    GenerateOptions options;
    options.prompt = prompt.data();
    options.prompt_count = prompt.size();
    options.out = outcome.sample.data();
    options.out_capacity = outcome.sample.size();
    EXPECT_TRUE(trainer->generate(options));
  }
  EXPECT_TRUE(trainer->save(folder / "checkpoint"));
  EXPECT_TRUE(trainer->export_model(folder / "model"));
  outcome.checkpoint = file_bytes(folder / "checkpoint");
  outcome.model = file_bytes(folder / "model/model.safetensors");
  EXPECT_GT(outcome.checkpoint.size(), 1000u);
  // A restored trainer continues like the one that was saved.
  auto again = trainer_for(model, planned);
  const auto status = again->restore(folder / "checkpoint");
  EXPECT_TRUE(status) << status.error().message;
  const GlobalBatch batch = batch_for(*model, 400, batch_size, sequence);
  auto one = trainer->step(batch.source(), batch_size, 1e-3),
       other = again->step(batch.source(), batch_size, 1e-3);
  EXPECT_TRUE(one && other &&
              std::bit_cast<uint64_t>(one->grad_norm) == std::bit_cast<uint64_t>(other->grad_norm));
  return outcome;
}

void expect_same(const Outcome& a, const Outcome& b, const std::string& what) {
  EXPECT_EQ(a.figures, b.figures) << what;
  EXPECT_EQ(a.sample, b.sample) << what;
  EXPECT_TRUE(a.checkpoint == b.checkpoint) << what;
  EXPECT_TRUE(a.model == b.model) << what;
}

std::string describe(const Decisions& d) {
  const Offload& o = d.offload;
  std::string s = "micro-batch " + std::to_string(d.micro_batch) + ", offload";
  for (int n : o.parts) s += " " + std::to_string(n);
  return s + (o.overlap ? ", overlapped" : "") + ", slices of " + std::to_string(o.slice);
}

class OffloadedRun : public testing::TestWithParam<int> {};

TEST_P(OffloadedRun, TrainsTheSameBits) {
  const bool llama = GetParam() & 1, half = GetParam() & 2, encoder = GetParam() & 4;
  const auto model = model_of(encoder ? classifier_of(small_bert("0.1"))
                              : llama ? small_llama()
                                      : small_gpt2("0.1"));
  Request request = request_for(batch_size, sequence, 2);
  request.precision = half ? Precision::bf16 : Precision::fp32;
  request.state_bits = half ? 8 : 32;
  const auto plain = plan_for(*model, request);
  const Outcome expected = run(model, plain);
  const int blocks = plain->graph.blocks();
  std::mt19937 random(static_cast<uint32_t>(GetParam()));
  auto pick = [&](int most) { return static_cast<int>(random() % static_cast<uint32_t>(most + 1)); };
  std::vector<Offload> list;
  for (size_t kind = 0; kind < offloaded_count; ++kind) {
    list.emplace_back();
    list.back().parts[kind] = blocks + 1;
  }
  for (int i = 0; i < mixtures; ++i)
    list.push_back({{pick(blocks + 1), pick(blocks + 1), pick(blocks), pick(blocks), pick(blocks)}});
  list.push_back({{blocks + 1, blocks + 1, blocks, blocks, blocks}});
  for (size_t i = 0; i < list.size(); ++i) {
    for (bool overlap : {false, true}) {
      Decisions d = random_decisions(plain->graph, random, batch_size);
      d.offload = list[i];
      d.offload.overlap = overlap;
      d.offload.slice = i % 3 == 0 ? int64_t{1} << 22 : 256 << pick(4);
      const auto planned = plan_with(*model, request, d);
      ASSERT_FALSE(testing::Test::HasFailure()) << describe(d);
      EXPECT_EQ(planned->plan.bytes.host > 0, half || i != 1) << describe(d);  // fp32 has no masters
      expect_same(expected, run(model, planned), describe(d));
      if (testing::Test::HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, OffloadedRun, testing::Values(0, 1, 2, 3, 6));

TEST(Offload, TakesItsTensorsOutOfTheArena) {
  const auto model = model_of(small_llama());
  Request request = request_for(batch_size, sequence);
  request.precision = Precision::bf16;
  const auto plain = plan_for(*model, request);
  const int blocks = plain->graph.blocks();
  auto resident = [](const Programs& p) { return p.arena.gradients_end; };
  for (size_t kind = 0; kind < 4; ++kind) {
    Decisions d = plain->plan.decisions;
    uint64_t before = resident(plain->programs);
    for (int count = 1; count <= blocks + (kind < 2); ++count) {
      d.offload.parts[kind] = count;
      const Programs p = make_programs(plain->graph, d, batch_size, 1, 64);
      EXPECT_LT(resident(p), before) << kind << ", " << count;
      EXPECT_EQ(resident(p) + p.arena.host_bytes, resident(plain->programs)) << kind << ", " << count;
      before = resident(p);
    }
  }
}

TEST(Offload, RefusesAGradientHookThatCouldNotSeeThemAll) {
  const auto model = model_of(small_gpt2());
  const Request request = request_for(batch_size, sequence);
  Decisions d = plan_for(*model, request)->plan.decisions;
  d.offload[Offloaded::gradients] = 1;
  TrainerOptions options;
  options.gradient_hook = [](const GradientView&) { return true; };
  auto trainer = Trainer::create(best_device(), model, plan_with(*model, request, d), options);
  ASSERT_FALSE(trainer);
  EXPECT_EQ(trainer.error().code, Code::bad_state);
}

}  // namespace
}  // namespace stw::offload_test
