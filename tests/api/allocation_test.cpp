// Host memory: steps allocate nothing, and every single allocation of every entry may fail without harm.
#include <algorithm>
#include <utility>

#include "tests/api/counting_allocator.h"
#include "tests/api/harness.h"

namespace stw::api_test {
namespace {

TEST(Allocation, NoneDuringSteps) {
  for (const uint32_t threads : {1u, 2u}) {
    auto o = plan_options(5);
    o.micro_batch = 2;
    o.threads = threads;
    World w(tiny_gpt2, o, nullptr, open_device(threads));
    TokenBatch batch(5, 16);
    const stw_batch* view = batch.batch();
    stw_error error = sized<stw_error>();
    auto result = sized<stw_step_result>();
    ASSERT_EQ(stw_trainer_step(w.trainer.get(), view, &error), STW_OK);
    const uint64_t before = allocations;
    for (int i = 0; i < 5; ++i) {
      stw_trainer_step(w.trainer.get(), view, &error);
      stw_trainer_wait(w.trainer.get(), &result, &error);
    }
    EXPECT_EQ(allocations - before, 0u);
    EXPECT_EQ(result.step, 6u);
  }
}

// Skipped steps and steps on pairs do not allocate either. If an allocation failed after the state had
// changed, the step could not report it.
TEST(Allocation, NoneDuringStepsThatAreSkippedOrOfPairsOrTypes) {
  auto o = plan_options(4);
  o.precision = STW_PRECISION_FP16;
  auto trainer_of = sized<stw_trainer_options>();
  trainer_of.loss_scale = 0x1p99f;
  const World scaled(tiny_gpt2, o, &trainer_of);
  o = plan_options(4);
  o.preference = STW_PREFERENCE_DPO;
  const World pairs(tiny_llama, o);
  const World encoder(tiny_bert, plan_options(4));
  TokenBatch plain(4, 16), of_pairs(4, 16), of_types(4, 16);
  for (int32_t i = 0; i < 64; ++i)
    of_pairs.positions.push_back(i % 8), of_pairs.reference.push_back(-1),
        of_types.token_types.push_back(i / 8 % 2), of_types.targets[i] %= 3;
  auto result = sized<stw_step_result>();
  stw_error error = sized<stw_error>();
  for (const auto& [trainer, batch, skips] : {std::tuple{scaled.trainer.get(), plain.batch(), 1u},
                                              {pairs.trainer.get(), of_pairs.batch(), 0u},
                                              {encoder.trainer.get(), of_types.batch(), 0u}}) {
    for (int i = 0; i < 3; ++i) {
      const uint64_t before = allocations;
      ASSERT_EQ(stw_trainer_step(trainer, batch, &error), STW_OK) << error.message;
      EXPECT_EQ(allocations - before, 0u);
      must(stw_trainer_wait(trainer, &result, &error), error);
      EXPECT_EQ(result.skipped, skips);
    }
  }
}

TEST(Allocation, NoneBetweenTheFirstAndTheLastStepOfARun) {
  TemporaryDirectory folder;
  const auto dataset = open_text(folder, text_of(2000));
  World w(tiny_llama, plan_options());
  struct Seen {
    uint64_t first = 0, last = 0;
  } seen;
  auto o = run_options(8);
  o.progress_user = &seen;
  o.progress = [](void* user, const stw_progress* now) -> int32_t {
    (now->batches == 1 ? static_cast<Seen*>(user)->first : static_cast<Seen*>(user)->last) = allocations;
    return 0;
  };
  ASSERT_EQ(stw_trainer_run(w.trainer.get(), dataset.get(), &o, nullptr), STW_OK);
  EXPECT_EQ(seen.last - seen.first, 0u);
}

size_t open_descriptors() {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

#ifdef STW_SANITIZED
constexpr int64_t allocation_step = 4;  // only every fourth allocation
#else
constexpr int64_t allocation_step = 1;
#endif

enum Failure { once, for_good };

// Calls `entry` with its 1st, 2nd, 3rd, … allocation failing until it succeeds. With `for_good` all later
// allocations fail too; from the 500th allocation on it then tries ever fewer of them. `check` examines the
// state after each failure.
template <class Entry, class Check>
void fail_every_allocation(const char* name, const Entry& entry, const Check& check, Failure failure = once) {
  SCOPED_TRACE(name);
  int64_t n = 0;
  for (;; n += allocation_step + (failure == for_good ? n / 500 * 40 : 0)) {
    const int64_t live = live_objects;
    const size_t descriptors = open_descriptors();
    stw_error error = sized<stw_error>();
    fail_after(n, failure == for_good);
    const stw_status status = entry(&error);
    const bool failed = end_of_failures();
    if (!failed) {
      ASSERT_EQ(status, STW_OK) << error.message;
      break;
    }
    // Allocations that the runtime can do without (a locale, a sort's buffer) may fail unnoticed.
    if (status == STW_OK) {
      check(true);
      if (testing::Test::HasFatalFailure()) return;
      continue;
    }
    ASSERT_EQ(status, STW_HOST_OUT_OF_MEMORY) << "allocation " << n << ": " << error.message;
    ASSERT_EQ(error.status, status);
    ASSERT_NE(error.message[0], 0);
    ASSERT_EQ(live_objects, live) << "allocation " << n << " left something";
    ASSERT_EQ(open_descriptors(), descriptors) << "allocation " << n;
    check(false);
    if (testing::Test::HasFatalFailure()) return;
  }
  testing::Test::RecordProperty(name, std::to_string(n));
}

template <class T, class Create>
void fail_every_allocation_of(const char* name, const Create& create) {
  T* out = nullptr;
  fail_every_allocation(
      name, [&](stw_error* error) { return create(&out, error); },
      [&](bool succeeded) {
        ASSERT_EQ(out != nullptr, succeeded);
        Handle<T>{std::exchange(out, nullptr)};
      });
  ASSERT_NE(out, nullptr);
  Handle<T>{out};
}

const std::string smallest = R"({"architectures":["GPT2LMHeadModel"],"model_type":"gpt2","vocab_size":128,
  "n_positions":8,"n_embd":8,"n_layer":1,"n_head":1})";

TEST(Allocation, MayFailInEveryEntry) {
  TemporaryDirectory folder;
  const auto dataset = open_text(folder, text_of(500), 8, 128);
  const std::string text = folder / "text.txt", checkpoint = folder / "checkpoint",
                    exported = folder / "model", timeline = folder / "timeline.json";
  auto plan_of = plan_options(2, 8);
  plan_of.micro_batch = 1;
  plan_of.recompute = STW_RECOMPUTE_NONE;
  plan_of.state_bits = STW_STATES_32;
  World w(smallest, plan_of);

  fail_every_allocation_of<stw_device>(
      "device_open", [](stw_device** out, stw_error* e) { return stw_device_open(out, nullptr, e); });
  auto info = sized<stw_device_info>();
  fail_every_allocation(
      "device_at", [&](stw_error* e) { return stw_device_at(0, &info, e); }, [](bool) {});
  auto model_of = sized<stw_model_options>();
  model_of.config_json = smallest.data();
  model_of.config_json_size = smallest.size();
  fail_every_allocation_of<stw_model>(
      "model_create", [&](stw_model** out, stw_error* e) { return stw_model_create(out, &model_of, e); });
  fail_every_allocation_of<stw_plan>("plan_create", [&](stw_plan** out, stw_error* e) {
    return stw_plan_create(out, w.model.get(), &plan_of, e);
  });
  // The buffers leave no gap, so that the search runs.
  const stw_buffer_lifetime lifetimes[] = {{0, 1, 3}, {0, 3, 3}, {1, 4, 2}, {2, 5, 2},
                                           {3, 6, 2}, {4, 8, 3}, {6, 8, 3}};
  uint64_t offsets[7] = {9};
  fail_every_allocation(
      "pack", [&](stw_error* e) { return stw_pack(offsets, lifetimes, 7, nullptr, nullptr, e); },
      [&](bool) { ASSERT_LE(offsets[0], 9u); });
  const std::string json = stw_plan_json(w.plan.get());
  fail_every_allocation_of<stw_plan>("plan_load", [&](stw_plan** out, stw_error* e) {
    return stw_plan_load(out, w.model.get(), json.data(), json.size(), e);
  });
  fail_every_allocation(
      "plan_verify", [&](stw_error* e) { return stw_plan_verify(w.plan.get(), e); }, [](bool) {});
  std::string picture(1 << 20, 0);
  for (const uint32_t kind : {STW_PICTURE_SVG, STW_PICTURE_HTML, STW_PICTURE_CSV})
    fail_every_allocation(
        "plan_picture",
        [&](stw_error* e) {
          return stw_plan_picture(w.plan.get(), kind, picture.data(), picture.size(), nullptr, e);
        },
        [](bool) {});
  auto data_of = sized<stw_dataset_options>();
  data_of.path = text.c_str();
  data_of.vocabulary = 128;
  data_of.sequence = 8;
  fail_every_allocation_of<stw_dataset>(
      "dataset_open", [&](stw_dataset** out, stw_error* e) { return stw_dataset_open(out, &data_of, e); });
  fail_every_allocation_of<stw_trainer>("trainer_create", [&](stw_trainer** out, stw_error* e) {
    return stw_trainer_create(out, w.device.get(), w.model.get(), w.plan.get(), nullptr, e);
  });

  stw_trainer* const t = w.trainer.get();
  const State created = state_of(w);
  std::string profile(STW_PROFILE_BYTES, 0);
  size_t profile_size = 0;
  // A calibration restores what it overwrites, also after a failure: the trainer continues as if it had not
  // been called.
  const auto as_created = [&](bool) {
    ASSERT_EQ(progress_of(t).phase, static_cast<uint32_t>(STW_PHASE_IDLE));
    stw_error e = sized<stw_error>();
    double loss = 0;
    ASSERT_EQ(stw_trainer_evaluate(t, dataset.get(), 1, &loss, &e), STW_OK) << e.message;
    ASSERT_TRUE(state_of(w) == created);
  };
  fail_every_allocation(
      "trainer_calibrate",
      [&](stw_error* e) {
        return stw_trainer_calibrate(t, profile.data(), profile.size(), &profile_size, e);
      },
      as_created, for_good);
  fail_every_allocation(
      "trainer_timeline", [&](stw_error* e) { return stw_trainer_timeline(t, timeline.c_str(), e); },
      as_created, for_good);
  ASSERT_TRUE(state_of(w) == created);
  auto profile_of = sized<stw_profile_info>();
  fail_every_allocation(
      "profile_read",
      [&](stw_error* e) { return stw_profile_read(profile.data(), profile_size, &profile_of, e); },
      [](bool) {});
  auto calibrated_of = plan_of;
  calibrated_of.profile = profile.data();
  calibrated_of.profile_size = profile_size;
  fail_every_allocation_of<stw_plan>("plan_create_with_a_profile", [&](stw_plan** out, stw_error* e) {
    return stw_plan_create(out, w.model.get(), &calibrated_of, e);
  });
  uint64_t until = 1;
  run(t, dataset.get(), until++);
  State before = state_of(w);
  const auto unchanged = [&](bool done) {
    ASSERT_TRUE(done || state_of(w) == before);
    ASSERT_EQ(progress_of(t).phase, static_cast<uint32_t>(STW_PHASE_IDLE));
  };
  fail_every_allocation(
      "trainer_run",
      [&](stw_error* e) {
        const auto o = run_options(until);
        return stw_trainer_run(t, dataset.get(), &o, e);
      },
      unchanged);
  before = state_of(w);
  double loss = 0;
  fail_every_allocation(
      "trainer_evaluate", [&](stw_error* e) { return stw_trainer_evaluate(t, dataset.get(), 1, &loss, e); },
      unchanged);
  const int32_t prompt = 1;
  int32_t out[4];
  auto generate_of = sized<stw_generate_options>();
  generate_of.prompt = &prompt;
  generate_of.prompt_count = 1;
  generate_of.out = out;
  generate_of.out_capacity = 4;
  generate_of.temperature = 1;
  uint64_t count = 0;
  fail_every_allocation(
      "trainer_generate", [&](stw_error* e) { return stw_trainer_generate(t, &generate_of, &count, e); },
      unchanged);
  stw_error error = sized<stw_error>();
  must(stw_trainer_save(t, checkpoint.c_str(), &error), error);
  const std::string saved = file_bytes(checkpoint);
  const size_t entries = folder.entries();
  // A failed save leaves the old checkpoint and no other file.
  fail_every_allocation(
      "trainer_save", [&](stw_error* e) { return stw_trainer_save(t, checkpoint.c_str(), e); },
      [&](bool done) {
        unchanged(done);
        ASSERT_TRUE(file_bytes(checkpoint) == saved);
        ASSERT_EQ(folder.entries(), entries);
      });
  fail_every_allocation(
      "trainer_restore", [&](stw_error* e) { return stw_trainer_restore(t, checkpoint.c_str(), e); },
      unchanged);
  fail_every_allocation(
      "trainer_export_model", [&](stw_error* e) { return stw_trainer_export_model(t, exported.c_str(), e); },
      unchanged);
  model_of = sized<stw_model_options>();
  model_of.source = exported.c_str();
  fail_every_allocation_of<stw_model>("model_create_from_folder", [&](stw_model** m, stw_error* e) {
    return stw_model_create(m, &model_of, e);
  });
  const auto view = [&](DLManagedTensorVersioned** v, stw_error* e) {
    return stw_trainer_export_tensor(t, 0, STW_TENSOR_PARAMETER, v, e);
  };
  fail_every_allocation_of<DLManagedTensorVersioned>("trainer_export_tensor", view);
}

// A decoder takes one text after the other, an encoder several at once.
TEST(Allocation, MayFailWhereTextsAreClassified) {
  const std::string labels = R"("id2label":{"0":"no","1":"yes"},)";
  for (const std::string& config : {R"({"architectures":["GPT2ForSequenceClassification"],)" + labels +
                                        R"("model_type":"gpt2","vocab_size":128,"n_positions":8,"n_embd":8,
                                      "n_layer":1,"n_head":1})",
                                    R"({"architectures":["BertForSequenceClassification"],)" + labels +
                                        R"("model_type":"bert","vocab_size":128,"max_position_embeddings":8,
                                      "hidden_size":8,"num_hidden_layers":1,"num_attention_heads":1,)"
                                        R"("intermediate_size":16})"}) {
    World w(config, plan_options(2, 8));
    stw_trainer* const t = w.trainer.get();
    const int32_t tokens[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
    const uint64_t lengths[] = {3, 1, 2, 8};
    float out[8], expected[8] = {};
    must(stw_trainer_classify(t, tokens, nullptr, lengths, 4, expected, 8, nullptr), sized<stw_error>());
    const State before = state_of(w);
    fail_every_allocation(
        "trainer_classify",
        [&](stw_error* e) {
          std::fill_n(out, 8, -1.0f);
          return stw_trainer_classify(t, tokens, nullptr, lengths, 4, out, 8, e);
        },
        [&](bool done) {
          ASSERT_TRUE(state_of(w) == before);
          ASSERT_EQ(progress_of(t).phase, static_cast<uint32_t>(STW_PHASE_IDLE));
          ASSERT_TRUE(!done || std::equal(out, out + 8, expected));
        });
    EXPECT_TRUE(std::equal(out, out + 8, expected));
  }
}

