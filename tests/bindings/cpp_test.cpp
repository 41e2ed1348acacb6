// Tests bindings/cpp with the library.
#include "bindings/cpp/stowage.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <thread>

namespace {

using stowage::made;

constexpr char gpt2[] =
    R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 64, "n_positions": 16, )"
    R"("n_embd": 32, "n_layer": 2,
  "n_head": 2, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0})";
constexpr size_t length = 16;

// Status of the error that a function throws.
template <class Do>
stw_status status_of(Do&& act) {
  try {
    act();
  } catch (const stowage::Error& error) { return error.status(); }
  return STW_OK;
}

std::vector<int32_t> tokens() {
  std::vector<int32_t> numbers(4 * length);
  uint32_t seed = 1;
  for (int32_t& one : numbers) one = static_cast<int32_t>((seed = seed * 1664525 + 1013904223) >> 26);
  return numbers;
}

stw_model_options of_config() {
  auto options = made<stw_model_options>();
  options.config_json = gpt2;
  options.config_json_size = sizeof gpt2 - 1;
  return options;
}

// A classifier with three labels and two token types.
constexpr char bert[] =
    R"({"architectures": ["BertForSequenceClassification"], "model_type": "bert", "vocab_size": 64, )"
    R"("max_position_embeddings": 16, "hidden_size": 32,
  "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64, "id2label": {"0": "a", )"
    R"("1": "b", "2": "c"}})";

stw_plan_options small() {
  auto options = made<stw_plan_options>();
  options.global_batch = 4, options.sequence = length, options.memory_bytes = 64 << 20,
  options.state_bits = STW_STATES_32, options.threads = 2;
  return options;
}

stowage::Device two_threads() {
  auto options = made<stw_device_options>();
  options.backend = STW_BACKEND_CPU, options.threads = 2;
  return stowage::Device(options);
}

struct World {
  explicit World(const stw_plan_options& plan = small(), stowage::Trainer::Hook hook = {},
                 const stw_model_options& config = of_config())
      : model(config),
        device(two_threads()),
        trainer(device, model, stowage::Plan(model, plan), made<stw_trainer_options>(), std::move(hook)) {}

  stw_step_result steps(int count) {
    const std::vector<int32_t> all = tokens();
    stw_step_result last{};
    for (int i = 0; i < count; ++i)
      last = trainer.step({.tokens = stowage::rows(all, length), .labels = stowage::rows(all, length)}, 1e-3);
    return last;
  }

  std::vector<float> weights() {
    std::vector<float> all;
    for (size_t i = 0; i < model.tensors().size(); ++i) {
      const stowage::View view = trainer.tensor(i);
      all.insert(all.end(), view.floats().begin(), view.floats().end());
    }
    return all;
  }

  stowage::Model model;
  stowage::Device device;
  stowage::Trainer trainer;
};

