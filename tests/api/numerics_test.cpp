// Optimizers, precisions, parameter groups, loss scaling and skipped steps through the C API: options take
// effect, and contradictory ones are refused with the reason.
#include "tests/api/harness.h"

namespace stw::api_test {
namespace {

std::string refusal(stw_status status, const stw_error& error, stw_status expected) {
  EXPECT_EQ(status, expected) << error.message;
  return error.message;
}

std::string plan_refusal(const std::string& config, const stw_plan_options& o,
                         stw_status expected = STW_BAD_ARGUMENT) {
  const auto model = make_model(config);
  stw_error error = sized<stw_error>();
  stw_plan* out = nullptr;
  const stw_status status = stw_plan_create(&out, model.get(), &o, &error);
  EXPECT_EQ(out, nullptr);
  stw_plan_destroy(out);
  return refusal(status, error, expected);
}

std::string trainer_refusal(const stw_plan_options& plan_of, const stw_trainer_options& o) {
  const auto device = open_device();
  const auto model = make_model(tiny_gpt2);
  const auto plan = make_plan(model.get(), plan_of);
  stw_error error = sized<stw_error>();
  stw_trainer* out = nullptr;
  const stw_status status = stw_trainer_create(&out, device.get(), model.get(), plan.get(), &o, &error);
  EXPECT_EQ(out, nullptr);
  return refusal(status, error, STW_BAD_ARGUMENT);
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

struct Rule {
  uint32_t optimizer, state_bits;
  double rate;
};
constexpr Rule rules[] = {{STW_OPTIMIZER_ADAMW, 32, 1e-2},    {STW_OPTIMIZER_ADAMW, 8, 1e-2},
                          {STW_OPTIMIZER_SGD, 32, 0.5},       {STW_OPTIMIZER_LION, 32, 2e-3},
                          {STW_OPTIMIZER_LION, 8, 2e-3},      {STW_OPTIMIZER_MUON, 32, 1e-2},
                          {STW_OPTIMIZER_ADAFACTOR, 32, 3e-2}};

TEST(Optimizer, EachLearnsInEachPrecision) {
  for (const Rule& rule : rules)
    for (const uint32_t precision : {STW_PRECISION_FP32, STW_PRECISION_BF16, STW_PRECISION_FP16}) {
      auto o = plan_options();
      o.optimizer = rule.optimizer;
      o.state_bits = rule.state_bits;
      o.precision = precision;
      World w(tiny_llama, o);
      TokenBatch batch(4, 16);
      double first = 0, last = 0;
      for (int i = 0; i < 40; ++i)
        (i == 0 ? first : last) = step(w.trainer.get(), batch.batch(rule.rate)).loss;
      EXPECT_LT(last, 0.85 * first) << rule.optimizer << ", " << rule.state_bits << " bits, precision "
                                    << precision;
    }
}

// A float option stands for the decimal number that the host wrote, as a default does. In torch.optim.AdamW,
// 1 - 0.999 is 1e-3, while 1 - 0.999f is off by 1.3e-5.
TEST(Optimizer, ADefaultThatIsGivenChangesNoBit) {
  TemporaryDirectory folder;
  for (const Rule& rule : rules) {
    auto o = plan_options();
    o.optimizer = rule.optimizer;
    o.state_bits = rule.state_bits;
    auto given = sized<stw_trainer_options>();
    given.set_mask = STW_SET_WEIGHT_DECAY | STW_SET_CLIP_NORM;
    given.clip_norm = 1;
    const bool has_betas = rule.optimizer != STW_OPTIMIZER_SGD && rule.optimizer != STW_OPTIMIZER_ADAFACTOR;
    if (has_betas) {
      given.set_mask |= STW_SET_BETA1 | STW_SET_BETA2;
      given.beta1 = 0.9f, given.beta2 = rule.optimizer == STW_OPTIMIZER_LION ? 0.99f : 0.95f,
      given.weight_decay = 0.1f;
    }
    if (rule.optimizer == STW_OPTIMIZER_ADAMW || rule.optimizer == STW_OPTIMIZER_MUON) given.epsilon = 1e-8f;
    if (rule.optimizer == STW_OPTIMIZER_SGD) given.set_mask |= STW_SET_MOMENTUM, given.momentum = 0.9f;
    if (rule.optimizer == STW_OPTIMIZER_MUON) given.set_mask |= STW_SET_MOMENTUM, given.momentum = 0.95f;
    std::string bytes[2];
    for (const stw_trainer_options* options : {static_cast<const stw_trainer_options*>(nullptr),
                                               static_cast<const stw_trainer_options*>(&given)}) {
      World w(tiny_gpt2, o, options);
      for (uint32_t i = 0; i < 3; ++i) step(w.trainer.get(), TokenBatch(4, 16, i).batch(rule.rate));
      const std::string path = folder / "checkpoint.stw";
      stw_error error = sized<stw_error>();
      must(stw_trainer_save(w.trainer.get(), path.c_str(), &error), error);
      bytes[options != nullptr] = file_bytes(path);
    }
    EXPECT_TRUE(bytes[0] == bytes[1]) << rule.optimizer << ", " << rule.state_bits << " bits";
  }
}

TEST(Optimizer, CheckpointsResumeAndAreRefusedByOthers) {
  TemporaryDirectory folder;
  const std::string path = folder / "checkpoint.stw", other_path = folder / "other.stw";
  for (const Rule& rule : rules) {
    auto o = plan_options();
    o.optimizer = rule.optimizer;
    o.state_bits = rule.state_bits;
    o.precision = STW_PRECISION_BF16;
    World straight(tiny_gpt2, o);
    o.micro_batch = 1;
    o.recompute = STW_RECOMPUTE_FULL;
    World resumed(tiny_gpt2, o);
    stw_error error = sized<stw_error>();
    for (uint32_t i = 0; i < 6; ++i) {
      step(straight.trainer.get(), TokenBatch(4, 16, i).batch(rule.rate));
      if (i == 2) must(stw_trainer_save(straight.trainer.get(), path.c_str(), &error), error);
    }
    must(stw_trainer_restore(resumed.trainer.get(), path.c_str(), &error), error);
    for (uint32_t i = 3; i < 6; ++i) step(resumed.trainer.get(), TokenBatch(4, 16, i).batch(rule.rate));
    must(stw_trainer_save(straight.trainer.get(), path.c_str(), &error), error);
    must(stw_trainer_save(resumed.trainer.get(), other_path.c_str(), &error), error);
    EXPECT_TRUE(file_bytes(path) == file_bytes(other_path)) << rule.optimizer << ", " << rule.state_bits;
    o.optimizer = rule.optimizer == STW_OPTIMIZER_SGD ? STW_OPTIMIZER_LION : STW_OPTIMIZER_SGD;
    o.state_bits = 32;
    World other(tiny_gpt2, o);
    EXPECT_TRUE(
        has(refusal(stw_trainer_restore(other.trainer.get(), path.c_str(), &error), error, STW_BAD_STATE),
            "optimizer"));
  }
}

TEST(Optimizer, OnlySomeHave8BitStates) {
  for (const uint32_t optimizer : {STW_OPTIMIZER_SGD, STW_OPTIMIZER_MUON, STW_OPTIMIZER_ADAFACTOR}) {
    auto o = plan_options();
    o.optimizer = optimizer;
    o.state_bits = 8;
    EXPECT_TRUE(has(plan_refusal(tiny_gpt2, o), "no 8-bit states"));
    o.state_bits = STW_STATES_AUTO;
    const auto model = make_model(tiny_gpt2);
    EXPECT_EQ(info_of(make_plan(model.get(), o).get()).state_bits, 32u);
  }
  auto o = plan_options();
  o.optimizer = STW_OPTIMIZER_ADAFACTOR + 1;
  plan_refusal(tiny_gpt2, o, STW_UNSUPPORTED);
}

// ---- gradients of 16 bits, updates inside the backward pass ----------------------------------------------

stw_trainer_options without_clipping() {
  auto o = sized<stw_trainer_options>();
  o.set_mask = STW_SET_CLIP_NORM;
  return o;
}

TEST(GradientMemory, IsHalvedOrGone) {
  const auto model = make_model(tiny_llama);
  auto o = plan_options();
  o.micro_batch = 4;
  const auto whole = make_plan(model.get(), o);
  o.gradients = STW_GRADIENTS_BF16;
  const auto halves = make_plan(model.get(), o);
  o.gradients = STW_GRADIENTS_FP32;
  o.fused_update = 1;
  const auto fused = make_plan(model.get(), o);
  EXPECT_LT(info_of(halves.get()).gradients, info_of(whole.get()).gradients);
  EXPECT_LT(info_of(fused.get()).gradients, info_of(halves.get()).gradients);
  EXPECT_TRUE(has(stw_plan_json(halves.get()), "\"gradients\": \"bf16\""));
  EXPECT_TRUE(has(stw_plan_json(fused.get()), "\"fused_update\": true"));
  for (const stw_plan* plan : {halves.get(), fused.get()}) {
    EXPECT_EQ(stw_plan_verify(plan, nullptr), STW_OK);
    const std::string json = stw_plan_json(plan);
    const auto loaded = make<stw_plan>([&](stw_plan** out, stw_error* e) {
      return stw_plan_load(out, model.get(), json.data(), json.size(), e);
    });
    EXPECT_EQ(json, stw_plan_json(loaded.get()));
  }
}

TEST(GradientMemory, BothLearnAndAFusedUpdateChangesNoBit) {
  TemporaryDirectory folder;
  for (const uint32_t precision : {STW_PRECISION_FP32, STW_PRECISION_BF16}) {
    const auto trained = [&](uint32_t gradients, uint32_t fused, uint32_t micro_batch) {
      auto o = plan_options();
      o.precision = precision;
      o.gradients = gradients;
      o.fused_update = fused;
      o.micro_batch = micro_batch;
      const auto options = without_clipping();
      World w(tiny_llama, o, &options);
      TokenBatch batch(4, 16);
      double first = 0, last = 0;
      for (int i = 0; i < 40; ++i) (i == 0 ? first : last) = step(w.trainer.get(), batch.batch(1e-2)).loss;
      EXPECT_LT(last, 0.85 * first) << gradients << fused << precision;
      stw_error error = sized<stw_error>();
      must(stw_trainer_export_model(w.trainer.get(), folder.path().c_str(), &error), error);
      return file_bytes(folder / "model.safetensors");
    };
    EXPECT_TRUE(trained(STW_GRADIENTS_FP32, 1, 0) == trained(STW_GRADIENTS_FP32, 0, 2));
    EXPECT_TRUE(trained(STW_GRADIENTS_BF16, 0, 1) == trained(STW_GRADIENTS_BF16, 0, 3));
  }
}

TEST(GradientMemory, ContradictoryOptionsAreRefused) {
  const auto refused = [](const std::function<void(stw_plan_options&)>& change) {
    auto o = plan_options();
    o.fused_update = 1;
    change(o);
    return plan_refusal(tiny_gpt2, o);
  };
  EXPECT_TRUE(has(refused([](auto& o) { o.precision = STW_PRECISION_FP16; }), "fp16"));
  EXPECT_TRUE(has(refused([](auto& o) { o.gradients = STW_GRADIENTS_BF16; }), "use fp32 gradients"));
  EXPECT_TRUE(has(refused([](auto& o) { o.micro_batch = 1; }), "one micro-step"));
  EXPECT_TRUE(has(refused([](auto& o) { o.host_bytes = 1 << 20; }), "host memory"));
  EXPECT_TRUE(has(refused([](auto& o) { o.fused_update = 2; }), "fused_update must be 0 or 1"));
  EXPECT_TRUE(has(refused([](auto& o) { o.gradient_hook = 2; }), "gradient_hook must be 0 or 1"));
  EXPECT_TRUE(has(refused([](auto& o) { o.gradient_hook = 1; }), "a gradient hook needs all gradients"));
  EXPECT_TRUE(
      has(refused([](auto& o) { o.fused_update = 0, o.gradient_hook = 1, o.gradients = STW_GRADIENTS_BF16; }),
          "a gradient hook needs all gradients"));
  EXPECT_TRUE(has(refused([](auto& o) { o.gradients = 2; }), "unknown gradients"));
  auto plan_of = plan_options();
  plan_of.fused_update = 1;
  auto options = without_clipping();
  options.clip_norm = 1;
  EXPECT_TRUE(has(trainer_refusal(plan_of, options), "clipping norm to 0"));
  options = without_clipping();
  options.outlier_limit = 6;
  EXPECT_TRUE(has(trainer_refusal(plan_of, options), "outliers"));
  World(tiny_gpt2, plan_of);  // by default there is no clipping
  for (const bool fused : {true, false}) {
    plan_of = plan_options();
    plan_of.fused_update = fused;
    plan_of.gradients = fused ? STW_GRADIENTS_FP32 : STW_GRADIENTS_BF16;
    options = without_clipping();
    options.gradient_hook = [](void*, const stw_gradients*) -> int32_t { return 0; };
    const auto device = open_device();
    const auto model = make_model(tiny_gpt2);
    const auto plan = make_plan(model.get(), plan_of);
    stw_error error = sized<stw_error>();
    stw_trainer* out = nullptr;
    const stw_status status =
        stw_trainer_create(&out, device.get(), model.get(), plan.get(), &options, &error);
    EXPECT_EQ(out, nullptr);
    EXPECT_TRUE(has(refusal(status, error, STW_BAD_STATE), "gradient hook"));
  }
}

stw_parameter_group group_of(const char* pattern, uint32_t mask) {
  auto g = sized<stw_parameter_group>();
  g.pattern = pattern;
  g.set_mask = mask;
  g.frozen = mask & STW_SET_GROUP_FROZEN ? 1 : 0;
  return g;
}

TEST(Groups, FreezeAndAreKeptInThePlan) {
  auto o = plan_options();
  const std::vector<stw_parameter_group> groups = {group_of("embeddings", STW_SET_GROUP_FROZEN),
                                                   group_of("blocks.0", STW_SET_GROUP_FROZEN)};
  o.groups = groups.data();
  o.group_count = groups.size();
  World w(tiny_gpt2, o);
  const auto before = values_of(w);
  for (uint32_t i = 0; i < 3; ++i) step(w.trainer.get(), TokenBatch(4, 16, i).batch());
  const auto after = values_of(w);
  size_t changed = 0;
  for (size_t t = 0; t < before.size(); ++t) {
    auto info = sized<stw_tensor_info>();
    ASSERT_EQ(stw_model_tensor_at(w.model.get(), t, &info), STW_OK);
    const std::string name = info.name;
    const bool is_frozen = has(name, ".wte.") || has(name, ".wpe.") || has(name, ".h.0.");
    EXPECT_EQ(before[t] == after[t], is_frozen) << name;
    changed += before[t] != after[t];
  }
  EXPECT_EQ(changed, 12u + 2);
  // The plan's text includes the groups: it can be loaded without them.
  const std::string json = stw_plan_json(w.plan.get());
  const auto loaded = make<stw_plan>([&](stw_plan** out, stw_error* e) {
    return stw_plan_load(out, w.model.get(), json.data(), json.size(), e);
  });
  EXPECT_EQ(json, stw_plan_json(loaded.get()));
  EXPECT_TRUE(has(json, "\"embeddings\""));
  EXPECT_TRUE(has(stw_plan_report(loaded.get()), "freezing the others saves"));
}

TEST(Groups, InvalidGroupsAreRefused) {
  const auto refused = [](stw_parameter_group g) {
    auto o = plan_options();
    o.groups = &g;
    o.group_count = 1;
    return plan_refusal(tiny_gpt2, o);
  };
  EXPECT_TRUE(has(refused(group_of("no_such_part", STW_SET_GROUP_FROZEN)), "\"no_such_part\""));
  EXPECT_TRUE(has(refused(group_of("*", STW_SET_GROUP_FROZEN)), "nothing is left to train"));
  EXPECT_TRUE(has(refused(group_of(nullptr, STW_SET_GROUP_FROZEN)), "NULL"));
  EXPECT_TRUE(has(refused(group_of("blocks", 64)), "set_mask"));
  auto g = group_of("blocks", STW_SET_GROUP_RATE);
  g.learning_rate = -1;
  EXPECT_TRUE(has(refused(g), "learning rate"));
  g = group_of("blocks", STW_SET_GROUP_FROZEN);
  g.frozen = 2;
  EXPECT_TRUE(has(refused(g), "0 or 1"));
  g = group_of("blocks", STW_SET_GROUP_STATES);
  g.state_bits = 4;
  EXPECT_TRUE(has(refused(g), "8 or 32 bits"));
  auto o = plan_options();
  o.group_count = 1;
  EXPECT_TRUE(has(plan_refusal(tiny_gpt2, o), "groups is NULL"));
  g.struct_size = 20;
  o.groups = &g;
  plan_refusal(tiny_gpt2, o, STW_BAD_STRUCT_SIZE);
}

TEST(TrainerOptions, ContradictionsAreRefused) {
  const auto o = plan_options();
  auto fp16 = o;
  fp16.precision = STW_PRECISION_FP16;
  auto sgd = o;
  sgd.optimizer = STW_OPTIMIZER_SGD;
  auto t = sized<stw_trainer_options>();
  t.nesterov = 1;
  EXPECT_TRUE(has(trainer_refusal(o, t), "sgd"));
  t.set_mask = STW_SET_MOMENTUM;
  EXPECT_TRUE(has(trainer_refusal(sgd, t), "momentum"));
  t.momentum = 1;
  EXPECT_TRUE(has(trainer_refusal(sgd, t), "[0, 1)"));
  t = sized<stw_trainer_options>();
  t.nesterov = 2;
  EXPECT_TRUE(has(trainer_refusal(sgd, t), "0 or 1"));
  t = sized<stw_trainer_options>();
  t.epsilon = 1e-6f;
  for (const uint32_t optimizer : {STW_OPTIMIZER_SGD, STW_OPTIMIZER_LION, STW_OPTIMIZER_ADAFACTOR}) {
    auto without = o;
    without.optimizer = optimizer;
    EXPECT_TRUE(has(trainer_refusal(without, t), "epsilon")) << optimizer;
  }
  t = sized<stw_trainer_options>();
  t.non_finite = STW_NON_FINITE_STOP;
  EXPECT_TRUE(has(trainer_refusal(fp16, t), "fp16"));
  t.non_finite = 2;
  EXPECT_TRUE(has(trainer_refusal(o, t), "policy"));
  t = sized<stw_trainer_options>();
  for (const double scale : {3.0, 0.5, -2.0, 1e300, double(INFINITY), double(NAN)}) {
    t.loss_scale = scale;
    EXPECT_TRUE(has(trainer_refusal(fp16, t), "power of two")) << scale;
  }
  t = sized<stw_trainer_options>();
  for (const float share : {1.0f, -0.1f, NAN}) {
    t.label_smoothing = share;
    EXPECT_TRUE(has(trainer_refusal(o, t), "label_smoothing")) << share;
  }
  t = sized<stw_trainer_options>();
  t.z_loss = INFINITY;
  EXPECT_TRUE(has(trainer_refusal(o, t), "z_loss"));
}

TEST(RunOptions, ASchedulesLongerThanTheRunIsRefused) {
  TemporaryDirectory folder;
  World w(tiny_gpt2, plan_options());
  const auto dataset = open_text(folder, text_of(2000));
  const auto refused = [&](stw_run_options o) {
    stw_error error = sized<stw_error>();
    return refusal(stw_trainer_run(w.trainer.get(), dataset.get(), &o, &error), error, STW_BAD_ARGUMENT);
  };
  auto o = run_options(10);
  o.total = 10;
  o.warmup = 11;
  EXPECT_TRUE(has(refused(o), "warm-up"));
  o.warmup = 5;
  o.schedule = STW_SCHEDULE_WSD;
  o.decay_steps = 6;
  EXPECT_TRUE(has(refused(o), "decay"));
  o.schedule = STW_SCHEDULE_LINEAR;
  EXPECT_TRUE(has(refused(o), "decay_steps"));
  o.schedule = STW_SCHEDULE_INVERSE_ROOT + 1;
  EXPECT_TRUE(has(refused(o), "schedule"));
  o.schedule = STW_SCHEDULE_WSD;
  o.decay_steps = 5;
  o.base_batch = 1;  // the batch is 4: twice the rate
  o.warmup = 0;
  o.until = 1;
  stw_error error = sized<stw_error>();
  must(stw_trainer_run(w.trainer.get(), dataset.get(), &o, &error), error);
  EXPECT_EQ(progress_of(w.trainer.get()).learning_rate, 2e-2);
}

// A confident model has a larger smoothed loss. An evaluation reports the plain loss.
TEST(LossTerms, ApplyOnlyToTraining) {
  TemporaryDirectory folder;
  const auto dataset = open_text(folder, text_of(2000));
  double plain[2] = {}, trained[2] = {};
  for (const int smooth : {0, 1}) {
    auto t = sized<stw_trainer_options>();
    if (smooth) t.label_smoothing = 0.2f, t.z_loss = 1e-2f;
    World w(tiny_gpt2, plan_options(), &t);
    trained[smooth] = step(w.trainer.get(), TokenBatch(4, 16).batch(0)).loss;
    must(stw_trainer_evaluate(w.trainer.get(), dataset.get(), 1, &plain[smooth], nullptr),
         sized<stw_error>());
  }
  EXPECT_EQ(plain[0], plain[1]);
  // Random logits: the log-partition is log 256.
  EXPECT_NEAR(trained[1] - trained[0], 1e-2 * std::log(256) * std::log(256), 0.05);
}

TEST(Replan, ContinuesWithTheSameBits) {
  TemporaryDirectory folder;
  const std::string a = folder / "a.stw", b = folder / "b.stw";
  auto o = plan_options(8, 16);
  o.precision = STW_PRECISION_BF16;
  o.state_bits = STW_STATES_32;
  World straight(tiny_llama, o), w(tiny_llama, o);
  const uint64_t least = info_of(w.plan.get()).minimum_bytes;
  stw_error error = sized<stw_error>();
  for (uint32_t i = 0; i < 6; ++i) {
    for (World* each : {&straight, &w}) step(each->trainer.get(), TokenBatch(8, 16, i).batch());
    const uint64_t bytes = i % 2 ? uint64_t{1} << 30 : least + least / 20;
    stw_plan* plan = nullptr;
    const stw_status status = stw_trainer_replan(w.trainer.get(), bytes, i == 3 ? nullptr : &plan, &error);
    must(status, error);
    if (plan) {
      EXPECT_LE(info_of(plan).peak, bytes);
      EXPECT_EQ(info_of(plan).state_bits, 32u);
    }
    stw_plan_destroy(plan);
  }
  stw_plan* plan = nullptr;
  EXPECT_EQ(stw_trainer_replan(w.trainer.get(), least / 2, &plan, &error), STW_OVER_BUDGET);
  EXPECT_EQ(plan, nullptr);
  EXPECT_GT(error.bytes_needed, least / 2);
  // 0 has the meaning that it has in stw_plan_create: all of the device's memory, which is more than any plan
  // needs.
  must(stw_trainer_replan(w.trainer.get(), least, nullptr, &error), error);
  must(stw_trainer_replan(w.trainer.get(), 0, &plan, &error), error);
  auto roomy = o;
  roomy.memory_bytes = 0;
  const auto all = make_plan(w.model.get(), roomy);
  EXPECT_EQ(info_of(plan).step_seconds, info_of(all.get()).step_seconds);
  EXPECT_EQ(info_of(plan).peak, info_of(all.get()).peak);
  EXPECT_GT(info_of(plan).budget, uint64_t{1} << 28);
  stw_plan_destroy(plan);
  EXPECT_EQ(stw_trainer_replan(nullptr, 1, nullptr, &error), STW_BAD_ARGUMENT);
  for (World* each : {&straight, &w}) step(each->trainer.get(), TokenBatch(8, 16, 9).batch());
  must(stw_trainer_save(straight.trainer.get(), a.c_str(), &error), error);
  must(stw_trainer_save(w.trainer.get(), b.c_str(), &error), error);
  EXPECT_TRUE(file_bytes(a) == file_bytes(b));
}

}  // namespace
}  // namespace stw::api_test