TEST(Allocation, MayFailWhereAReferenceIsWritten) {
  TemporaryDirectory folder;
  const std::string tokens = folder / "tokens.txt", marks = folder / "marks",
                    reference = folder / "reference";
  put_file(tokens, text_of(160)), put_file(marks, std::string());
  std::string all;
  for (int i = 0; i < 40; ++i) all += {STW_MARK_BEGIN, 0, STW_MARK_TARGET, STW_MARK_TARGET};
  put_file(marks, all);
  auto dataset_of = sized<stw_dataset_options>();
  dataset_of.path = tokens.c_str(), dataset_of.marks = marks.c_str();
  dataset_of.vocabulary = 128, dataset_of.sequence = 8, dataset_of.pairs = 1;
  const auto open = [&](stw_dataset** out, stw_error* e) { return stw_dataset_open(out, &dataset_of, e); };
  const auto dataset = make<stw_dataset>(open);
  auto plan_of = plan_options(2, 8);
  plan_of.preference = STW_PREFERENCE_DPO;
  World w(smallest, plan_of);
  stw_trainer* const t = w.trainer.get();
  const auto nothing = [](bool) {};
  fail_every_allocation(
      "trainer_write_reference",
      [&](stw_error* e) { return stw_trainer_write_reference(t, dataset.get(), reference.c_str(), e); },
      [&](bool) { ASSERT_LE(folder.entries(), 3u); });
  TokenBatch batch(2, 8);
  const stw_batch* const two = batch.batch();
  float out[16];
  fail_every_allocation(
      "trainer_log_probabilities",
      [&](stw_error* e) { return stw_trainer_log_probabilities(t, two, out, 16, e); }, nothing);
  dataset_of.reference = reference.c_str();
  fail_every_allocation_of<stw_dataset>("dataset_open", open);
  const auto with = make<stw_dataset>(open);
  auto o = run_options(3);
  ASSERT_EQ(stw_trainer_run(t, with.get(), &o, nullptr), STW_OK);
  o.until = 6;
  const uint64_t before = allocations;
  ASSERT_EQ(stw_trainer_run(t, with.get(), &o, nullptr), STW_OK);
  EXPECT_LE(allocations - before, 4u);  // the run allocates, its steps do not
}

