// Measures a device, reads its profile and makes plans with it, all through the C API.
#include <set>

#include "tests/api/harness.h"

namespace stw::api_test {
namespace {

stw_plan_options micro_batches_of(uint64_t samples) {
  auto o = plan_options(5);
  o.micro_batch = static_cast<uint32_t>(samples);
  return o;
}

std::string calibrate(stw_trainer* trainer) {
  std::string text(STW_PROFILE_BYTES, '!');
  size_t size = 0;
  stw_error error = sized<stw_error>();
  must(stw_trainer_calibrate(trainer, text.data(), text.size(), &size, &error), error);
  EXPECT_EQ(text.find('\0'), size);
  text.resize(size);
  return text;
}

stw_status read(const std::string& profile, std::string* message = nullptr) {
  auto info = sized<stw_profile_info>();
  stw_error error = sized<stw_error>();
  const stw_status status = stw_profile_read(profile.data(), profile.size(), &info, &error);
  EXPECT_EQ(error.status, status);
  if (message) *message = error.message;
  return status;
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error(from + " is not in " + text);
  return text.replace(at, from.size(), to);
}

TEST(Calibrate, MeasuresAndPlansWithIt) {
  for (const std::string& config : {tiny_gpt2, tiny_llama}) {
    World w(config, micro_batches_of(2));
    const State before = state_of(w);
    const std::string profile = calibrate(w.trainer.get());
    EXPECT_EQ(state_of(w), before);

    auto info = sized<stw_profile_info>();
    stw_error error = sized<stw_error>();
    must(stw_profile_read(profile.data(), profile.size(), &info, &error), error);
    EXPECT_STREQ(info.name, "cpu");
    EXPECT_EQ(info.threads, 2u);
    EXPECT_EQ(info.precision, static_cast<uint32_t>(STW_PRECISION_FP32));
    EXPECT_GT(info.step_nanoseconds, 0u);
    auto embedded = sized<stw_profile_info>();
    ASSERT_EQ(stw_profile_at(0, &embedded), STW_OK);
    EXPECT_STREQ(embedded.name, "cpu");
    EXPECT_EQ(embedded.threads, 0u);
    EXPECT_EQ(embedded.precision, 0u);
    EXPECT_EQ(embedded.step_nanoseconds, 0u);
    EXPECT_EQ(info.gflops_fp32, embedded.gflops_fp32);
    EXPECT_EQ(info.gbytes_per_second, embedded.gbytes_per_second);
    std::set<std::string> names;
    auto op = sized<stw_profile_op_info>();
    while (stw_profile_op_at(profile.data(), profile.size(), names.size(), &op) == STW_OK) {
      EXPECT_TRUE(names.insert(op.name).second);
      EXPECT_GT(op.permille, 0u) << op.name;
      EXPECT_GT(op.launch_nanoseconds, 0u) << op.name;
      EXPECT_GT(op.nanoseconds, 0u) << op.name;
      EXPECT_EQ(op.struct_size, sizeof op);
    }
    for (const char* name : {"linear", "attention", "norm", "adamw", "cross_entropy"})
      EXPECT_TRUE(names.count(name)) << name;
    EXPECT_EQ(names.count("swiglu"), config == tiny_llama ? 1u : 0u);
    EXPECT_EQ(stw_profile_op_at(profile.data(), profile.size(), names.size(), &op), STW_BAD_ARGUMENT);

    auto o = micro_batches_of(2);
    o.profile = profile.data();
    o.profile_size = profile.size();
    const auto plan = make_plan(w.model.get(), o);
    const stw_plan_info now = info_of(plan.get()), old = info_of(w.plan.get());
    EXPECT_NE(std::string(now.fingerprint), old.fingerprint);
    EXPECT_EQ(now.arena, old.arena) << "the same choices at other prices";
    EXPECT_EQ(std::string(stw_plan_json(make_plan(w.model.get(), o).get())), stw_plan_json(plan.get()));
    // The plan's text is enough to load, verify and train from, and for its frontier.
    const std::string json = stw_plan_json(plan.get());
    const auto loaded = make<stw_plan>([&](stw_plan** out, stw_error* e) {
      return stw_plan_load(out, w.model.get(), json.data(), json.size(), e);
    });
    EXPECT_EQ(json, stw_plan_json(loaded.get()));
    EXPECT_EQ(info_of(loaded.get()).step_seconds, now.step_seconds);
    must(stw_plan_verify(loaded.get(), &error), error);
    std::vector<stw_frontier_point> points[2];
    for (int i = 0; i < 2; ++i) {
      points[i].resize(8);
      points[i][0].struct_size = sizeof(stw_frontier_point);
      size_t count = 0;
      must(stw_plan_frontier(i ? loaded.get() : plan.get(), points[i].data(), 8, &count, &error), error);
      points[i].resize(count);
      ASSERT_GT(count, 0u);
      EXPECT_EQ(points[i].back().step_seconds, points[0].back().step_seconds);
    }
    const auto trainer = make<stw_trainer>([&](stw_trainer** out, stw_error* e) {
      return stw_trainer_create(out, w.device.get(), w.model.get(), loaded.get(), nullptr, e);
    });
    TokenBatch batch(5, 16);
    EXPECT_EQ(step(trainer.get(), batch.batch()).loss, step(w.trainer.get(), batch.batch()).loss);
  }
}

TEST(Calibrate, APlanNeedsTheProfileOfItsDevice) {
  World w(tiny_llama, micro_batches_of(2));
  const std::string profile = calibrate(w.trainer.get());
  auto o = micro_batches_of(2);
  o.profile = profile.data();
  o.profile_size = profile.size();
  stw_error error = sized<stw_error>();
  stw_plan* plan = nullptr;
  o.device = "h100";
  EXPECT_EQ(stw_plan_create(&plan, w.model.get(), &o, &error), STW_BAD_ARGUMENT);
  EXPECT_EQ(plan, nullptr);
  for (const char* name : {"cpu", "h100"})
    EXPECT_NE(std::string(error.message).find(name), std::string::npos) << error.message;
  // Without a name the device is the profile's.
  const std::string other = with(profile, "\"cpu\"", "\"rtx4090\"");
  o.device = nullptr;
  o.memory_bytes = uint64_t{4} << 30;
  o.profile = other.data();
  o.profile_size = other.size();
  const auto there = make_plan(w.model.get(), o);
  EXPECT_NE(std::string(stw_plan_json(there.get())).find("\"name\": \"rtx4090\""), std::string::npos);
  EXPECT_EQ(info_of(there.get()).precision, static_cast<uint32_t>(STW_PRECISION_BF16));
  uint64_t sequence = 0;
  EXPECT_EQ(stw_plan_longest_sequence(w.model.get(), &o, &sequence, &error), STW_OK) << error.message;

  for (const auto& [from, to] : {std::pair{"\"version\": 1", "\"version\": 2"},
                                 {"\"linear\"", "\"linea\""},
                                 {"\"threads\": 2", "\"threads\": 0"},
                                 {"\"cpu\"", "\"abacus\""},
                                 {"{", "["}}) {
    const std::string bad = with(profile, from, to);
    std::string message;
    EXPECT_EQ(read(bad, &message), STW_CORRUPT) << to;
    EXPECT_TRUE(message.starts_with("profile: ")) << message;
    auto op = sized<stw_profile_op_info>();
    EXPECT_EQ(stw_profile_op_at(bad.data(), bad.size(), 0, &op), STW_CORRUPT);
    auto p = micro_batches_of(2);
    p.profile = bad.data();
    p.profile_size = bad.size();
    EXPECT_EQ(stw_plan_create(&plan, w.model.get(), &p, &error), STW_CORRUPT);
    EXPECT_EQ(plan, nullptr);
    EXPECT_STREQ(error.message, message.c_str());
  }
  for (size_t size = 0; size < profile.rfind('}'); size += 7)
    EXPECT_EQ(read(profile.substr(0, size)), STW_CORRUPT) << size;
}

// A calibration reads the weights again at its end. If it cannot, the trainer refuses all work until a
// calibration or a restore finds the whole file.
TEST(Calibrate, WithoutItsWeightsATrainerDoesNothing) {
  TemporaryDirectory folder;
  const std::string exported = folder / "model", weights = exported + "/model.safetensors";
  const auto dataset = open_text(folder, text_of(2000));
  stw_error error = sized<stw_error>();
  {
    const World w(tiny_gpt2, micro_batches_of(2));
    must(stw_trainer_export_model(w.trainer.get(), exported.c_str(), &error), error);
  }
  World w(exported, micro_batches_of(2));
  stw_trainer* const t = w.trainer.get();
  double loss = 0;
  must(stw_trainer_evaluate(t, dataset.get(), 2, &loss, &error), error);
  const State before = state_of(w);
  const stw_progress counts = progress_of(t);
  EXPECT_GT(counts.evaluation_samples, 0u);
  const std::string whole = file_bytes(weights);
  std::filesystem::resize_file(weights, whole.size() / 2);
  std::string text(STW_PROFILE_BYTES, 0);
  EXPECT_NE(stw_trainer_calibrate(t, text.data(), text.size(), nullptr, &error), STW_OK);
  TokenBatch batch(4, 16);
  const stw_batch* const four = batch.batch();
  std::vector<float> out(256, 9);
  const auto nothing_to_do = run_options(0);
  const auto view = view_of(t, 0);
  const auto generate = sized<stw_generate_options>();
  uint64_t count = 0;
  EXPECT_EQ(stw_trainer_step(t, four, &error), STW_BAD_STATE);
  EXPECT_EQ(stw_trainer_run(t, dataset.get(), &nothing_to_do, &error), STW_BAD_STATE);
  EXPECT_EQ(stw_trainer_evaluate(t, dataset.get(), 2, &loss, &error), STW_BAD_STATE);
  EXPECT_EQ(stw_trainer_generate(t, &generate, &count, &error), STW_BAD_STATE);
  EXPECT_EQ(stw_trainer_logits(t, batch.tokens.data(), 16, out.data(), 256, &error), STW_BAD_STATE);
  const uint64_t length = 16;
  EXPECT_EQ(stw_trainer_classify(t, batch.tokens.data(), nullptr, &length, 1, out.data(), 256, &error),
            STW_BAD_STATE);
  EXPECT_EQ(stw_trainer_log_probabilities(t, four, out.data(), 256, &error), STW_BAD_STATE);
  EXPECT_EQ(stw_trainer_write_reference(t, dataset.get(), "never/written", &error), STW_BAD_STATE);
  EXPECT_EQ(stw_trainer_replan(t, uint64_t{1} << 29, nullptr, &error), STW_BAD_STATE);
  EXPECT_EQ(stw_trainer_save(t, "never/written", &error), STW_BAD_STATE);
  EXPECT_EQ(stw_trainer_export_model(t, "never/written", &error), STW_BAD_STATE);
  EXPECT_EQ(stw_trainer_import_tensor(t, 0, view.get(), &error), STW_BAD_STATE);
  EXPECT_NE(std::string(error.message).find("restore a checkpoint to continue"), std::string::npos)
      << error.message;
  EXPECT_EQ(out, std::vector<float>(256, 9));
  EXPECT_EQ(progress_of(t).evaluation_samples, counts.evaluation_samples);
  EXPECT_EQ(progress_of(t).evaluated_samples, counts.evaluated_samples);
  put_file(weights, whole);
  EXPECT_EQ(stw_trainer_calibrate(t, text.data(), text.size(), nullptr, &error), STW_OK) << error.message;
  EXPECT_EQ(state_of(w), before);
  EXPECT_EQ(stw_trainer_import_tensor(t, 0, view.get(), &error), STW_OK) << error.message;
  EXPECT_EQ(stw_trainer_run(t, dataset.get(), &nothing_to_do, &error), STW_OK) << error.message;
}

TEST(Calibrate, RefusesWithoutATrace) {
  World w(tiny_gpt2, micro_batches_of(2));
  const State before = state_of(w);
  std::string text(STW_PROFILE_BYTES, '!');
  size_t size = 77;
  stw_error error = sized<stw_error>();
  stw_trainer* const t = w.trainer.get();
  EXPECT_EQ(stw_trainer_calibrate(nullptr, text.data(), text.size(), &size, &error), STW_BAD_ARGUMENT);
  EXPECT_EQ(stw_trainer_calibrate(t, nullptr, text.size(), &size, &error), STW_BAD_ARGUMENT);
  EXPECT_EQ(stw_trainer_calibrate(t, text.data(), STW_PROFILE_BYTES - 1, &size, &error), STW_BAD_ARGUMENT);
  EXPECT_NE(std::string(error.message).find("16384"), std::string::npos) << error.message;
  stw_trainer_cancel(t);
  EXPECT_EQ(stw_trainer_calibrate(t, text.data(), text.size(), &size, &error), STW_CANCELLED);
  EXPECT_EQ(size, 77u);
  EXPECT_EQ(text.find_first_not_of('!'), std::string::npos);
  EXPECT_EQ(state_of(w), before);
  EXPECT_EQ(progress_of(t).phase, static_cast<uint32_t>(STW_PHASE_IDLE));
  EXPECT_EQ(stw_trainer_calibrate(t, text.data(), text.size(), nullptr, &error), STW_OK) << error.message;
  TokenBatch batch(5, 16);
  step(t, batch.batch());
  EXPECT_EQ(stw_trainer_calibrate(t, text.data(), text.size(), &size, &error), STW_BAD_STATE);
  EXPECT_EQ(std::string(error.message).find("calibrate: "), 0u) << error.message;
  EXPECT_EQ(stw_trainer_timeline(t, "never/written", &error), STW_BAD_STATE);
  EXPECT_EQ(std::string(error.message).find("timeline: "), 0u) << error.message;
  EXPECT_EQ(size, 77u);
  EXPECT_EQ(stw_profile_read(nullptr, 0, nullptr, &error), STW_BAD_ARGUMENT);
  EXPECT_EQ(stw_profile_op_at(nullptr, 0, 0, nullptr), STW_BAD_ARGUMENT);
}

}  // namespace
}  // namespace stw::api_test
