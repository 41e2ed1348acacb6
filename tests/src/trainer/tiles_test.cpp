// Tiles of feed-forward parts change no bit of a step, an evaluation or a generated text, for any tile size
// and any other decisions of the plan.
#include <random>

#include "planner/graph/feed_forward.h"
#include "tests/src/small_models.h"
#include "tests/src/temporary_directory.h"

namespace stw::tiles_test {
namespace {

using namespace testing_tools;

constexpr int64_t batch_size = 3, sequence = 290;  // more rows than a chain of sums has terms (256)
#ifdef STW_SANITIZED
constexpr int rounds = 2;
#else
constexpr int rounds = 10;
#endif

struct Case {
  const char* name;
  SmallModel config;
  Precision precision;
  bool fused_update = false;
  std::vector<ParameterGroup> groups = {};
};

class Tiles : public testing::TestWithParam<Case> {
 protected:
  std::shared_ptr<const Model> model_ = model_of(with_positions(GetParam().config, sequence));
  TemporaryDirectory folder_;

  Request request() const {
    Request r = request_for(batch_size, sequence, 2);
    r.precision = GetParam().precision;
    r.fused_update = GetParam().fused_update;
    r.groups = GetParam().groups;
    return r;
  }
  Trained train(const std::shared_ptr<const Planned>& planned) {
    Trained outcome;
    TrainerOptions options;
    if (GetParam().fused_update) options.clip_norm = 0;
    OpenTrainer trainer(model_, planned, options);
    for (uint64_t step = 0; step < 2; ++step) {
      const GlobalBatch batch = random_batch(50 + step, batch_size, sequence);
      if (!take_step(*trainer, batch, batch_size - step, outcome.figures)) return outcome;
    }
    evaluate(*trainer, folder_, outcome.figures);
    // A checkpoint includes host memory.
    EXPECT_TRUE(trainer->save(folder_ / "checkpoint"));
    outcome.state["checkpoint"] = file_bytes(folder_ / "checkpoint");
    EXPECT_GT(outcome.state["checkpoint"].size(), 1000u);
    return outcome;
  }
};

TEST_P(Tiles, ChangeNoBit) {
  const Request r = request();
  const auto plain = plan_for(*model_, r);
  const Trained expected = train(plain);
  std::mt19937 random(8);
  auto pick = [&](int count) { return static_cast<int>(random() % static_cast<uint32_t>(count)); };
  for (int round = 0; round < rounds; ++round) {
    Decisions d = plain->plan.decisions;
    if (!GetParam().fused_update) d.micro_batch = 1 + pick(batch_size);
    d.loss_chunks = 1 << pick(3);
    d.tile_rows.assign(d.saved.size(), 0);
    for (size_t s = 0; s < d.saved.size(); ++s) {
      const int64_t unit = tile_unit(plain->graph, plain->graph.segments[s].feed_forward);
      // Tiles within a sample, of one sample, and of several.
      const int64_t rows[] = {unit, 2 * unit, sequence, 2 * sequence + 7};
      constexpr uint32_t sets[] = {0, 1, 3, 7};
      const uint32_t saved = sets[pick(4)];
      const bool tiles = may_tile(plain->graph, plain->graph.segments[s], saved) && pick(4) > 0;
      d.saved[s] = tiles ? saved : static_cast<uint32_t>(random());
      if (tiles) d.tile_rows[s] = rows[pick(4)];
    }
    if (round % 3 == 2 && !GetParam().fused_update) {
      const int blocks = plain->graph.blocks();
      d.offload.parts = {pick(blocks + 2), pick(blocks + 2), pick(blocks + 1), pick(blocks + 1),
                         pick(blocks + 1)};
      d.offload.overlap = pick(2) && d.offload.any();
    }
    const auto planned = plan_with(*model_, r, d);
    const auto parts = [](const Instruction& i) {
      return i.phase == Phase::recompute && i.rows % sequence != 0;
    };
    const auto& all = planned->programs.micro_first.instructions;
    const bool cuts = std::any_of(d.tile_rows.begin(), d.tile_rows.end(),
                                  [](int64_t rows) { return rows > 0 && rows < sequence; });
    EXPECT_TRUE(!cuts || std::count_if(all.begin(), all.end(), parts) > 0) << "nothing ran in tiles";
    expect_same(train(planned), expected,
                "round " + std::to_string(round) + ", micro-batch " + std::to_string(d.micro_batch));
    if (testing::Test::HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, Tiles,
    testing::Values(Case{"gpt2_dropout", small_gpt2("0.1"), Precision::fp32},
                    Case{"gpt2", small_gpt2(), Precision::bf16},
                    Case{"llama", small_llama(), Precision::bf16},
                    Case{"qwen2", small_qwen2(), Precision::fp32},
                    Case{"gpt2_adapters", {small_gpt2(), adapters_of_all()}, Precision::fp32},
                    Case{"llama_adapters", {small_llama(), adapters_of_some()}, Precision::bf16},
                    Case{"llama_half", small_llama(), Precision::fp16},
                    Case{"gpt2_fused", small_gpt2(), Precision::fp32, true},
                    Case{"llama_fused", small_llama(), Precision::bf16, true},
                    Case{"gpt2_frozen",
                         small_gpt2(),
                         Precision::fp32,
                         false,
                         {{"embeddings", true, {}, {}, {}}, {"*mlp.c_fc*", true, {}, {}, {}}}}),
    [](const testing::TestParamInfo<Case>& c) { return std::string(c.param.name); });

// The search itself chooses tiles where memory is short.
TEST(TiledPlan, TrainsInLessMemoryToTheSameBits) {
  constexpr int64_t length = 1100;
  const auto model = model_of(with_positions(small_qwen2(), length));
  Request r = request_for(1, length, 2);
  const auto roomy = plan_for(*model, r);
  EXPECT_TRUE(roomy->plan.decisions.tile_rows.empty());
  r.memory_bytes = roomy->plan.minimum_bytes;
  const auto tight = plan_for(*model, r);
  ASSERT_FALSE(tight->plan.decisions.tile_rows.empty());
  Decisions untiled = tight->plan.decisions;
  untiled.tile_rows.clear();
  EXPECT_LT(tight->plan.bytes.arena, plan_with(*model, r, untiled)->plan.bytes.arena);
  const GlobalBatch batch = random_batch(3, 1, length);
  Trained outcomes[2];
  for (int i = 0; i < 2; ++i) {
    OpenTrainer trainer(model, i ? tight : roomy);
    ASSERT_TRUE(take_step(*trainer, batch, 1, outcomes[i].figures));
    outcomes[i].state = trainer.state();
  }
  expect_same(outcomes[0], outcomes[1]);
}

}  // namespace
}  // namespace stw::tiles_test