struct Folder {
  Folder()
      : path(std::filesystem::temp_directory_path() /
             ("stowage-cpp-" + std::to_string(reinterpret_cast<uintptr_t>(this)))) {
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

stowage::Dataset data_in(const Folder& folder) {
  const std::string path = (folder.path / "data.bin").string();
  std::ofstream file(path, std::ios::binary);
  for (uint32_t i = 0; i < 4000; ++i) file.put(static_cast<char>(i * i / 7 % 64)).put(0);
  file.close();
  auto options = made<stw_dataset_options>();
  options.path = path.c_str(), options.vocabulary = 64, options.sequence = length;
  return stowage::Dataset(options);
}

TEST(Cpp, NamesItsVersion) {
  EXPECT_EQ(stowage::version(), 100u);
  EXPECT_NE(stowage::build_info().find("stowage 0.1.0"), std::string::npos);
  EXPECT_EQ(stowage::devices().front().backend, static_cast<uint32_t>(STW_BACKEND_CPU));
  EXPECT_GT(stowage::profiles().size(), 5u);
  EXPECT_GT(stowage::presets().size(), 5u);
}

TEST(Cpp, FailuresAreExceptions) {
  try {
    stowage::Model("no/such/model");
    FAIL();
  } catch (const stowage::Error& error) {
    EXPECT_EQ(error.status(), STW_IO_ERROR);
    EXPECT_EQ(std::string(error.what()).find("STW_IO_ERROR: "), 0u) << error.what();
    EXPECT_NE(std::string(error.what()).find("no such file or folder"), std::string::npos) << error.what();
  }
  auto rate = of_config();
  rate.set_mask = STW_SET_DROPOUT, rate.dropout = 7;
  EXPECT_EQ(status_of([&] { stowage::Model{rate}; }), STW_BAD_ARGUMENT);
}

TEST(Cpp, OverBudgetIsAnAnswer) {
  const stowage::Model model("nano");
  auto options = small();
  options.sequence = 64, options.memory_bytes = 1 << 20;
  try {
    stowage::Plan(model, options);
    FAIL();
  } catch (const stowage::OverBudget& error) {
    EXPECT_EQ(error.plan()->info().minimum_bytes, error.bytes_needed());
    EXPECT_NE(error.plan()->report().find("does not fit"), std::string::npos);
    EXPECT_FALSE(error.plan()->relaxations().empty());
    options.memory_bytes = error.bytes_needed();
  }
  EXPECT_EQ(stowage::Plan(model, options).info().peak, options.memory_bytes);
}

TEST(Cpp, PlansHaveAllFields) {
  const stowage::Model model(of_config());
  EXPECT_EQ(model.index_of(model.tensors()[1].name), 1u);
  EXPECT_FALSE(model.index_of("no such tensor"));
  EXPECT_TRUE(model.labels().empty());
  EXPECT_NE(model.config().find("\"model_type\": \"gpt2\""), std::string::npos) << model.config();
  const stowage::Plan plan(model, two_threads(), small());
  plan.verify();
  EXPECT_STREQ(stowage::Plan::load(model, plan.json()).info().fingerprint, plan.info().fingerprint);
  EXPECT_EQ(status_of([&] { stowage::Plan::load(model, "{}"); }), STW_CORRUPT);
  const std::string picture = plan.picture(STW_PICTURE_SVG);
  EXPECT_EQ(picture.substr(picture.size() - 7), "</svg>\n");
  EXPECT_GT(plan.buffers().size(), 10u);
  EXPECT_TRUE(plan.offloads().empty());
  const auto points = plan.frontier();
  EXPECT_LE(points.front().peak, points.back().peak);
  EXPECT_EQ(stowage::Plan::longest_sequence(model, small()), length);
}

TEST(Cpp, Packs) {
  const std::vector<stw_buffer_lifetime> lifetimes = {{0, 2, 10}, {1, 3, 5}, {2, 4, 10}};
  EXPECT_EQ(stowage::pack(lifetimes).result.height, 15u);
  auto options = made<stw_pack_options>();
  options.capacity = 14;
  EXPECT_EQ(stowage::pack(lifetimes, options).result.answer, static_cast<uint32_t>(STW_PACK_IMPOSSIBLE));
  EXPECT_TRUE(stowage::pack(lifetimes, options).offsets.empty());
  EXPECT_EQ(status_of([] { stowage::pack(std::vector<stw_buffer_lifetime>{{2, 1, 3}}); }), STW_BAD_ARGUMENT);
}

TEST(Cpp, EveryBudgetTrainsTheSameBits) {
  World all;
  auto options = small();
  options.memory_bytes = stowage::Plan(all.model, options).frontier().front().peak;
  World least(options);
  const stw_step_result first = all.steps(1);
  EXPECT_NEAR(first.loss, std::log(64), 0.5);
  EXPECT_EQ(first.targets, 60u);
  all.steps(4), least.steps(5);
  EXPECT_EQ(all.weights(), least.weights());
  EXPECT_EQ(all.trainer.replan(options.memory_bytes).info().peak, options.memory_bytes);
  all.steps(1), least.steps(1);
  EXPECT_EQ(all.weights(), least.weights());
  EXPECT_THROW(all.trainer.replan(1), stowage::OverBudget);
}

TEST(Cpp, Batches) {
  World one, other;
  const std::vector<int32_t> all = tokens(), lengths(4, length);
  std::vector<int32_t> targets(all.begin() + 1, all.end());
  targets.push_back(0);
  for (size_t i = length - 1; i < targets.size(); i += length) targets[i] = -100;
  one.steps(1);
  stowage::Batch batch{.tokens = stowage::rows(all, length),
                       .targets = stowage::rows(targets, length),
                       .lengths = stowage::one_each(lengths)};
  other.trainer.step(batch, 1e-3);
  EXPECT_EQ(one.weights(), other.weights());
  const std::vector<float> weights(all.size(), 1.0f);
  batch.weights = stowage::rows(weights, length);
  EXPECT_EQ(status_of([&] { other.trainer.step(batch, 1e-3); }), STW_UNSUPPORTED);
  EXPECT_EQ(status_of([&] {
              other.trainer.step({.tokens = stowage::rows(std::span(all).first(63), length)}, 1e-3);
            }),
            STW_BAD_ARGUMENT);
  EXPECT_EQ(status_of([&] { other.trainer.step({.tokens = stowage::rows(all, length)}, 1e-3); }),
            STW_BAD_ARGUMENT);  // no targets
  EXPECT_EQ(status_of([&] { other.trainer.step({.tokens = stowage::rows(all, 0)}, 1e-3); }),
            STW_BAD_ARGUMENT);
}

stw_plan_options with_preference(uint32_t preference) {
  auto options = small();
  options.preference = preference;
  return options;
}

TEST(Cpp, PrefersTheChosenAnswers) {
  World world(with_preference(STW_PREFERENCE_DPO));
  const std::vector<int32_t> all = tokens();
  std::vector<int32_t> targets(all.size(), -100), positions(all.size());
  for (size_t i = 0; i < all.size(); ++i) {  // two documents of 8 tokens in each sample
    positions[i] = static_cast<int32_t>(i % 8);
    if (i % 8 != 0 && i % 8 != 7) targets[i] = all[i + 1];
  }
  stowage::Batch pairs{.tokens = stowage::rows(all, length),
                       .targets = stowage::rows(targets, length),
                       .positions = stowage::rows(positions, length)};
  const std::vector<float> reference = world.trainer.log_probabilities(pairs);
  ASSERT_EQ(reference.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(reference[i] < 0, targets[i] >= 0) << i;
  const auto first_of = [](const auto& values) {
    return stowage::rows(std::span(values).first(length), length);
  };
  EXPECT_EQ(world.trainer.log_probabilities(
                {.tokens = first_of(all), .targets = first_of(targets), .positions = first_of(positions)}),
            std::vector<float>(reference.begin(), reference.begin() + length));
  EXPECT_EQ(status_of([&] { world.trainer.step(pairs, 1e-2); }), STW_BAD_ARGUMENT);  // a reference is missing
  pairs.reference = stowage::rows(reference, length);
  EXPECT_EQ(status_of([&] { world.trainer.log_probabilities(pairs); }), STW_UNSUPPORTED);
  stw_step_result done = world.trainer.step(pairs, 1e-2);
  EXPECT_NEAR(done.loss, std::log(2), 1e-5);
  EXPECT_EQ(done.accuracy, 0);
  EXPECT_EQ(done.targets, 4u);
  for (int i = 0; i < 20; ++i) done = world.trainer.step(pairs, 1e-2);
  EXPECT_LT(done.loss, 0.6);
  EXPECT_EQ(done.accuracy, 1);
  EXPECT_EQ(world.trainer.progress().accuracy, 1);
}

TEST(Cpp, WritesReferences) {
  const Folder folder;
  const std::string path = (folder.path / "tokens.bin").string(), marks = (folder.path / "marks").string(),
                    reference = (folder.path / "reference").string();
  std::ofstream ids(path, std::ios::binary), marked(marks, std::ios::binary);
  for (uint32_t i = 0; i < 640; ++i) {  // documents of 8 tokens, alternately chosen and rejected
    ids.put(static_cast<char>(i * i / 7 % 61)).put(0);
    marked.put(i % 8 == 0 ? STW_MARK_BEGIN : i % 8 > 4 ? STW_MARK_TARGET : 0);
  }
  ids.close(), marked.close();
  World world(with_preference(STW_PREFERENCE_DPO));
  auto options = made<stw_dataset_options>();
  options.path = path.c_str(), options.marks = marks.c_str(), options.vocabulary = 64,
  options.sequence = length, options.pairs = 1;
  stowage::Dataset bare(options);
  auto steps = made<stw_run_options>();
  steps.until = 3;
  EXPECT_EQ(status_of([&] { world.trainer.run(bare, steps); }), STW_BAD_STATE);
  world.trainer.write_reference(bare, reference);
  std::vector<float> written(640);
  ASSERT_EQ(std::filesystem::file_size(reference), written.size() * sizeof(float) + 32);
  std::ifstream(reference, std::ios::binary)
      .read(reinterpret_cast<char*>(written.data()), 640 * sizeof(float));
  for (size_t i = 0; i < written.size(); ++i) EXPECT_EQ(written[i]<0, i % 8> 4) << i;
  options.reference = reference.c_str();
  stowage::Dataset data(options);
  EXPECT_NEAR(world.trainer.evaluate(data, 100), std::log(2), 1e-5);
  EXPECT_TRUE(world.trainer.run(data, steps));
}

TEST(Cpp, RunsOverDatasets) {
  const Folder folder;
  World world;
  stowage::Dataset data = data_in(folder);
  EXPECT_EQ(data.info().training_tokens, 3600u);
  auto options = made<stw_run_options>();
  options.until = 5, options.progress_every = 2;
  std::vector<uint64_t> seen;
  EXPECT_TRUE(world.trainer.run(data, options, [&](const stw_progress& now) {
    seen.push_back(now.step);
    return world.trainer.generate(std::vector<int32_t>{1, 2}, 3).size() == 3;
  }));
  EXPECT_EQ(seen, (std::vector<uint64_t>{2, 4, 5}));
  const double loss = world.trainer.evaluate(data, 2);
  EXPECT_EQ(world.trainer.progress().evaluation_loss, loss);
  options.until = 20;
  EXPECT_FALSE(world.trainer.run(data, options, [](const stw_progress&) { return false; }));
  EXPECT_THROW(world.trainer.run(data, options,
                                 [](const stw_progress&) -> bool { throw std::logic_error("of the host"); }),
               std::logic_error);
  EXPECT_TRUE(world.trainer.run(data, options));
  options.until = 1ull << 40;
  std::thread canceller([&] {
    while (world.trainer.progress().step < 30) std::this_thread::yield();
    world.trainer.cancel();
  });
  EXPECT_FALSE(world.trainer.run(data, options));
  canceller.join();
  EXPECT_EQ(status_of([&] { world.trainer.generate(std::vector<int32_t>{1}, size_t{1} << 62); }),
            STW_UNSUPPORTED_SHAPE);
}

TEST(Cpp, WatchesReportAndCancel) {
  std::vector<uint64_t> done;
  bool goes_on = true, throws = false;
  auto every_piece = made<stw_watch_options>();
  every_piece.set_mask = STW_SET_INTERVAL;
  stowage::Watch watch(every_piece, [&](const stw_watch_info& now) {
    if (now.work == STW_WORK_STEP) done.push_back(now.done);
    if (throws) throw std::logic_error("of the host");
    return goes_on;
  });
  World world;
  auto plan_options = small();
  plan_options.micro_batch = 2, plan_options.watch = watch.get();
  const stowage::Plan plan(world.model, plan_options);
  auto trainer_options = made<stw_trainer_options>();
  trainer_options.watch = watch.get();
  stowage::Trainer trainer(world.device, world.model, plan, trainer_options);
  const std::vector<int32_t> all = tokens();
  const auto step = [&] {
    trainer.step({.tokens = stowage::rows(all, length), .labels = stowage::rows(all, length)}, 1e-3);
  };
  step();
  EXPECT_EQ(done.front(), 0u);
  EXPECT_EQ(done.back(), 2u);
  EXPECT_EQ(trainer.progress().micro_steps_done, 2u);
  EXPECT_EQ(watch.state().work, uint32_t{STW_WORK_NONE});
  goes_on = false;
  EXPECT_EQ(status_of(step), STW_CANCELLED);
  goes_on = true, throws = true;
  EXPECT_EQ(status_of(step), STW_CANCELLED);
  EXPECT_THROW(watch.rethrow(), std::logic_error);
  throws = false;
  watch.rethrow();
  watch.cancel();
  EXPECT_EQ(status_of([&] { stowage::Plan(world.model, plan_options); }), STW_CANCELLED);
  EXPECT_EQ(plan.frontier(watch.get()).size(), plan.frontier().size());
  EXPECT_EQ(plan.picture(STW_PICTURE_HTML, watch.get()), plan.picture(STW_PICTURE_HTML));
  watch.cancel();
  EXPECT_EQ(status_of([&] { plan.frontier(watch.get()); }), STW_CANCELLED);
  watch.cancel();
  EXPECT_EQ(status_of([&] { plan.picture(STW_PICTURE_HTML, watch.get()); }), STW_CANCELLED);
  const Folder folder;
  goes_on = false;
  EXPECT_EQ(status_of([&] { world.model.export_to(folder.path, watch.get()); }), STW_CANCELLED);
  goes_on = true;
  world.model.export_to(folder.path, watch.get());
  EXPECT_EQ(watch.state().done, watch.state().total);
  step();
  EXPECT_EQ(trainer.progress().step, 2u);
}

TEST(Cpp, Hooks) {
  int calls = 0;
  World one(small(), [&](const stw_gradients& gradients) {
    if (++calls == 1) throw std::runtime_error("the network is gone");
    // twice the gradient over twice the targets gives the same step
    for (uint64_t i = 0; i < gradients.count; ++i) gradients.data[i] *= 2;
    *gradients.loss_sum *= 2, *gradients.target_count *= 2;
  });
  World other;
  const std::vector<float> before = one.weights();
  EXPECT_THROW(one.steps(1), std::runtime_error);
  EXPECT_EQ(one.weights(), before);
  // An exception that a hook throws is not taken for a cancel, even if its status is STW_CANCELLED.
  const Folder folder;
  stowage::Dataset data = data_in(folder);
  auto options = made<stw_run_options>();
  options.until = 3;
  World cancelled(small(), [](const stw_gradients&) { throw stowage::Error(STW_CANCELLED, "of the hook"); });
  EXPECT_THROW(cancelled.trainer.run(data, options), stowage::Error);
  EXPECT_EQ(one.steps(1).targets, 2 * other.steps(1).targets);
  EXPECT_EQ(one.weights(), other.weights());
}

TEST(Cpp, CheckpointsAndTensors) {
  const Folder folder;
  World whole, other;
  whole.steps(2);
  whole.trainer.save(folder.path / "checkpoint.stw");
  stowage::verify_checkpoint(folder.path / "checkpoint.stw");
  other.trainer.restore(folder.path / "checkpoint.stw");
  EXPECT_EQ(whole.weights(), other.weights());
  EXPECT_EQ(status_of([&] { other.trainer.restore(folder.path / "none.stw"); }), STW_IO_ERROR);
  whole.trainer.export_model(folder.path);
  stowage::Model(folder.path).export_to(folder.path / "again");
  EXPECT_EQ(stowage::Model(folder.path / "again").info().has_weights, 1u);
  const size_t count = whole.trainer.tensor(0).size();
  whole.trainer.set_tensor(0, std::vector<float>(count, 0.5f));
  EXPECT_EQ(whole.trainer.tensor(0).floats()[count - 1], 0.5f);
  EXPECT_TRUE(whole.trainer.tensor(0).bits16().empty());
  EXPECT_EQ(status_of([&] { whole.trainer.set_tensor(0, std::vector<float>(3)); }), STW_BAD_ARGUMENT);
  EXPECT_EQ(whole.trainer.logits(std::vector<int32_t>{1, 2}).size(), 64u);
}

// A device is closed after its last trainer, even if another trainer is assigned over that one.
TEST(Cpp, DevicesOutliveTheirName) {
  std::vector<std::string> heard;
  auto options = made<stw_device_options>();
  options.backend = STW_BACKEND_CPU, options.threads = 1, options.log_level = STW_LOG_INFO;
  const stowage::Model model(of_config());
  const stowage::Plan plan(model, small());
  std::optional<stowage::Device> first(
      std::in_place, options,
      [&](int32_t, std::string_view, std::string_view message) { heard.emplace_back(message); });
  stowage::Trainer trainer(*first, model, plan);
  EXPECT_EQ(first->next_log().has_value(), !heard.empty());
  first.reset();
  World other;
  trainer = std::move(other.trainer);
  const std::vector<int32_t> all = tokens();
  EXPECT_EQ(
      trainer.step({.tokens = stowage::rows(all, length), .labels = stowage::rows(all, length)}, 1e-3).step,
      1u);
}

// The plan uses the device's threads, not the machine's. Moved-from objects report an error.
TEST(Cpp, PlansAreForTheirDevice) {
  auto one_thread = made<stw_device_options>();
  one_thread.backend = STW_BACKEND_CPU, one_thread.threads = 1;
  const stowage::Model model(of_config());
  auto options = small();
  options.threads = 1;
  const uint64_t expected = stowage::Plan(model, options).info().arena;
  options.threads = 0;
  stowage::Device device(one_thread);
  EXPECT_EQ(stowage::Plan(model, device, options).info().arena, expected);
  const stowage::Device moved = std::move(device);
  EXPECT_EQ(moved.info().threads, 1u);
  EXPECT_EQ(status_of([&] { device.info(); }), STW_BAD_ARGUMENT);
  World world;
  const stowage::Trainer taken = std::move(world.trainer);
  EXPECT_EQ(status_of([&] { world.steps(1); }), STW_BAD_ARGUMENT);
  EXPECT_EQ(status_of([&] { world.trainer.progress(); }), STW_BAD_ARGUMENT);
}

TEST(Cpp, CallbacksOfAnOlderLibraryKnowLess) {
  auto progress = made<stw_progress>();
  progress.step = 3, progress.loss = 5;
  progress.struct_size = offsetof(stw_progress, loss);
  EXPECT_EQ(stowage::detail::copied(&progress).step, 3u);
  EXPECT_EQ(stowage::detail::copied(&progress).loss, 0);
}

TEST(Cpp, Calibrates) {
  World world;
  const std::string profile = world.trainer.calibrate();
  EXPECT_EQ(stowage::read_profile(profile).figures.threads, 2u);
  EXPECT_GT(stowage::read_profile(profile).ops.size(), 3u);
  EXPECT_EQ(status_of([] { stowage::read_profile("{}"); }), STW_CORRUPT);
}

TEST(Cpp, LabelsOfTokens) {
  auto labels = of_config();
  labels.label_count = 3, labels.task = STW_TASK_TOKEN_LABEL;
  World world(small(), {}, labels);
  const std::vector<int32_t> all = tokens();
  std::vector<int32_t> classes = all;
  for (int32_t& token : classes) token %= 3;
  EXPECT_EQ(world.trainer
                .step({.tokens = stowage::rows(all, length), .labels = stowage::rows(classes, length)}, 1e-3)
                .targets,
            all.size());
  const std::vector<std::vector<int32_t>> texts = {{1, 2, 3}, {4}};
  const std::vector<std::vector<float>> rows = world.trainer.classify(texts);
  EXPECT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[3], world.trainer.classify({texts[1]})[0]);
  EXPECT_EQ(rows[3].size(), 3u);
}

TEST(Cpp, Classifiers) {
  auto labels = of_config();
  const char* const names[] = {"a", "b", "c"};
  labels.label_names = names, labels.label_count = 3;
  World world(small(), {}, labels);
  EXPECT_EQ(world.model.labels(), (std::vector<std::string>{"a", "b", "c"}));
  const std::vector<int32_t> all = tokens(), classes = {0, 1, 2, 1};
  EXPECT_EQ(
      world.trainer.step({.tokens = stowage::rows(all, length), .labels = stowage::one_each(classes)}, 1e-3)
          .targets,
      4u);
  EXPECT_EQ(world.trainer.logits(std::span(all).first(5)).size(), 3u);
  const std::vector<std::vector<int32_t>> texts = {{1, 2, 3}, {4}};
  EXPECT_EQ(world.trainer.classify(texts), (std::vector<std::vector<float>>{world.trainer.logits(texts[0]),
                                                                            world.trainer.logits(texts[1])}));
  EXPECT_TRUE(world.trainer.classify({}).empty());
  // the model has no token types
  EXPECT_EQ(status_of([&] { world.trainer.classify(texts, texts); }), STW_BAD_ARGUMENT);
  EXPECT_EQ(status_of([&] { world.trainer.classify({{}}); }), STW_UNSUPPORTED_SHAPE);
  EXPECT_EQ(status_of([&] { World().trainer.classify(texts); }), STW_UNSUPPORTED);
}

TEST(Cpp, SeveralLabelsAndNumbers) {
  for (const uint32_t task : {STW_TASK_LABELS, STW_TASK_NUMBER}) {
    auto config = of_config();
    config.label_count = 2, config.task = task;
    World world(small(), {}, config);
    EXPECT_EQ(world.model.info().task, task);
    const std::vector<int32_t> all = tokens();
    const std::vector<float> values = {0, 1, 1, 1, 0.5f, 0, 1, 0};
    EXPECT_EQ(
        world.trainer.step({.tokens = stowage::rows(all, length), .values = stowage::rows(values, 2)}, 1e-3)
            .targets,
        4u);
    EXPECT_EQ(world.trainer.classify({{1, 2, 3}})[0].size(), 2u);
    EXPECT_EQ(status_of([&] {
                world.trainer.step({.tokens = stowage::rows(all, length), .values = stowage::rows(values, 4)},
                                   1e-3);
              }),
              STW_BAD_ARGUMENT);
  }
}

TEST(Cpp, Encoders) {
  auto config = made<stw_model_options>();
  config.config_json = bert, config.config_json_size = sizeof bert - 1;
  World world(small(), {}, config);
  EXPECT_EQ(world.model.info().generates, 0u);
  EXPECT_EQ(world.model.info().token_types, 2u);
  const std::vector<std::vector<int32_t>> texts = {{1, 2, 3}, {4, 5}}, types = {{0, 1, 1}, {0, 0}};
  const auto without = world.trainer.classify(texts), with = world.trainer.classify(texts, types);
  EXPECT_NE(with[0], without[0]);
  EXPECT_EQ(with[1], without[1]);
  EXPECT_EQ(with[1].size(), 3u);
  EXPECT_EQ(status_of([&] { world.trainer.classify(texts, {{0, 1, 1}}); }), STW_BAD_ARGUMENT);
  EXPECT_EQ(status_of([&] { world.trainer.classify(texts, {{0, 1}, {0, 0}}); }), STW_BAD_ARGUMENT);
  EXPECT_EQ(status_of([&] { world.trainer.classify(texts, {{0, 1, 2}, {0, 0}}); }), STW_BAD_ARGUMENT);
  const std::vector<int32_t> all = tokens(), classes = {0, 1, 2, 1}, second(all.size(), 1);
  const stowage::Batch plain{.tokens = stowage::rows(all, length), .labels = stowage::one_each(classes)};
  stowage::Batch typed = plain;
  typed.token_types = stowage::rows(second, length);
  EXPECT_NE(world.trainer.log_probabilities(typed), world.trainer.log_probabilities(plain));
  EXPECT_EQ(world.trainer.step(typed, 1e-3).targets, 4u);
  typed.labels = stowage::rows(all, length);
  EXPECT_EQ(status_of([&] { World().trainer.step(typed, 1e-3); }), STW_UNSUPPORTED);
}

}  // namespace
