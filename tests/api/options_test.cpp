// Every entry with option structs of other versions, with NULL, and with invalid values.
#include "tests/api/harness.h"

namespace stw::api_test {
namespace {

// An options struct at the start of a longer, zeroed piece of memory, so that struct_size may be wrong.
template <class T>
struct Aged {
  union {
    T options;
    unsigned char bytes[sizeof(T) + 64];
  };
  Aged() { std::memset(bytes, 0, sizeof bytes); }
};

// `fill` sets the required fields. `create` returns the status and destroys the result.
template <class T, class Fill, class Create>
void check_sizes(const char* name, const Fill& fill, const Create& create) {
  SCOPED_TRACE(name);
  Aged<T> aged;
  T& o = aged.options;
  fill(o);
  for (const uint32_t size :
       {0u, 1u, 3u, static_cast<uint32_t>(sizeof(T) - 1), static_cast<uint32_t>(sizeof(T) - 4)}) {
    o.struct_size = size;
    EXPECT_EQ(create(&o), STW_BAD_STRUCT_SIZE) << size;
  }
  o.struct_size = sizeof o;
  EXPECT_EQ(create(&o), STW_OK);
  o.struct_size = sizeof aged;
  EXPECT_EQ(create(&o), STW_OK) << "a longer struct whose tail is zero";
  aged.bytes[sizeof aged - 1] = 1;
  EXPECT_EQ(create(&o), STW_BAD_STRUCT_SIZE) << "a longer struct with a field that is set";
  aged.bytes[sizeof aged - 1] = 0;
  aged.bytes[sizeof o] = 1;
  EXPECT_EQ(create(&o), STW_BAD_STRUCT_SIZE) << "a longer struct with a field that is set";
  o.struct_size = sizeof o;
  EXPECT_EQ(create(&o), STW_OK) << "memory after the struct is not read";
}

TEST(Options, Sizes) {
  const auto device = open_device();
  const auto model = make_model(tiny_gpt2);
  const auto plan = make_plan(model.get(), plan_options());
  TemporaryDirectory folder;
  const auto dataset = open_text(folder, text_of(1000));
  const std::string path = folder / "text.txt";

  check_sizes<stw_device_options>(
      "device", [](auto&) {},
      [](const stw_device_options* o) {
        stw_device* out = nullptr;
        const stw_status status = stw_device_open(&out, o, nullptr);
        EXPECT_EQ(out != nullptr, status == STW_OK);
        stw_device_close(out);
        return status;
      });
  check_sizes<stw_model_options>(
      "model", [](auto& o) { o.source = "nano"; },
      [](const stw_model_options* o) {
        stw_model* out = nullptr;
        const stw_status status = stw_model_create(&out, o, nullptr);
        EXPECT_EQ(out != nullptr, status == STW_OK);
        stw_model_destroy(out);
        return status;
      });
  check_sizes<stw_plan_options>(
      "plan", [](auto& o) { o = plan_options(); },
      [&](const stw_plan_options* o) {
        stw_plan* out = nullptr;
        const stw_status status = stw_plan_create(&out, model.get(), o, nullptr);
        EXPECT_EQ(out != nullptr, status == STW_OK);
        stw_plan_destroy(out);
        return status;
      });
  check_sizes<stw_dataset_options>(
      "dataset",
      [&](auto& o) {
        o.path = path.c_str();
        o.vocabulary = 256;
        o.sequence = 16;
      },
      [](const stw_dataset_options* o) {
        stw_dataset* out = nullptr;
        const stw_status status = stw_dataset_open(&out, o, nullptr);
        EXPECT_EQ(out != nullptr, status == STW_OK);
        stw_dataset_close(out);
        return status;
      });
  check_sizes<stw_trainer_options>(
      "trainer", [](auto&) {},
      [&](const stw_trainer_options* o) {
        stw_trainer* out = nullptr;
        const stw_status status = stw_trainer_create(&out, device.get(), model.get(), plan.get(), o, nullptr);
        EXPECT_EQ(out != nullptr, status == STW_OK);
        stw_trainer_destroy(out);
        return status;
      });

  World w(tiny_gpt2, plan_options());
  TokenBatch tokens(2, 4);
  check_sizes<stw_batch>(
      "batch", [&](auto& o) { o = *tokens.batch(); },
      [&](const stw_batch* o) { return stw_trainer_step(w.trainer.get(), o, nullptr); });
  check_sizes<stw_run_options>(
      "run", [](auto& o) { o.until = 5; },
      [&](const stw_run_options* o) { return stw_trainer_run(w.trainer.get(), dataset.get(), o, nullptr); });
  const int32_t prompt[] = {1, 2};
  int32_t out[2];
  check_sizes<stw_generate_options>(
      "generate",
      [&](auto& o) {
        o.prompt = prompt;
        o.prompt_count = 2;
        o.out = out;
        o.out_capacity = 2;
      },
      [&](const stw_generate_options* o) {
        uint64_t count = 0;
        return stw_trainer_generate(w.trainer.get(), o, &count, nullptr);
      });
  check_sizes<stw_pack_options>(
      "pack", [](auto&) {},
      [](const stw_pack_options* o) { return stw_pack(nullptr, nullptr, 0, o, nullptr, nullptr); });
}

// An older host has fewer fields. Fields that it does not have are defaults, whatever follows its struct in
// memory.
TEST(Options, OlderStructs) {
  const auto model = make_model(tiny_gpt2);
  auto o = plan_options();
  o.struct_size = offsetof(stw_plan_options, threads);
  std::memset(&o.threads, 0xff, sizeof o - o.struct_size);
  EXPECT_EQ(info_of(make_plan(model.get(), o).get()).fits, 1u);

  auto m = sized<stw_model_options>();
  m.source = "nano";
  m.struct_size = offsetof(stw_model_options, config_json);
  std::memset(&m.config_json, 0xff, sizeof m - m.struct_size);
  stw_model* out = nullptr;
  ASSERT_EQ(stw_model_create(&out, &m, nullptr), STW_OK);
  const Handle<stw_model> owner(out);
}

// Reserved fields must be 0. A later library may give them a meaning, and would then behave differently for
// the same program.
TEST(Options, ReservedFieldsMustBeZero) {
  auto m = sized<stw_model_options>();
  m.source = "nano";
  m.reserved = 1;
  stw_model* model = nullptr;
  EXPECT_EQ(stw_model_create(&model, &m, nullptr), STW_BAD_ARGUMENT);
  auto p = plan_options();
  stw_plan* plan = nullptr;
  const auto tiny = make_model(tiny_gpt2);
  ASSERT_EQ(stw_plan_create(&plan, tiny.get(), &p, nullptr), STW_OK);
  const Handle<stw_plan> planned(plan);
  const auto device = open_device();
  auto t = sized<stw_trainer_options>();
  t.reserved = 1;
  stw_trainer* trainer = nullptr;
  EXPECT_EQ(stw_trainer_create(&trainer, device.get(), tiny.get(), plan, &t, nullptr), STW_BAD_ARGUMENT);
}

// Results fill exactly the bytes of the host's struct.
template <class T, class Query>
void check_result(const char* name, const Query& query) {
  SCOPED_TRACE(name);
  Aged<T> full, cut;
  full.options.struct_size = sizeof(T);
  ASSERT_EQ(query(&full.options), STW_OK);
  EXPECT_EQ(full.options.struct_size, sizeof(T));
  const uint32_t half = sizeof(T) / 2;
  std::memset(cut.bytes, 0xab, sizeof cut.bytes);
  cut.options.struct_size = half;
  ASSERT_EQ(query(&cut.options), STW_OK);
  EXPECT_EQ(cut.options.struct_size, half);
  EXPECT_EQ(std::memcmp(cut.bytes + 4, full.bytes + 4, half - 4), 0);
  for (size_t i = half; i < sizeof cut.bytes; ++i) ASSERT_EQ(cut.bytes[i], 0xab) << i;
  cut.options.struct_size = 0;
  EXPECT_NE(query(&cut.options), STW_OK);
  cut.options.struct_size = sizeof cut;
  EXPECT_EQ(query(&cut.options), STW_OK) << "a longer struct";
  EXPECT_EQ(cut.options.struct_size, sizeof cut);
  for (size_t i = sizeof(T); i < sizeof cut.bytes; ++i) ASSERT_EQ(cut.bytes[i], 0) << i;
}

TEST(Options, Results) {
  World w(tiny_gpt2, plan_options());
  check_result<stw_model_info>("model", [&](auto* out) { return stw_model_query(w.model.get(), out); });
  check_result<stw_tensor_info>("tensor",
                                [&](auto* out) { return stw_model_tensor_at(w.model.get(), 1, out); });
  check_result<stw_plan_info>("plan", [&](auto* out) { return stw_plan_query(w.plan.get(), out); });
  check_result<stw_buffer_info>("buffer",
                                [&](auto* out) { return stw_plan_buffer_at(w.plan.get(), 0, out); });
  check_result<stw_progress>("progress",
                             [&](auto* out) { return stw_trainer_progress(w.trainer.get(), out); });
  TokenBatch tokens(1, 4);
  step(w.trainer.get(), tokens.batch());
  check_result<stw_step_result>("step",
                                [&](auto* out) { return stw_trainer_wait(w.trainer.get(), out, nullptr); });
  TemporaryDirectory folder;
  const auto dataset = open_text(folder, text_of(1000));
  const stw_buffer_lifetime lifetime{0, 1, 64};
  uint64_t offset = 0;
  check_result<stw_pack_result>(
      "pack", [&](auto* out) { return stw_pack(&offset, &lifetime, 1, nullptr, out, nullptr); });
  check_result<stw_dataset_info>("dataset", [&](auto* out) { return stw_dataset_query(dataset.get(), out); });

  auto device = sized<stw_device_info>();
  EXPECT_EQ(stw_device_at(0, &device, nullptr), STW_OK);
  EXPECT_EQ(device.backend, static_cast<uint32_t>(STW_BACKEND_CPU));
  EXPECT_GT(device.memory_total, 0u);
  EXPECT_EQ(stw_device_query(w.device.get(), &device), STW_OK);
  EXPECT_EQ(device.threads, 2u);
  EXPECT_EQ(stw_device_at(1, &device, nullptr), STW_BAD_ARGUMENT);
  auto holder = sized<stw_memory_holder>();
  EXPECT_EQ(stw_device_holder_at(w.device.get(), 0, &holder), STW_BAD_ARGUMENT)
      << "a CPU lists no holders of its memory";
}

// In every field that is not required, 0 means the default.
TEST(Options, ZeroesAreDefaults) {
  const auto device =
      make<stw_device>([](stw_device** out, stw_error* e) { return stw_device_open(out, nullptr, e); });
  const auto model = make_model(tiny_gpt2);
  auto plan_of = sized<stw_plan_options>();
  plan_of.global_batch = 1;
  stw_error error = sized<stw_error>();
  stw_plan* out = nullptr;
  const stw_status status = stw_plan_create(&out, model.get(), &plan_of, &error);
  const Handle<stw_plan> plan(out);
  // If no budget is given, it is this machine's memory.
  ASSERT_EQ(status, STW_OK) << error.message;
  auto machine = sized<stw_device_info>();
  ASSERT_EQ(stw_device_query(device.get(), &machine), STW_OK);
  EXPECT_GT(info_of(plan.get()).budget, 0u);
  EXPECT_LE(info_of(plan.get()).budget, machine.memory_total);
  uint64_t longest = 0;
  EXPECT_EQ(stw_plan_longest_sequence(model.get(), &plan_of, &longest, nullptr), STW_OK);
  EXPECT_EQ(longest, 16u);
  plan_of.memory_bytes = 1 << 28;
  const auto given = make_plan(model.get(), plan_of);
  EXPECT_EQ(info_of(given.get()).budget, uint64_t{1} << 28);
  EXPECT_NE(std::string(stw_plan_json(given.get())).find("\"source\": \"profile\""), std::string::npos)
      << "a budget replaces the machine's memory";
  EXPECT_EQ(info_of(given.get()).sequence, 16u) << "the model's positions";
  EXPECT_EQ(info_of(given.get()).precision, static_cast<uint32_t>(STW_PRECISION_FP32));
  const auto trainer_of = sized<stw_trainer_options>();
  const auto trainer = make<stw_trainer>([&](stw_trainer** t, stw_error* e) {
    return stw_trainer_create(t, device.get(), model.get(), given.get(), &trainer_of, e);
  });
  EXPECT_EQ(progress_of(trainer.get()).phase, static_cast<uint32_t>(STW_PHASE_IDLE));
}

TEST(Options, UnknownBitsOfMasksAreRefused) {
  World w(tiny_gpt2, plan_options());
  TemporaryDirectory folder;
  const auto dataset = open_text(folder, text_of(1000));
  auto m = sized<stw_model_options>();
  m.source = "nano";
  m.set_mask = 1u << 31;
  stw_model* model = nullptr;
  EXPECT_EQ(stw_model_create(&model, &m, nullptr), STW_BAD_ARGUMENT);
  auto p = plan_options();
  p.set_mask = 2;
  stw_plan* plan = nullptr;
  EXPECT_EQ(stw_plan_create(&plan, w.model.get(), &p, nullptr), STW_BAD_ARGUMENT);
  auto t = sized<stw_trainer_options>();
  t.set_mask = 32;
  stw_trainer* trainer = nullptr;
  EXPECT_EQ(stw_trainer_create(&trainer, w.device.get(), w.model.get(), w.plan.get(), &t, nullptr),
            STW_BAD_ARGUMENT);
  auto r = run_options(1);
  r.set_mask = 2;
  EXPECT_EQ(stw_trainer_run(w.trainer.get(), dataset.get(), &r, nullptr), STW_BAD_ARGUMENT);
}

// A non-zero value is never ignored: the mask bit is only for zeros.
TEST(Options, ValuesNeedNoBitButZerosDo) {
  TemporaryDirectory folder;
  const auto dataset = open_text(folder, text_of(1000));
  const auto trained = [&](uint32_t trainer_mask, float decay, float beta2, uint32_t run_mask,
                           double min_rate) {
    World w(tiny_gpt2, plan_options());
    auto t = sized<stw_trainer_options>();
    t.set_mask = trainer_mask;
    t.weight_decay = decay;
    t.beta2 = beta2;
    w.trainer = make<stw_trainer>([&](stw_trainer** out, stw_error* e) {
      return stw_trainer_create(out, w.device.get(), w.model.get(), w.plan.get(), &t, e);
    });
    auto r = run_options(5);
    r.set_mask = run_mask;
    r.min_rate = min_rate;
    stw_error error = sized<stw_error>();
    EXPECT_EQ(stw_trainer_run(w.trainer.get(), dataset.get(), &r, &error), STW_OK) << error.message;
    return values_of(w);
  };
  const auto unset = trained(0, 0, 0, 0, 0);
  const auto given = trained(STW_SET_WEIGHT_DECAY | STW_SET_BETA2, 0.5f, 0.5f, STW_SET_MIN_RATE, 1e-4);
  EXPECT_NE(unset, given);
  EXPECT_EQ(given, trained(0, 0.5f, 0.5f, 0, 1e-4));
  EXPECT_NE(unset, trained(STW_SET_WEIGHT_DECAY, 0, 0, 0, 0));
  EXPECT_NE(unset, trained(0, 0, 0, STW_SET_MIN_RATE, 0));
}

TEST(Options, NullEverywhere) {
  World w(tiny_gpt2, plan_options());
  TemporaryDirectory folder;
  const auto dataset = open_text(folder, text_of(1000));
  stw_device* device = nullptr;
  stw_model* model = nullptr;
  stw_plan* plan = nullptr;
  stw_dataset* data = nullptr;
  stw_trainer* trainer = nullptr;
  DLManagedTensorVersioned* view = nullptr;
  size_t index = 0;
  uint64_t count = 0;
  double loss = 0;
  auto model_of = sized<stw_model_options>();
  auto plan_of = plan_options();
  auto data_of = sized<stw_dataset_options>();
  auto run_of = run_options(1);
  auto generate_of = sized<stw_generate_options>();
  auto batch = sized<stw_batch>();
  stw_trainer* const t = w.trainer.get();

  const stw_status refused[] = {
      stw_device_at(0, nullptr, nullptr),
      stw_device_open(nullptr, nullptr, nullptr),
      stw_device_query(nullptr, nullptr),
      stw_device_query(w.device.get(), nullptr),
      stw_device_holder_at(nullptr, 0, nullptr),
      stw_device_holder_at(w.device.get(), 0, nullptr),
      stw_model_create(nullptr, nullptr, nullptr),
      stw_model_create(&model, nullptr, nullptr),
      stw_model_create(&model, &model_of, nullptr),
      stw_model_create(nullptr, &model_of, nullptr),
      stw_model_query(nullptr, nullptr),
      stw_model_query(w.model.get(), nullptr),
      stw_model_tensor_at(nullptr, 0, nullptr),
      stw_model_tensor_at(w.model.get(), 0, nullptr),
      stw_model_tensor_find(nullptr, nullptr, nullptr),
      stw_model_tensor_find(w.model.get(), nullptr, &index),
      stw_model_tensor_find(w.model.get(), "x", nullptr),
      stw_model_tensor_find(w.model.get(), "x", &index),
      stw_plan_create(nullptr, nullptr, nullptr, nullptr),
      stw_plan_create(&plan, nullptr, &plan_of, nullptr),
      stw_plan_create(&plan, w.model.get(), nullptr, nullptr),
      stw_plan_create(nullptr, w.model.get(), &plan_of, nullptr),
      stw_plan_query(nullptr, nullptr),
      stw_plan_query(w.plan.get(), nullptr),
      stw_plan_load(nullptr, nullptr, nullptr, 0, nullptr),
      stw_plan_load(&plan, w.model.get(), nullptr, 5, nullptr),
      stw_plan_load(&plan, nullptr, "{}", 2, nullptr),
      stw_plan_load(nullptr, w.model.get(), "{}", 2, nullptr),
      stw_plan_verify(nullptr, nullptr),
      stw_plan_buffer_at(nullptr, 0, nullptr),
      stw_plan_buffer_at(w.plan.get(), 0, nullptr),
      stw_dataset_open(nullptr, nullptr, nullptr),
      stw_dataset_open(&data, nullptr, nullptr),
      stw_dataset_open(&data, &data_of, nullptr),
      stw_dataset_query(nullptr, nullptr),
      stw_dataset_query(dataset.get(), nullptr),
      stw_trainer_create(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr),
      stw_trainer_create(&trainer, nullptr, w.model.get(), w.plan.get(), nullptr, nullptr),
      stw_trainer_create(&trainer, w.device.get(), nullptr, w.plan.get(), nullptr, nullptr),
      stw_trainer_create(&trainer, w.device.get(), w.model.get(), nullptr, nullptr, nullptr),
      stw_trainer_create(nullptr, w.device.get(), w.model.get(), w.plan.get(), nullptr, nullptr),
      stw_trainer_step(nullptr, nullptr, nullptr),
      stw_trainer_step(t, nullptr, nullptr),
      stw_trainer_step(t, &batch, nullptr),
      stw_trainer_step(nullptr, &batch, nullptr),
      stw_trainer_wait(nullptr, nullptr, nullptr),
      stw_trainer_wait(t, nullptr, nullptr),
      stw_trainer_run(nullptr, nullptr, nullptr, nullptr),
      stw_trainer_run(t, nullptr, &run_of, nullptr),
      stw_trainer_run(t, dataset.get(), nullptr, nullptr),
      stw_trainer_run(nullptr, dataset.get(), &run_of, nullptr),
      stw_trainer_evaluate(nullptr, nullptr, 1, nullptr, nullptr),
      stw_trainer_evaluate(t, nullptr, 1, &loss, nullptr),
      stw_trainer_evaluate(t, dataset.get(), 1, nullptr, nullptr),
      stw_trainer_evaluate(t, dataset.get(), 0, &loss, nullptr),
      stw_trainer_generate(nullptr, nullptr, nullptr, nullptr),
      stw_trainer_generate(t, nullptr, &count, nullptr),
      stw_trainer_generate(t, &generate_of, nullptr, nullptr),
      stw_trainer_generate(t, &generate_of, &count, nullptr),
      stw_trainer_progress(nullptr, nullptr),
      stw_trainer_progress(t, nullptr),
      stw_trainer_export_tensor(nullptr, 0, 0, nullptr, nullptr),
      stw_trainer_export_tensor(t, 0, 0, nullptr, nullptr),
      stw_trainer_export_tensor(t, 9999, 0, &view, nullptr),
      stw_trainer_export_tensor(t, 0, 9999, &view, nullptr),
      stw_trainer_import_tensor(nullptr, 0, nullptr, nullptr),
      stw_trainer_import_tensor(t, 0, nullptr, nullptr),
      stw_trainer_save(nullptr, nullptr, nullptr),
      stw_trainer_save(t, nullptr, nullptr),
      stw_trainer_restore(nullptr, nullptr, nullptr),
      stw_trainer_restore(t, nullptr, nullptr),
      stw_trainer_export_model(nullptr, nullptr, nullptr),
      stw_trainer_export_model(t, nullptr, nullptr)};
  for (size_t i = 0; i < std::size(refused); ++i) EXPECT_EQ(refused[i] / 1000, 1) << "call " << i;
  for (const void* out : {static_cast<void*>(device), static_cast<void*>(model), static_cast<void*>(plan),
                          static_cast<void*>(data), static_cast<void*>(trainer), static_cast<void*>(view)})
    EXPECT_EQ(out, nullptr);

  stw_device_close(nullptr);
  stw_model_destroy(nullptr);
  stw_plan_destroy(nullptr);
  stw_dataset_close(nullptr);
  stw_trainer_destroy(nullptr);
  stw_trainer_cancel(nullptr);
  EXPECT_EQ(stw_trainer_stream(nullptr), nullptr);
  EXPECT_EQ(stw_trainer_stream(t), nullptr);
  EXPECT_EQ(stw_model_tensor_count(nullptr), 0u);
  EXPECT_EQ(stw_plan_buffer_count(nullptr), 0u);
  EXPECT_EQ(stw_plan_json(nullptr), nullptr);
  EXPECT_EQ(stw_plan_report(nullptr), nullptr);
}

// The index after the last one of a list is refused too.
TEST(Options, TheIndexPastTheEndIsRefused) {
  const World w(tiny_gpt2, plan_options());
  const size_t count = stw_model_tensor_count(w.model.get());
  auto tensor = sized<stw_tensor_info>();
  EXPECT_EQ(stw_model_tensor_at(w.model.get(), count - 1, &tensor), STW_OK);
  EXPECT_EQ(stw_model_tensor_at(w.model.get(), count, &tensor), STW_BAD_ARGUMENT);
  DLManagedTensorVersioned* view = nullptr;
  EXPECT_EQ(stw_trainer_export_tensor(w.trainer.get(), count, STW_TENSOR_PARAMETER, &view, nullptr),
            STW_BAD_ARGUMENT);
  EXPECT_EQ(stw_trainer_export_tensor(w.trainer.get(), 0, STW_TENSOR_SECOND_MOMENT + 1, &view, nullptr),
            STW_BAD_ARGUMENT);
  EXPECT_EQ(view, nullptr);
  EXPECT_EQ(
      stw_trainer_import_tensor(w.trainer.get(), count, view_of(w.trainer.get(), count - 1).get(), nullptr),
      STW_BAD_ARGUMENT);
}

}  // namespace
}  // namespace stw::api_test
