// The gradient hook: two trainers that sum their gradients equal one trainer of the joint batch.
#include <algorithm>
#include <array>
#include <barrier>
#include <thread>

#include "tests/api/harness.h"

namespace stw::api_test {
namespace {

// Data parallelism in one process. Every rank sums the gradients of all ranks, in the order of the ranks.
struct Exchange {
  std::barrier<> barrier{2};
  std::array<std::vector<float>, 2> data;
  std::array<double, 2> loss;
  std::array<uint64_t, 2> targets;
};
struct Rank {
  Exchange* exchange;
  size_t index;
  static int32_t hook(void* user, const stw_gradients* g) {
    const Rank& rank = *static_cast<Rank*>(user);
    Exchange& x = *rank.exchange;
    EXPECT_EQ(g->struct_size, sizeof *g);
    EXPECT_EQ(g->stream, nullptr);
    x.data[rank.index].assign(g->data, g->data + g->count);
    x.loss[rank.index] = *g->loss_sum;
    x.targets[rank.index] = *g->target_count;
    x.barrier.arrive_and_wait();
    for (uint64_t i = 0; i < g->count; ++i) g->data[i] = x.data[0][i] + x.data[1][i];
    *g->loss_sum = x.loss[0] + x.loss[1];
    *g->target_count = x.targets[0] + x.targets[1];
    x.barrier.arrive_and_wait();
    return 0;
  }
};

// With a tiny epsilon, Adam turns any gradient near zero into a full step of either sign. With 1e-3,
// gradients that differ little give updates that differ little.
constexpr float smooth = 1e-3f;

struct Pair {
  stw_step_result results[2];
  std::vector<std::vector<float>> values;  // of both trainers
};
// Two trainers of half a batch, each. `places`: they know the places of their halves in the joint batch.
Pair train_halves(const std::string& config, stw_plan_options plan, const stw_trainer_options& plain,
                  const TokenBatch& joint, int steps, bool places) {
  TokenBatch halves[2] = {TokenBatch(4, 16), TokenBatch(4, 16)};
  for (size_t h = 0; h < 2; ++h) {
    std::copy_n(joint.tokens.data() + h * 64, 64, halves[h].tokens.data());
    std::copy_n(joint.targets.data() + h * 64, 64, halves[h].targets.data());
  }
  plan.global_batch = 4;
  plan.micro_batch = 3;
  Exchange exchange;
  Rank ranks[2] = {{&exchange, 0}, {&exchange, 1}};
  std::vector<World> worlds;
  for (Rank& rank : ranks) {
    auto o = plain;
    o.gradient_hook = Rank::hook;
    o.gradient_user = &rank;
    if (places) o.first_sample = 4 * rank.index;
    worlds.emplace_back(config, plan, &o, open_device(1));
  }
  Pair pair;
  const auto train = [&](size_t i) {
    for (int s = 0; s < steps; ++s) pair.results[i] = step(worlds[i].trainer.get(), halves[i].batch());
  };
  std::thread other(train, 1);
  train(0);
  other.join();
  pair.values = values_of(worlds[0]);
  EXPECT_EQ(pair.values, values_of(worlds[1]));
  return pair;
}

// The halves have different numbers of targets.
TokenBatch joint_batch() {
  TokenBatch joint(8, 16);
  for (size_t i = 0; i < 21; ++i) joint.targets[i] = -100;
  return joint;
}

stw_plan_options joint_plan() {
  auto plan = plan_options(8);
  plan.threads = 1;
  return plan;
}

void compare(const std::string& config, int steps, bool places) {
  TokenBatch joint = joint_batch();
  auto plain = sized<stw_trainer_options>();
  plain.epsilon = smooth;
  const Pair pair = train_halves(config, joint_plan(), plain, joint, steps, places);
  World one(config, joint_plan(), &plain, open_device(1));
  stw_step_result expected{};
  for (int s = 0; s < steps; ++s) expected = step(one.trainer.get(), joint.batch());

  EXPECT_EQ(pair.results[0].targets, expected.targets);
  EXPECT_NEAR(pair.results[0].loss, expected.loss, 1e-6 * expected.loss);
  EXPECT_NEAR(pair.results[0].grad_norm, expected.grad_norm, 1e-6 * expected.grad_norm);
  const auto expected_values = values_of(one);
  for (size_t t = 0; t < expected_values.size(); ++t) {
    float difference = 0, largest = 0;
    for (size_t i = 0; i < expected_values[t].size(); ++i) {
      difference = std::max(difference, std::fabs(pair.values[t][i] - expected_values[t][i]));
      largest = std::max(largest, std::fabs(expected_values[t][i]));
    }
    EXPECT_LE(difference, 1e-6f * largest) << "tensor " << t;
  }
}

std::string dropping(std::string config) {
  for (size_t at; (at = config.find("pdrop\":0.0")) != config.npos;) config.replace(at, 10, "pdrop\":0.3");
  return config;
}

TEST(GradientHook, TwoTrainersAgreeWithOneOfTwiceTheBatch) { compare(tiny_llama, 3, false); }
TEST(GradientHook, TwoTrainersDropWhatOneOfTwiceTheBatchDrops) { compare(dropping(tiny_gpt2), 3, true); }

// Gradients are summed in another order, and a last bit that differs may round to the other neighbour. Almost
// all weights round alike.
TEST(GradientHook, TwoTrainersRoundAsOneOfTwiceTheBatch) {
  TokenBatch joint = joint_batch();
  auto plan = joint_plan();
  plan.precision = STW_PRECISION_BF16;
  plan.master = STW_MASTER_STOCHASTIC;
  auto plain = sized<stw_trainer_options>();
  plain.epsilon = smooth;
  const std::string config = dropping(tiny_gpt2);
  const auto unlike = [&](uint64_t seed, bool places) {
    World one(config, plan, &plain, open_device(1));
    step(one.trainer.get(), joint.batch());
    const auto expected = values_of(one);
    auto o = plain;
    if (seed != 0) o.seed = seed, o.set_mask |= STW_SET_TRAINER_SEED;
    const auto found = train_halves(config, plan, o, joint, 1, places).values;
    size_t different = 0, all = 0;
    for (size_t t = 0; t < expected.size(); ++t)
      for (size_t i = 0; i < expected[t].size(); ++i) different += found[t][i] != expected[t][i], ++all;
    return static_cast<double>(different) / static_cast<double>(all);
  };
  EXPECT_LE(unlike(0, true), 0.001);
  EXPECT_GE(unlike(0, false), 0.02);  // other elements are dropped
  EXPECT_GE(unlike(77, true), 0.02);
}

TEST(GradientHook, APlaceNeedsAHookAndFits) {
  const auto refusal = [](uint64_t first_sample, bool hook) {
    auto o = sized<stw_trainer_options>();
    o.first_sample = first_sample;
    if (hook) o.gradient_hook = [](void*, const stw_gradients*) -> int32_t { return 0; };
    World w(tiny_gpt2, plan_options(4));
    stw_trainer* trainer = nullptr;
    stw_error error = sized<stw_error>();
    const stw_status status =
        stw_trainer_create(&trainer, w.device.get(), w.model.get(), w.plan.get(), &o, &error);
    EXPECT_EQ(status, trainer == nullptr ? STW_BAD_ARGUMENT : STW_OK);
    stw_trainer_destroy(trainer);
    return std::string(error.message);
  };
  EXPECT_EQ(refusal(4, false), "trainer: first_sample is for a gradient hook that adds up several trainers");
  const uint64_t limit = uint64_t{1} << 32;
  EXPECT_EQ(refusal(limit - 4, true), "");
  EXPECT_EQ(refusal(limit - 3, true), "trainer: first_sample + global_batch must be at most 2^32");
  EXPECT_EQ(refusal(~uint64_t{0}, true), "trainer: first_sample + global_batch must be at most 2^32");
}

// The smallest plan forms the gradient of a token table that is not tied at the update, where a hook cannot
// see it. Plans for a hook do not, also where a trainer with a hook plans again.
TEST(GradientHook, HasPlansThatStoreTheGradientOfTheTokenTable) {
  std::string config = tiny_llama;
  const std::string small = "\"vocab_size\":256";
  config.replace(config.find(small), small.size(), "\"vocab_size\":4096");
  auto o = sized<stw_trainer_options>();
  o.gradient_hook = [](void*, const stw_gradients*) -> int32_t { return 0; };
  const Handle<stw_device> device = open_device();
  const Handle<stw_model> model = make_model(config);
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != text.npos; };
  uint64_t smallest[2] = {};
  for (const uint32_t for_hook : {0u, 1u}) {
    auto wanted = plan_options(4);
    wanted.gradient_hook = for_hook;
    wanted.state_bits = STW_STATES_32;
    smallest[for_hook] = info_of(make_plan(model.get(), wanted).get()).minimum_bytes;
    wanted.memory_bytes = smallest[for_hook];
    const Handle<stw_plan> plan = make_plan(model.get(), wanted);
    EXPECT_EQ(has(stw_plan_json(plan.get()), "\"keeps_rows\": true"), for_hook == 0);
    stw_trainer* trainer = nullptr;
    stw_error error = sized<stw_error>();
    EXPECT_EQ(stw_trainer_create(&trainer, device.get(), model.get(), plan.get(), &o, &error),
              for_hook ? STW_OK : STW_BAD_STATE);
    if (!for_hook) { EXPECT_TRUE(has(error.message, "plan with gradient_hook")) << error.message; }
    stw_trainer_destroy(trainer);
  }
  EXPECT_LT(smallest[0], smallest[1]);
  const World w(config, plan_options(4), &o);
  stw_plan* plan = nullptr;
  stw_error error = sized<stw_error>();
  EXPECT_EQ(stw_trainer_replan(w.trainer.get(), smallest[1], &plan, &error), STW_OK) << error.message;
  stw_plan_destroy(plan);
  EXPECT_EQ(stw_trainer_replan(w.trainer.get(), smallest[1] - 1, &plan, &error), STW_OVER_BUDGET);
}

TEST(GradientHook, ThatFailsChangesNothing) {
  struct Hook {
    bool fail = false;
    int calls = 0;
    static int32_t call(void* user, const stw_gradients* g) {
      auto& self = *static_cast<Hook*>(user);
      ++self.calls;
      if (self.fail) std::fill_n(g->data, g->count, NAN);
      return self.fail ? 7 : 0;
    }
  } hook;
  auto o = sized<stw_trainer_options>();
  o.gradient_hook = Hook::call;
  o.gradient_user = &hook;
  World w(tiny_gpt2, plan_options(), &o), other(tiny_gpt2, plan_options());
  TokenBatch batch(4, 16);
  step(w.trainer.get(), batch.batch());
  const State before = state_of(w);
  hook.fail = true;
  stw_error error = sized<stw_error>();
  EXPECT_EQ(stw_trainer_step(w.trainer.get(), batch.batch(), &error), STW_CALLBACK_FAILED);
  EXPECT_EQ(hook.calls, 2);
  EXPECT_EQ(state_of(w), before);
  hook.fail = false;
  step(w.trainer.get(), batch.batch());
  step(other.trainer.get(), batch.batch());
  step(other.trainer.get(), batch.batch());
  EXPECT_EQ(state_of(w), state_of(other));
}

// The hook sees sums over targets. Clearing them clears the update.
TEST(GradientHook, SeesSumsAndMayChangeThem) {
  auto o = sized<stw_trainer_options>();
  o.set_mask = STW_SET_WEIGHT_DECAY;
  double loss_sum = 0;
  o.gradient_user = &loss_sum;
  o.gradient_hook = [](void* user, const stw_gradients* g) -> int32_t {
    *static_cast<double*>(user) = *g->loss_sum;
    EXPECT_EQ(*g->target_count, 64u);
    std::fill_n(g->data, g->count, 0.0f);
    return 0;
  };
  World w(tiny_gpt2, plan_options(), &o);
  const auto before = values_of(w);
  TokenBatch batch(4, 16);
  const stw_step_result r = step(w.trainer.get(), batch.batch());
  EXPECT_NEAR(r.loss * 64, loss_sum, 1e-9 * loss_sum);
  EXPECT_EQ(r.grad_norm, 0);
  EXPECT_EQ(values_of(w), before);
}

// During the hook the arena holds neither the last step's state nor the next one's: no call may compute with
// it, save or change it.
TEST(GradientHook, RefusesComputations) {
  TemporaryDirectory folder;
  const auto dataset = open_text(folder, text_of(2000));
  struct Hook {
    World* world = nullptr;
    stw_dataset* dataset = nullptr;
    std::string path;
    std::vector<std::pair<const char*, stw_status>> answers;
    static int32_t call(void* user, const stw_gradients*) {
      auto& self = *static_cast<Hook*>(user);
      stw_trainer* const t = self.world->trainer.get();
      TokenBatch batch(4, 16, 5);
      const auto run = run_options(100);
      const auto done = run_options(0);
      double loss = 0;
      const int32_t prompt[] = {1, 2};
      int32_t out[2];
      uint64_t count = 0;
      auto generate = sized<stw_generate_options>();
      generate.prompt = prompt;
      generate.prompt_count = 2;
      generate.out = out;
      generate.out_capacity = 2;
      char profile[STW_PROFILE_BYTES];
      std::vector<float> logits(256);
      const uint64_t length = 2;
      const auto weights = view_of(t, 0);
      const std::string path = self.path + ".new";
      self.answers = {
          {"step", stw_trainer_step(t, batch.batch(), nullptr)},
          {"run", stw_trainer_run(t, self.dataset, &run, nullptr)},
          {"run of no step", stw_trainer_run(t, self.dataset, &done, nullptr)},
          {"evaluate", stw_trainer_evaluate(t, self.dataset, 1, &loss, nullptr)},
          {"generate", stw_trainer_generate(t, &generate, &count, nullptr)},
          {"logits", stw_trainer_logits(t, prompt, 2, logits.data(), logits.size(), nullptr)},
          {"classify",
           stw_trainer_classify(t, prompt, nullptr, &length, 1, logits.data(), logits.size(), nullptr)},
          {"log_probabilities",
           stw_trainer_log_probabilities(t, batch.batch(), logits.data(), logits.size(), nullptr)},
          {"write_reference", stw_trainer_write_reference(t, self.dataset, path.c_str(), nullptr)},
          {"replan", stw_trainer_replan(t, uint64_t{1} << 29, nullptr, nullptr)},
          {"calibrate", stw_trainer_calibrate(t, profile, sizeof profile, nullptr, nullptr)},
          {"timeline", stw_trainer_timeline(t, path.c_str(), nullptr)},
          {"save", stw_trainer_save(t, path.c_str(), nullptr)},
          {"restore", stw_trainer_restore(t, self.path.c_str(), nullptr)},
          {"import", stw_trainer_import_tensor(t, 0, weights.get(), nullptr)},
          {"export", stw_trainer_export_model(t, self.path.c_str(), nullptr)}};
      auto result = sized<stw_step_result>();
      EXPECT_EQ(stw_trainer_wait(t, &result, nullptr), progress_of(t).step == 0 ? STW_BAD_STATE : STW_OK);
      EXPECT_EQ(progress_of(t).phase, uint32_t{STW_PHASE_TRAIN});
      return 0;
    }
  } hook;
  auto o = sized<stw_trainer_options>();
  o.gradient_hook = Hook::call;
  o.gradient_user = &hook;
  World w(tiny_gpt2, plan_options(), &o), other(tiny_gpt2, plan_options());
  hook.world = &w;
  hook.dataset = dataset.get();
  hook.path = folder / "checkpoint";
  ASSERT_EQ(stw_trainer_save(other.trainer.get(), hook.path.c_str(), nullptr), STW_OK);
  TokenBatch batch(4, 16);
  for (int s = 0; s < 2; ++s) {
    const stw_step_result got = step(w.trainer.get(), batch.batch()),
                          expected = step(other.trainer.get(), batch.batch());
    EXPECT_EQ(got.loss, expected.loss);
    EXPECT_EQ(hook.answers.size(), 16u);
    for (const auto& [name, answer] : hook.answers) EXPECT_EQ(answer, STW_BAD_STATE) << name;
    hook.answers.clear();
  }
  EXPECT_EQ(state_of(w), state_of(other));
  EXPECT_EQ(folder.entries(), 2u);  // the text and the checkpoint
  double loss = 0;
  EXPECT_EQ(stw_trainer_evaluate(w.trainer.get(), dataset.get(), 1, &loss, nullptr), STW_OK);
}

// A hook reads gradients in the arena. A budget that would move them to host memory is refused, and nothing
// has changed.
TEST(GradientHook, ReplanningKeepsItsGradientsInPlace) {
  auto plan_of = plan_options();
  plan_of.host_bytes = uint64_t{1} << 30;
  plan_of.memory_bytes = uint64_t{1} << 28;
  auto o = sized<stw_trainer_options>();
  o.gradient_hook = [](void*, const stw_gradients*) { return 0; };
  World w(tiny_gpt2, plan_of, &o), other(tiny_gpt2, plan_of);
  const uint64_t least = info_of(w.plan.get()).minimum_bytes;
  TokenBatch batch(4, 16);
  step(w.trainer.get(), batch.batch());
  stw_error error = sized<stw_error>();
  stw_plan* plan = w.plan.get();
  EXPECT_EQ(stw_trainer_replan(w.trainer.get(), least, &plan, &error), STW_OVER_BUDGET);
  EXPECT_GT(error.bytes_needed, least);
  EXPECT_EQ(plan, nullptr);
  step(w.trainer.get(), batch.batch());
  for (int s = 0; s < 2; ++s) {
    // Without a hook it is accepted.
    must(stw_trainer_replan(other.trainer.get(), least, nullptr, &error), error);
    step(other.trainer.get(), batch.batch());
  }
  EXPECT_EQ(values_of(w), values_of(other));
}

}  // namespace
}  // namespace stw::api_test
