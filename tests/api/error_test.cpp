// Errors: the messages of failed calls, and their outputs, which are NULL.
#include <algorithm>
#include <cerrno>

#include "tests/api/harness.h"

namespace stw::api_test {
namespace {

TEST(Library, NamesAndVersions) {
  EXPECT_EQ(stw_version(),
            static_cast<uint32_t>(STW_VERSION_MAJOR * 10000 + STW_VERSION_MINOR * 100 + STW_VERSION_PATCH));
  EXPECT_NE(std::string(stw_build_info()).find("stowage"), std::string::npos);
  EXPECT_STREQ(stw_status_name(STW_OK), "STW_OK");
  EXPECT_STREQ(stw_status_name(STW_OVER_BUDGET), "STW_OVER_BUDGET");
  EXPECT_STREQ(stw_status_name(-5), "STW_UNKNOWN");
  size_t presets = 0;
  bool nano = false;
  for (; const char* name = stw_model_preset_at(presets); ++presets) nano |= std::string(name) == "nano";
  EXPECT_TRUE(nano);
  EXPECT_EQ(stw_model_preset_at(presets + 1000), nullptr);
}

// Creates a model, which must fail. The message must be one line that names the input. The output, set to
// garbage before, must be NULL afterwards.
stw_error failed_model(const stw_model_options& o, stw_status expected) {
  stw_error error = sized<stw_error>();
  stw_model* model = reinterpret_cast<stw_model*>(16);
  EXPECT_EQ(stw_model_create(&model, &o, &error), expected) << error.message;
  EXPECT_EQ(model, nullptr);
  EXPECT_EQ(error.status, expected);
  EXPECT_NE(error.message[0], 0);
  EXPECT_EQ(std::string(error.message).find('\n'), std::string::npos);
  return error;
}

TEST(Library, GivesTheConfigOfAModel) {
  auto o = sized<stw_model_options>();
  const char* labels[] = {"no", "yes"};
  o.source = "nano", o.label_names = labels, o.label_count = 2;
  const auto create = [&](stw_model** out, stw_error* error) { return stw_model_create(out, &o, error); };
  const auto given = make<stw_model>(create);
  const std::string text = stw_model_config(given.get());
  EXPECT_NE(text.find("\"1\": \"yes\""), std::string::npos) << text;
  o = sized<stw_model_options>();
  o.config_json = text.data(), o.config_json_size = text.size();
  const auto again = make<stw_model>(create);
  EXPECT_EQ(stw_model_config(again.get()), text);
  EXPECT_STREQ(stw_model_label_at(again.get(), 1), "yes");
  EXPECT_EQ(stw_model_config(nullptr), nullptr);
}

TEST(Errors, OfModels) {
  auto o = sized<stw_model_options>();
  o.source = "/nonexistent/folder";
  const stw_error missing = failed_model(o, STW_IO_ERROR);
  EXPECT_NE(std::string(missing.message).find("/nonexistent/folder"), std::string::npos) << missing.message;
  const std::string unknown = R"({"model_type":"mamba","architectures":["MambaForCausalLM"]})";
  o = sized<stw_model_options>();
  o.config_json = unknown.data();
  o.config_json_size = unknown.size();
  EXPECT_NE(std::string(failed_model(o, STW_UNSUPPORTED).message).find("amba"), std::string::npos);
  for (const float rate : {-0.1f, 1.0f, NAN}) {
    o = sized<stw_model_options>();
    o.source = "nano";
    o.set_mask = STW_SET_DROPOUT;
    o.dropout = rate;
    failed_model(o, STW_BAD_ARGUMENT);
  }
  o = sized<stw_model_options>();
  o.source = "nano";
  o.config_json = "{}";
  o.config_json_size = 2;
  failed_model(o, STW_BAD_ARGUMENT);
  o = sized<stw_model_options>();
  o.config_json = "{}";
  o.config_json_size = SIZE_MAX;
  EXPECT_NE(std::string(failed_model(o, STW_BAD_ARGUMENT).message).find("config_json_size"),
            std::string::npos);
  for (const char* text : {"", "{", "[]", "null", "{\"model_type\":7}"}) {
    o = sized<stw_model_options>();
    o.config_json = text;
    o.config_json_size = std::strlen(text);
    stw_model* model = nullptr;
    EXPECT_NE(stw_model_create(&model, &o, nullptr), STW_OK) << text;
    EXPECT_EQ(model, nullptr);
  }
}

TEST(Errors, OfDatasets) {
  TemporaryDirectory folder;
  put_file(folder / "empty.txt", "");
  put_file(folder / "short.txt", "0123456789");
  put_file(folder / "ids.bin", std::string("\1\0\2\0\377\177", 6) + std::string(200, 0));
  auto o = sized<stw_dataset_options>();
  o.vocabulary = 256;
  o.sequence = 16;
  for (const auto& [name, expected] : {std::pair{"none.txt", STW_IO_ERROR},
                                       {"empty.txt", STW_CORRUPT},
                                       {"short.txt", STW_CORRUPT},
                                       {"ids.bin", STW_CORRUPT}}) {
    const std::string path = folder / name;
    o.path = path.c_str();
    stw_error error = sized<stw_error>();
    stw_dataset* out = reinterpret_cast<stw_dataset*>(16);
    EXPECT_EQ(stw_dataset_open(&out, &o, &error), expected) << error.message;
    EXPECT_EQ(out, nullptr);
    EXPECT_NE(std::string(error.message).find(path), std::string::npos) << error.message;
  }
}

// A shorter stw_error gets a shorter message. One without room for a message is not written. Success clears
// it.
TEST(Errors, StructSizes) {
  auto o = sized<stw_model_options>();
  o.source = "/nonexistent/folder";
  stw_model* model = nullptr;
  stw_error error;
  std::memset(&error, 0x55, sizeof error);
  error.struct_size = offsetof(stw_error, message) + 8;
  EXPECT_EQ(stw_model_create(&model, &o, &error), STW_IO_ERROR);
  EXPECT_EQ(error.status, STW_IO_ERROR);
  EXPECT_EQ(error.message[7], 0);
  EXPECT_EQ(error.message[8], 0x55);
  for (const size_t size : {size_t{0}, offsetof(stw_error, message)}) {
    std::memset(&error, 0x55, sizeof error);
    error.struct_size = static_cast<uint32_t>(size);
    const stw_error before = error;
    EXPECT_EQ(stw_model_create(&model, &o, &error), STW_IO_ERROR);
    EXPECT_EQ(std::memcmp(&error, &before, sizeof error), 0);
  }
  struct {
    stw_error error;
    unsigned char newer[16];
  } longer;
  std::memset(&longer, 0x55, sizeof longer);
  longer.error.struct_size = sizeof longer;
  EXPECT_EQ(stw_model_create(&model, &o, &longer.error), STW_IO_ERROR);
  for (const unsigned char byte : longer.newer) EXPECT_EQ(byte, 0);
  error = sized<stw_error>();
  auto data = sized<stw_dataset_options>();
  data.path = "/nonexistent/file";
  data.vocabulary = 256;
  data.sequence = 16;
  stw_dataset* dataset = nullptr;
  EXPECT_EQ(stw_dataset_open(&dataset, &data, &error), STW_IO_ERROR);
  EXPECT_EQ(error.native_code, ENOENT);
  o.source = "nano";
  EXPECT_EQ(stw_model_create(&model, &o, &error), STW_OK);
  const Handle<stw_model> owner(model);
  EXPECT_EQ(error.status, STW_OK);
  EXPECT_EQ(error.message[0], 0);
  // A message longer than the struct is cut, and does not overrun it.
  const std::string long_name(2000, 'x');
  o.source = long_name.c_str();
  EXPECT_NE(stw_model_create(&model, &o, &error), STW_OK);
  EXPECT_EQ(std::count(std::begin(error.message), std::end(error.message), 0) > 0, true);
}

// A cut message is valid UTF-8, however short it is.
TEST(Errors, AreCutBetweenCharacters) {
  std::string name = "/";
  for (int i = 0; i < 100; ++i) name += "\u00e9\u20ac\U0001f600";  // characters of 2, 3 and 4 bytes
  auto o = sized<stw_model_options>();
  o.source = name.c_str();
  for (size_t room = 1; room <= sizeof(stw_error::message); ++room) {
    stw_error error = sized<stw_error>();
    error.struct_size = static_cast<uint32_t>(offsetof(stw_error, message) + room);
    stw_model* model = nullptr;
    EXPECT_EQ(stw_model_create(&model, &o, &error), STW_IO_ERROR);
    const std::string got = error.message;
    EXPECT_LT(got.size(), room);
    EXPECT_GE(got.size() + 4, room);
    EXPECT_EQ(name.compare(0, got.size(), got), 0);
    EXPECT_NE(name[got.size()] & 0xC0, 0x80) << room;
  }
}

// A message is one line of valid UTF-8 whatever bytes paths and files contain, as hosts print or decode it.
TEST(Errors, AreOneLineOfUtf8) {
  auto o = sized<stw_model_options>();
  o.source = "/no\nsuch\t\x1b[31m\x7f\xc2\x80\xc2\x9b\xc2\xa0\xff\xc3\u00e9";
  const std::string path = failed_model(o, STW_IO_ERROR).message,
                    cleaned = "/no such  [31m   \u00a0\ufffd\ufffd\u00e9";
  EXPECT_EQ(path.substr(0, cleaned.size()), cleaned);
  const std::string config = R"({"model_type": "two\nlines\u0000"})";
  o = sized<stw_model_options>();
  o.config_json = config.data();
  o.config_json_size = config.size();
  EXPECT_NE(std::string(failed_model(o, STW_UNSUPPORTED).message).find("two lines"), std::string::npos);
}

TEST(Errors, OfPlans) {
  const auto model = make_model(tiny_gpt2);
  std::string message;
  const auto fails = [&](const std::function<void(stw_plan_options&)>& change) {
    auto o = plan_options();
    change(o);
    stw_error error = sized<stw_error>();
    stw_plan* plan = reinterpret_cast<stw_plan*>(16);
    const stw_status status = stw_plan_create(&plan, model.get(), &o, &error);
    EXPECT_EQ(plan, nullptr);
    EXPECT_NE(error.message[0], 0);
    message = error.message;
    return status;
  };
  EXPECT_EQ(fails([](auto& o) { o.global_batch = uint64_t{1} << 31; }), STW_BAD_ARGUMENT);
  EXPECT_EQ(message, "plan: global_batch is 2147483648, expected at most 2147483647");
  EXPECT_EQ(fails([](auto& o) { o.global_batch = 0; }), STW_BAD_ARGUMENT);
  EXPECT_EQ(fails([](auto& o) { o.global_batch = UINT64_MAX; }), STW_BAD_ARGUMENT);
  EXPECT_EQ(fails([](auto& o) { o.sequence = 17; }), STW_UNSUPPORTED_SHAPE);
  EXPECT_EQ(fails([](auto& o) { o.sequence = UINT64_MAX; }) / 1000 * 1000 <= STW_UNSUPPORTED, true);
  EXPECT_EQ(fails([](auto& o) { o.micro_batch = 5; }), STW_BAD_ARGUMENT);
  EXPECT_EQ(fails([](auto& o) { o.state_bits = 16; }), STW_BAD_ARGUMENT);
  EXPECT_EQ(fails([](auto& o) { o.precision = 9; }), STW_UNSUPPORTED);
  EXPECT_EQ(fails([](auto& o) { o.optimizer = 9; }), STW_UNSUPPORTED);
  EXPECT_EQ(fails([](auto& o) { o.recompute = 9; }), STW_BAD_ARGUMENT);
  EXPECT_EQ(fails([](auto& o) { o.threads = 1u << 30; }), STW_BAD_ARGUMENT);
  EXPECT_EQ(fails([](auto& o) { o.device = "abacus"; }), STW_BAD_ARGUMENT);
}

// Outputs that a host may destroy or use afterwards are NULL, not their earlier values.
TEST(Errors, OutputsAreNullWhateverIsMissing) {
  World w(tiny_gpt2, plan_options());
  const auto is_null = [](const char* name, auto* garbage, const auto& create) {
    auto* out = reinterpret_cast<decltype(garbage)>(16);
    EXPECT_EQ(create(&out), STW_BAD_ARGUMENT) << name;
    EXPECT_EQ(out, nullptr) << name;
  };
  stw_device* const device = nullptr;
  stw_model* const model = nullptr;
  stw_plan* const plan = nullptr;
  stw_dataset* const dataset = nullptr;
  stw_trainer* const trainer = nullptr;
  DLManagedTensorVersioned* const tensor = nullptr;
  const auto o = plan_options();
  auto unknown = sized<stw_device_options>();
  unknown.backend = 9;
  is_null("device", device, [&](auto* out) { return stw_device_open(out, &unknown, nullptr); });
  is_null("model", model, [&](auto* out) { return stw_model_create(out, nullptr, nullptr); });
  is_null("plan without a model", plan,
          [&](auto* out) { return stw_plan_create(out, nullptr, &o, nullptr); });
  is_null("plan without options", plan,
          [&](auto* out) { return stw_plan_create(out, w.model.get(), nullptr, nullptr); });
  is_null("loaded plan without a model", plan,
          [&](auto* out) { return stw_plan_load(out, nullptr, "{}", 2, nullptr); });
  is_null("loaded plan without text", plan,
          [&](auto* out) { return stw_plan_load(out, w.model.get(), nullptr, 0, nullptr); });
  is_null("dataset", dataset, [&](auto* out) { return stw_dataset_open(out, nullptr, nullptr); });
  is_null("no device", trainer, [&](auto* out) {
    return stw_trainer_create(out, nullptr, w.model.get(), w.plan.get(), nullptr, nullptr);
  });
  is_null("no model", trainer, [&](auto* out) {
    return stw_trainer_create(out, w.device.get(), nullptr, w.plan.get(), nullptr, nullptr);
  });
  is_null("no plan", trainer, [&](auto* out) {
    return stw_trainer_create(out, w.device.get(), w.model.get(), nullptr, nullptr, nullptr);
  });
  is_null("replan", plan, [&](auto* out) { return stw_trainer_replan(nullptr, 1, out, nullptr); });
  is_null("tensor", tensor, [&](auto* out) {
    return stw_trainer_export_tensor(nullptr, 0, STW_TENSOR_PARAMETER, out, nullptr);
  });
}

TEST(Errors, OfTrainers) {
  World w(tiny_gpt2, plan_options());
  const auto fails = [&](const stw_model* model, const stw_plan* plan, const stw_trainer_options* o) {
    stw_error error = sized<stw_error>();
    stw_trainer* trainer = reinterpret_cast<stw_trainer*>(16);
    const stw_status status = stw_trainer_create(&trainer, w.device.get(), model, plan, o, &error);
    EXPECT_EQ(trainer, nullptr);
    EXPECT_NE(error.message[0], 0);
    return status;
  };
  EXPECT_EQ(fails(make_model(tiny_llama).get(), w.plan.get(), nullptr), STW_BAD_STATE);
  auto of_gpu = plan_options();
  of_gpu.device = "rtx4090";
  of_gpu.memory_bytes = 0;
  EXPECT_EQ(fails(w.model.get(), make_plan(w.model.get(), of_gpu).get(), nullptr), STW_BAD_STATE);
  for (const uint32_t bit : {STW_SET_BETA1, STW_SET_BETA2}) {
    auto o = sized<stw_trainer_options>();
    o.set_mask = bit;
    o.beta1 = o.beta2 = 1;
    EXPECT_EQ(fails(w.model.get(), w.plan.get(), &o), STW_BAD_ARGUMENT);
    o.beta1 = o.beta2 = NAN;
    EXPECT_EQ(fails(w.model.get(), w.plan.get(), &o), STW_BAD_ARGUMENT);
  }
  auto o = sized<stw_trainer_options>();
  o.epsilon = -1;
  EXPECT_EQ(fails(w.model.get(), w.plan.get(), &o), STW_BAD_ARGUMENT);
  stw_error error = sized<stw_error>();
  auto result = sized<stw_step_result>();
  EXPECT_EQ(stw_trainer_wait(w.trainer.get(), &result, &error), STW_BAD_STATE);
  EXPECT_EQ(stw_trainer_save(w.trainer.get(), "/nonexistent/folder/file", &error), STW_IO_ERROR);
  EXPECT_EQ(stw_trainer_export_model(w.trainer.get(), "/proc/nothing", &error), STW_IO_ERROR);
  EXPECT_EQ(stw_trainer_restore(w.trainer.get(), "/nonexistent/file", &error), STW_IO_ERROR);
  EXPECT_EQ(progress_of(w.trainer.get()).phase, static_cast<uint32_t>(STW_PHASE_IDLE));
}

}  // namespace
}  // namespace stw::api_test
