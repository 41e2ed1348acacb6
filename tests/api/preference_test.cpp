// Preferences through the C API: pairs as batches and as files, references, and refusals.
#include <cmath>

#include "tests/api/harness.h"

namespace stw::api_test {
namespace {

stw_plan_options with_preference(uint32_t preference) {
  auto o = plan_options();
  o.preference = preference;
  return o;
}

// Samples of two documents of 8 tokens each; the last six tokens have targets.
TokenBatch pairs(uint32_t seed = 1) {
  TokenBatch batch(4, 16, seed);
  for (size_t i = 0; i < batch.tokens.size(); ++i) {
    batch.positions.push_back(static_cast<int32_t>(i % 8));
    if (i % 8 < 1 || i % 8 == 7) batch.targets[i] = -100;
  }
  return batch;
}

std::vector<float> log_probabilities(stw_trainer* trainer, const stw_batch* batch) {
  stw_error error = sized<stw_error>();
  std::vector<float> out(64, 9);
  must(stw_trainer_log_probabilities(trainer, batch, out.data(), out.size(), &error), error);
  return out;
}

TEST(Preference, OfAModelAgainstItselfIsLogTwoAndFalls) {
  const World world(tiny_llama, with_preference(STW_PREFERENCE_DPO));
  TokenBatch batch = pairs();
  batch.reference = log_probabilities(world.trainer.get(), batch.batch());
  for (size_t i = 0; i < 64; ++i)
    EXPECT_TRUE(batch.targets[i] < 0 ? batch.reference[i] == 0 : batch.reference[i] < 0) << i;
  stw_step_result result = step(world.trainer.get(), batch.batch());
  EXPECT_NEAR(result.loss, std::log(2), 1e-6);
  EXPECT_EQ(result.accuracy, 0);
  EXPECT_EQ(result.targets, 4u);
  for (int i = 0; i < 20; ++i) result = step(world.trainer.get(), batch.batch());
  EXPECT_LT(result.loss, 0.5);
  EXPECT_EQ(result.accuracy, 1);
  EXPECT_EQ(progress_of(world.trainer.get()).accuracy, 1);
  // Its chosen documents have gained on the rejected ones.
  const std::vector<float> after = log_probabilities(world.trainer.get(), pairs().batch());
  double gained[2] = {};
  for (size_t i = 0; i < 64; ++i)
    gained[i / 8 % 2] += static_cast<double>(after[i]) - static_cast<double>(batch.reference[i]);
  EXPECT_GT(gained[0], gained[1] + 4);
}

// Two trainers with one batch each and a hook that sums: here simulated by one trainer that counts its batch
// twice.
TEST(Preference, AHookThatAddsUpCountsPairsToo) {
  auto options = sized<stw_trainer_options>();
  options.gradient_hook = [](void*, const stw_gradients* g) -> int32_t {
    for (uint64_t i = 0; i < g->count; ++i) g->data[i] *= 2;
    *g->loss_sum *= 2, *g->target_count *= 2, *g->correct_pairs *= 2;
    return 0;
  };
  const World twice(tiny_llama, with_preference(STW_PREFERENCE_SIMPO), &options),
      once(tiny_llama, with_preference(STW_PREFERENCE_SIMPO));
  TokenBatch batch = pairs(7);
  for (int i = 0; i < 2; ++i) {
    const stw_step_result a = step(twice.trainer.get(), batch.batch()),
                          b = step(once.trainer.get(), batch.batch());
    EXPECT_EQ(a.accuracy, b.accuracy);
    EXPECT_EQ(a.loss, b.loss);
    EXPECT_GT(a.accuracy, 0);
  }
}

TEST(Preference, LogProbabilitiesAreAtTheirTargetsOrLabels) {
  auto plan = plan_options();
  plan.inputs = STW_INPUT_POSITIONS;
  const World world(tiny_gpt2, plan);
  TokenBatch targets = pairs(), labels = pairs();
  labels.second = "labels";
  labels.targets = labels.tokens;
  for (size_t i = 0; i < 64; ++i) targets.targets[i] = i % 8 == 7 ? -100 : targets.tokens[i + 1];
  const std::vector<float> of_targets = log_probabilities(world.trainer.get(), targets.batch()),
                           of_labels = log_probabilities(world.trainer.get(), labels.batch());
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(of_labels[i], i % 8 == 0 ? 0 : of_targets[i - 1]) << i;
  // Their mean is the loss of a step.
  double sum = 0;
  for (const float x : of_targets) sum -= static_cast<double>(x);
  EXPECT_NEAR(step(world.trainer.get(), targets.batch()).loss, sum / 56, 1e-6);
  float few[63];
  stw_error error = sized<stw_error>();
  EXPECT_EQ(stw_trainer_log_probabilities(world.trainer.get(), targets.batch(), few, 63, &error),
            STW_BAD_ARGUMENT);
  EXPECT_STREQ(error.message, "log_probabilities: expected a capacity of 64, found 63");
  EXPECT_EQ(stw_trainer_log_probabilities(world.trainer.get(), targets.batch(), nullptr, 64, &error),
            STW_BAD_ARGUMENT);
  EXPECT_EQ(stw_trainer_log_probabilities(nullptr, targets.batch(), few, 63, &error), STW_BAD_ARGUMENT);
  targets.weights.assign(64, 1);
  float all[64];
  EXPECT_EQ(stw_trainer_log_probabilities(world.trainer.get(), targets.batch(), all, 64, &error),
            STW_UNSUPPORTED);
}

// The last of four samples fails, after three that succeeded.
TEST(Preference, LogProbabilitiesAreWrittenOnlyAsAWhole) {
  auto plan = plan_options();
  plan.micro_batch = 1;
  const World world(tiny_llama, plan);
  stw_trainer* const t = world.trainer.get();
  const auto view = view_of(t, 0);  // the embedding; its rows belong to tokens
  static_cast<float*>(view->dl_tensor.data)[255 * 32] = NAN;
  TokenBatch batch(4, 16);
  std::vector<float> out(64, 9);
  stw_error error = sized<stw_error>();
  batch.tokens[63] = 255;
  EXPECT_EQ(stw_trainer_log_probabilities(t, batch.batch(), out.data(), 64, &error), STW_NON_FINITE);
  EXPECT_EQ(out, std::vector<float>(64, 9));
  batch.tokens[63] = 1;
  EXPECT_EQ(stw_trainer_log_probabilities(t, batch.batch(), out.data(), 64, &error), STW_OK);
  for (const float x : out) EXPECT_LT(x, 0);
}

TEST(Preference, IncompleteBatchesAreRefused) {
  const World world(tiny_llama, with_preference(STW_PREFERENCE_IPO)),
      free_of_reference(tiny_llama, with_preference(STW_PREFERENCE_ORPO));
  stw_error error = sized<stw_error>();
  TokenBatch batch = pairs();
  EXPECT_EQ(stw_trainer_step(world.trainer.get(), batch.batch(), &error), STW_BAD_ARGUMENT);
  EXPECT_STREQ(error.message,
               "batch: reference: it is missing; the plan is for a preference (ipo) against one");
  batch.reference.assign(64, -1);
  batch.reference[5] = NAN;
  EXPECT_EQ(stw_trainer_step(world.trainer.get(), batch.batch(), &error), STW_BAD_ARGUMENT);
  EXPECT_STREQ(error.message, "batch: reference: sample 0, token 5: expected a finite number");
  batch.reference[5] = -1;
  EXPECT_EQ(stw_trainer_step(free_of_reference.trainer.get(), batch.batch(), &error), STW_UNSUPPORTED);
  EXPECT_GT(step(world.trainer.get(), batch.batch()).loss, 0);
  batch.positions.clear();
  EXPECT_EQ(stw_trainer_step(world.trainer.get(), batch.batch(), &error), STW_BAD_ARGUMENT);
  EXPECT_STREQ(error.message,
               "batch: positions: it is missing; the plan is for a preference (ipo), whose pairs are "
               "documents of a sample");
}

TEST(Preference, PlansNameItAndRefuseOthers) {
  const auto model = make_model(tiny_llama);
  const auto plan = make_plan(model.get(), with_preference(STW_PREFERENCE_SIMPO));
  const std::string json = stw_plan_json(plan.get());
  EXPECT_NE(json.find("\"preference\": \"simpo\""), std::string::npos);
  const auto loaded = make<stw_plan>([&](stw_plan** out, stw_error* e) {
    return stw_plan_load(out, model.get(), json.c_str(), json.size(), e);
  });
  EXPECT_EQ(json, stw_plan_json(loaded.get()));
  const auto refused = [&](const stw_plan_options& o) {
    stw_error error = sized<stw_error>();
    stw_plan* out = nullptr;
    EXPECT_EQ(stw_plan_create(&out, model.get(), &o, &error), STW_BAD_ARGUMENT);
    return std::string(error.message);
  };
  auto o = with_preference(STW_PREFERENCE_DPO);
  o.inputs = STW_INPUT_WEIGHTS;
  EXPECT_NE(refused(o).find("weights"), std::string::npos);
  EXPECT_NE(refused(with_preference(5)).find("unknown preference"), std::string::npos);
  // A plan of another preference, and a checkpoint of one.
  TemporaryDirectory folder;
  const std::string path = folder / "checkpoint";
  const World dpo(tiny_llama, with_preference(STW_PREFERENCE_DPO)),
      ipo(tiny_llama, with_preference(STW_PREFERENCE_IPO)), none(tiny_llama, plan_options());
  stw_error error = sized<stw_error>();
  must(stw_trainer_save(dpo.trainer.get(), path.c_str(), &error), error);
  must(stw_trainer_restore(dpo.trainer.get(), path.c_str(), &error), error);
  EXPECT_EQ(stw_trainer_restore(ipo.trainer.get(), path.c_str(), &error), STW_BAD_STATE);
  EXPECT_NE(std::string(error.message).find("preference: expected \"ipo\", found \"dpo\""), std::string::npos)
      << error.message;
  EXPECT_EQ(stw_trainer_restore(none.trainer.get(), path.c_str(), &error), STW_BAD_STATE);
}

TEST(Preference, UnsupportedSettingsAreRefused) {
  const auto device = open_device();
  const auto model = make_model(tiny_llama);
  const auto refused = [&](uint32_t preference, auto set) {
    const auto plan = make_plan(model.get(), with_preference(preference));
    auto o = sized<stw_trainer_options>();
    set(o);
    stw_error error = sized<stw_error>();
    stw_trainer* out = nullptr;
    const stw_status status = stw_trainer_create(&out, device.get(), model.get(), plan.get(), &o, &error);
    const Handle<stw_trainer> trainer(out);
    return status == STW_OK ? std::string() : std::string(error.message);
  };
  EXPECT_EQ(refused(STW_PREFERENCE_SIMPO,
                    [](auto& o) {
                      o.beta = 2, o.margin = 0, o.set_mask = STW_SET_MARGIN, o.answer_share = 1,
                      o.label_smoothing = 0.1f;
                    }),
            "");
  EXPECT_NE(refused(STW_PREFERENCE_NONE, [](auto& o) { o.beta = 0.1f; }), "");
  EXPECT_NE(refused(STW_PREFERENCE_NONE, [](auto& o) { o.answer_share = 0.1f; }), "");
  EXPECT_NE(refused(STW_PREFERENCE_DPO, [](auto& o) { o.set_mask = STW_SET_MARGIN; }), "");
  EXPECT_NE(refused(STW_PREFERENCE_DPO, [](auto& o) { o.z_loss = 1e-4f; }), "");
  EXPECT_NE(refused(STW_PREFERENCE_DPO, [](auto& o) { o.beta = NAN; }), "");
  EXPECT_NE(refused(STW_PREFERENCE_DPO, [](auto& o) { o.answer_share = -1; }), "");
  EXPECT_NE(refused(STW_PREFERENCE_IPO, [](auto& o) { o.label_smoothing = 0.1f; }), "");
}

// 80 documents of 8 bytes, alternately chosen and rejected; the last three bytes are the answer.
struct PairFiles {
  TemporaryDirectory folder;
  std::string tokens = folder / "pairs.txt", marks = folder / "marks", reference = folder / "reference";
  explicit PairFiles(int documents = 80) {
    std::string all;
    for (int i = 0; i < documents; ++i)
      all += {STW_MARK_BEGIN, 0, 0, 0, 0, STW_MARK_TARGET, STW_MARK_TARGET, STW_MARK_TARGET};
    put_file(tokens, text_of(all.size()).substr(0, all.size()));
    put_file(marks, all);
  }
  stw_dataset_options options() const {
    auto o = sized<stw_dataset_options>();
    o.path = tokens.c_str(), o.marks = marks.c_str();
    o.vocabulary = 256, o.sequence = 16, o.pairs = 1;
    return o;
  }
};

TEST(Preference, ARunOverPairsUsesTheReferenceFile) {
  const PairFiles files;
  const World world(tiny_llama, with_preference(STW_PREFERENCE_DPO));
  auto o = files.options();
  const auto bare = open_dataset(o);
  stw_error error = sized<stw_error>();
  const stw_run_options run_of = run_options(1);
  EXPECT_EQ(stw_trainer_run(world.trainer.get(), bare.get(), &run_of, &error), STW_BAD_STATE);
  EXPECT_NE(std::string(error.message).find("against a reference"), std::string::npos);
  must(stw_trainer_write_reference(world.trainer.get(), bare.get(), files.reference.c_str(), &error), error);
  o.reference = files.reference.c_str();
  const auto dataset = open_dataset(o);
  auto info = sized<stw_dataset_info>();
  EXPECT_EQ(stw_dataset_query(dataset.get(), &info), STW_OK);
  EXPECT_EQ(info.training_samples + info.evaluation_samples, 40u);  // one pair each
  EXPECT_EQ(progress_of(world.trainer.get()).evaluation_samples, 40u);
  EXPECT_EQ(progress_of(world.trainer.get()).evaluated_samples, 40u);
  double loss = 0;
  must(stw_trainer_evaluate(world.trainer.get(), dataset.get(), 100, &loss, &error), error);
  EXPECT_NEAR(loss, std::log(2), 1e-6);
  // Each sample is evaluated once, however many batches were asked for.
  EXPECT_EQ(progress_of(world.trainer.get()).evaluation_samples, info.evaluation_samples);
  EXPECT_EQ(progress_of(world.trainer.get()).evaluated_samples, info.evaluation_samples);
  run(world.trainer.get(), dataset.get(), 20);
  EXPECT_LT(progress_of(world.trainer.get()).loss, loss);
  must(stw_trainer_evaluate(world.trainer.get(), dataset.get(), 100, &loss, &error), error);
  const double accuracy = progress_of(world.trainer.get()).evaluation_accuracy;
  EXPECT_TRUE(accuracy > 0 && accuracy <= 1) << accuracy;
  // Another trainer may write the reference, also one with another preference.
  const World other(tiny_llama, with_preference(STW_PREFERENCE_SIMPO));
  const std::string again = files.folder / "again";
  must(stw_trainer_write_reference(other.trainer.get(), bare.get(), again.c_str(), &error), error);
  EXPECT_TRUE(file_bytes(again) == file_bytes(files.reference));
}

TEST(Preference, DatasetsThatAreNoPairsAreRefused) {
  const auto refused = [](const stw_dataset_options& o) {
    stw_error error = sized<stw_error>();
    stw_dataset* out = nullptr;
    EXPECT_NE(stw_dataset_open(&out, &o, &error), STW_OK);
    return std::string(error.message);
  };
  const PairFiles odd(7), files(20);
  EXPECT_NE(refused(odd.options()).find("expected pairs, found 7 documents"), std::string::npos);
  auto o = files.options();
  o.pairs = 2;
  EXPECT_NE(refused(o).find("pairs must be 0 or 1"), std::string::npos);
  o = files.options();
  o.marks = nullptr;
  EXPECT_NE(refused(o).find("marks"), std::string::npos);
  o = files.options();
  o.sequence = 14;
  EXPECT_NE(refused(o).find("has 16 tokens, expected at most 15"), std::string::npos);
  o = files.options();
  o.reference = "";
  EXPECT_NE(refused(o).find("reference is empty"), std::string::npos);
  o.reference = files.marks.c_str();
  EXPECT_NE(refused(o).find("as stw_trainer_write_reference writes them"), std::string::npos);
}

}  // namespace
}  // namespace stw::api_test