TEST(Allocation, MayFailInATimelineOfWeightsFromFiles) {
  TemporaryDirectory folder;
  const std::string exported = folder / "model", timeline = folder / "timeline.json";
  auto plan_of = plan_options(2, 8);
  World w(smallest, plan_of);
  stw_error error = sized<stw_error>();
  must(stw_trainer_export_model(w.trainer.get(), exported.c_str(), &error), error);
  auto model_of = sized<stw_model_options>();
  model_of.source = exported.c_str();
  const auto open_model = [&] {
    w.model =
        make<stw_model>([&](stw_model** out, stw_error* e) { return stw_model_create(out, &model_of, e); });
  };
  const auto open_trainer = [&](uint32_t precision) {
    plan_of.precision = precision;
    w.plan = make_plan(w.model.get(), plan_of);
    w.trainer = make<stw_trainer>([&](stw_trainer** out, stw_error* e) {
      return stw_trainer_create(out, w.device.get(), w.model.get(), w.plan.get(), nullptr, e);
    });
  };
  struct Case {
    const char* folder;
    uint32_t precision;
  };
  for (const Case& c : {Case{"model", STW_PRECISION_BF16}, Case{"model", STW_PRECISION_FP16},
                        Case{"adapters", STW_PRECISION_BF16}}) {
    const std::string source = folder / c.folder;
    if (source != exported) {  // adapters of that model, also from files
      model_of.source = exported.c_str(), model_of.adapter_rank = 2;
      open_model();
      open_trainer(c.precision);
      must(stw_trainer_export_model(w.trainer.get(), source.c_str(), &error), error);
      model_of.adapter_rank = 0;
    }
    model_of.source = source.c_str();
    open_model();
    open_trainer(c.precision);
    // The whole state: parameters, states, counts.
    const std::string checkpoint = folder / "checkpoint";
    const auto state = [&] {
      EXPECT_EQ(stw_trainer_save(w.trainer.get(), checkpoint.c_str(), &error), STW_OK) << error.message;
      return file_bytes(checkpoint);
    };
    const auto created = state();
    fail_every_allocation(
        "trainer_timeline",
        [&](stw_error* e) { return stw_trainer_timeline(w.trainer.get(), timeline.c_str(), e); },
        [&](bool) { ASSERT_TRUE(state() == created); }, for_good);
  }
}

}  // namespace
}  // namespace stw::api_test
