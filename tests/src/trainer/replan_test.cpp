// A trainer whose budget changes between steps continues with the same bits.
#include <random>

#include "src/trainer/trainer.h"
#include "tests/src/small_models.h"

namespace stw::replan_test {
namespace {

using namespace testing_tools;

constexpr int64_t batch_size = 6, sequence = 33;
#ifdef STW_SANITIZED
constexpr uint64_t moves = 16;
#else
constexpr uint64_t moves = 40;
#endif

Request request_of(Precision precision, int bits) {
  Request r = request_for(batch_size, sequence, 2);
  r.precision = precision;
  r.state_bits = bits;
  r.host_bytes = uint64_t{1} << 30;
  return r;
}

// The bytes of a checkpoint: the whole state.
std::string saved(Trainer& trainer, const TemporaryDirectory& folder) {
  EXPECT_TRUE(trainer.save(folder / "saved"));
  auto text = read_text(folder / "saved", uint64_t{1} << 30);
  EXPECT_TRUE(text);
  return *text;
}

TEST(Replan, KeepsTheBitsAtEveryBudget) {
  constexpr uint64_t steps = 12;
  TemporaryDirectory folder;
  for (const auto& [config, precision, bits] :
       {std::tuple{SmallModel(small_gpt2("0.1")), Precision::fp32, 32},
        {small_llama(), Precision::bf16, 8},
        {small_qwen2(), Precision::fp16, 8},
        {classifier_of(small_bert("0.1")), Precision::bf16, 8},
        {{classifier_of(small_bert("0.1")), adapters_of_all(0.1)}, Precision::fp32, 32}}) {
    const auto model = model_of(config);
    Request r = request_of(precision, bits);
    r.memory_bytes = 1;
    const uint64_t least = (*Planned::make(*model, r))->plan.minimum_bytes, most = uint64_t{4} << 20;
    auto plan = [&](uint64_t bytes) {
      r.memory_bytes = bytes;
      return plan_for(*model, r);
    };
    const auto roomy = plan(most);
    const auto straight = trainer_for(model, roomy), trainer = trainer_for(model, roomy);
    std::mt19937 random(1);
    int offloaded = 0;
    for (uint64_t step = 0; step < steps; ++step) {
      const GlobalBatch batch = batch_for(*model, step, batch_size, sequence);
      for (Trainer* t : {straight.get(), trainer.get()})
        ASSERT_TRUE(t->step(batch.source(), batch_size, 3e-3));
      const std::string before = saved(*trainer, folder);
      const auto next = plan(step % 3 == 0 ? least : least + random() % (most - least));
      offloaded += next->plan.decisions.offload.any();
      const Status status = trainer->replan(next);
      ASSERT_TRUE(status) << status.error().message;
      EXPECT_EQ(trainer->plan().bytes.arena, next->plan.bytes.arena);
      EXPECT_TRUE(saved(*trainer, folder) == before) << "step " << step;
    }
    EXPECT_GT(offloaded, static_cast<int>(steps) / 4);
    EXPECT_TRUE(saved(*trainer, folder) == saved(*straight, folder));
  }
}

// Some tensors move up in the arena, others down.
TEST(Replan, MovesPersistentTensorsInBothDirections) {
  TemporaryDirectory folder;
  const auto model = model_of(small_llama());
  const Request r = request_of(Precision::bf16, 32);
  const auto plain = plan_for(*model, r);
  std::vector<std::shared_ptr<const Planned>> plans{plain};
  for (const auto& [optimizer, masters, weights] :
       {std::tuple{3, 0, 0}, {0, 4, 0}, {4, 1, 2}, {1, 3, 3}, {0, 0, 2}, {4, 4, 3}, {2, 2, 0}}) {
    Decisions d = plain->plan.decisions;
    d.offload[Offloaded::optimizer] = optimizer;
    d.offload[Offloaded::masters] = masters;
    d.offload[Offloaded::weights] = weights;
    plans.push_back(plan_with(*model, r, d));
  }
  const auto straight = trainer_for(model, plain), trainer = trainer_for(model, plain);
  std::mt19937 random(2);
  for (uint64_t step = 0; step < moves; ++step) {
    for (Trainer* t : {straight.get(), trainer.get()}) {
      if (step % 8 != 0) continue;
      ASSERT_TRUE(t->step(random_batch(step, batch_size, sequence).source(), batch_size, 3e-3));
    }
    ASSERT_TRUE(trainer->replan(plans[random() % plans.size()]));
    ASSERT_TRUE(saved(*trainer, folder) == saved(*straight, folder)) << step;
  }
}

TEST(Replan, RefusesToChangeBitsAndStaysUnchanged) {
  TemporaryDirectory folder;
  const auto model = model_of(small_gpt2());
  Request r = request_of(Precision::bf16, 32);
  r.host_bytes = 0;
  const auto plain = plan_for(*model, r);
  OpenTrainer trainer(model, plain);
  ASSERT_TRUE(trainer->step(random_batch(1, batch_size, sequence).source(), batch_size, 1e-3));
  const State before = trainer.state();
  Request other = r;
  other.state_bits = 8;
  EXPECT_EQ(trainer->replan(plan_for(*model, other)).error().code, Code::bad_state);
  other = r;
  other.precision = Precision::fp32;
  EXPECT_EQ(trainer->replan(plan_for(*model, other)).error().code, Code::bad_state);
  other = r;
  other.global_batch = 5;
  EXPECT_EQ(trainer->replan(plan_for(*model, other)).error().code, Code::bad_state);
  // The host's arena has the size of the first plan.
  other = r;
  other.micro_batch = batch_size;
  other.recompute = Recompute::none;
  r.memory_bytes = (*Planned::make(*model,
                                   [&] {
                                     Request tiny = r;
                                     tiny.memory_bytes = 1;
                                     return tiny;
                                   }()))
                       ->plan.minimum_bytes;
  const auto tight = plan_for(*model, r), wide = plan_for(*model, other);
  OpenTrainer small(model, tight);
  const Status refused = small->replan(wide);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::out_of_memory);
  EXPECT_EQ(refused.error().bytes_needed, wide->plan.bytes.arena);
  EXPECT_EQ(differences(trainer.state(), before), "");
  ASSERT_TRUE(trainer->step(random_batch(2, batch_size, sequence).source(), batch_size, 1e-3));
}

}  // namespace
}  // namespace stw::replan_test
