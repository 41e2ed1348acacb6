// Adapters through the C API: their settings, training and writing.
#include "tests/api/harness.h"

namespace stw::api_test {
namespace {

stw_model_options tiny_options() {
  auto o = sized<stw_model_options>();
  o.config_json = tiny_llama.data();
  o.config_json_size = tiny_llama.size();
  return o;
}

Handle<stw_model> model_with(const stw_model_options& o) {
  return make<stw_model>([&](stw_model** out, stw_error* e) { return stw_model_create(out, &o, e); });
}

stw_model_info about(const stw_model* model) {
  auto info = sized<stw_model_info>();
  EXPECT_EQ(stw_model_query(model, &info), STW_OK);
  return info;
}

TEST(Adapters, AreParametersAndAloneTrained) {
  auto o = tiny_options();
  const stw_model_info plain = about(model_with(o).get());
  EXPECT_EQ(plain.adapter_rank, 0u);
  o.adapter_rank = 4;
  o.adapter_targets = "q_proj,v_proj";
  const auto model = model_with(o);
  const stw_model_info info = about(model.get());
  EXPECT_EQ(info.adapter_rank, 4u);
  EXPECT_EQ(info.trainable, 3u * 4 * (32 + 32 + 32 + 16));
  EXPECT_EQ(info.parameters, plain.parameters + info.trainable);
  size_t index = 0;
  EXPECT_EQ(stw_model_tensor_find(model.get(), "model.layers.2.self_attn.v_proj.lora_B.weight", &index),
            STW_OK);
  auto tensor = sized<stw_tensor_info>();
  EXPECT_EQ(stw_model_tensor_at(model.get(), index, &tensor), STW_OK);
  EXPECT_EQ(tensor.shape[0], 16);
  EXPECT_EQ(tensor.shape[1], 4);
}

TEST(Adapters, BadSettingsAreRefused) {
  const auto refused = [](const char* part, const auto& change) {
    auto o = tiny_options();
    o.adapter_rank = 4;
    change(o);
    stw_model* model = nullptr;
    stw_error error = sized<stw_error>();
    EXPECT_EQ(stw_model_create(&model, &o, &error), STW_BAD_ARGUMENT) << part;
    EXPECT_EQ(model, nullptr);
    EXPECT_NE(std::string(error.message).find(part), std::string::npos) << error.message;
  };
  refused("rank", [](auto& o) { o.adapter_rank = 5000; });
  refused("without an adapter_rank", [](auto& o) { o.adapter_rank = 0, o.adapter_alpha = 2; });
  refused("without an adapter_rank", [](auto& o) { o.adapter_rank = 0, o.adapter_targets = "q_proj"; });
  refused("alpha", [](auto& o) { o.adapter_alpha = -1; });
  refused("alpha", [](auto& o) { o.adapter_alpha = NAN; });
  refused("dropout", [](auto& o) { o.adapter_dropout = 1; });
  refused("adapter_flags", [](auto& o) { o.adapter_flags = 2; });
  refused("adapter is empty", [](auto& o) { o.adapter = ""; });
  refused("\"nothing\"; there are down_proj, ", [](auto& o) { o.adapter_targets = "q_proj,nothing"; });
  refused("with a comma between", [](auto& o) { o.adapter_targets = "q_proj,"; });
  refused("with a comma between", [](auto& o) { o.adapter_targets = ""; });
}

// Quantized base matrices take less memory, and are no longer arrays of numbers. Without adapters nothing can
// be quantized.
TEST(Adapters, WorkOverQuantizedMatrices) {
  auto o = tiny_options();
  o.adapter_rank = 4;
  const auto model = model_with(o);
  auto p = plan_options();
  const auto bytes_of = [&](uint32_t quantize) {
    p.quantize = quantize;
    const auto plan = make_plan(model.get(), p);
    auto info = sized<stw_plan_info>();
    EXPECT_EQ(stw_plan_query(plan.get(), &info), STW_OK);
    return info.parameters;
  };
  const uint64_t plain = bytes_of(STW_QUANTIZE_NONE), int8 = bytes_of(STW_QUANTIZE_INT8),
                 nf4 = bytes_of(STW_QUANTIZE_NF4);
  EXPECT_LT(int8, plain * 2 / 3);
  EXPECT_LT(nf4, int8 - 10000);
  p.quantize_embeddings = STW_QUANTIZE_INT8;
  EXPECT_LT(bytes_of(STW_QUANTIZE_NF4), nf4 - 5000);
  const auto device = open_device();
  const auto plan = make_plan(model.get(), p);
  const auto trainer = make<stw_trainer>([&](stw_trainer** out, stw_error* e) {
    return stw_trainer_create(out, device.get(), model.get(), plan.get(), nullptr, e);
  });
  stw_error error = sized<stw_error>();
  size_t matrix = 0;
  ASSERT_EQ(stw_model_tensor_find(model.get(), "model.layers.1.mlp.up_proj.weight", &matrix), STW_OK);
  DLManagedTensorVersioned* view = nullptr;
  EXPECT_EQ(stw_trainer_export_tensor(trainer.get(), matrix, STW_TENSOR_PARAMETER, &view, &error),
            STW_UNSUPPORTED);
  EXPECT_EQ(view, nullptr);
  EXPECT_NE(std::string(error.message).find("up_proj.weight"), std::string::npos) << error.message;

  p.quantize = 4;
  stw_plan* none = nullptr;
  EXPECT_EQ(stw_plan_create(&none, model.get(), &p, &error), STW_BAD_ARGUMENT);
  p.quantize = STW_QUANTIZE_NONE, p.quantize_embeddings = STW_QUANTIZE_NF4;
  EXPECT_EQ(stw_plan_create(&none, model.get(), &p, &error), STW_BAD_ARGUMENT);
  EXPECT_NE(std::string(error.message).find("int8 or not at all"), std::string::npos) << error.message;
  p.quantize_embeddings = STW_QUANTIZE_INT8;
  EXPECT_EQ(stw_plan_create(&none, model_with(tiny_options()).get(), &p, &error), STW_BAD_ARGUMENT);
  p.quantize = STW_QUANTIZE_INT8;
  EXPECT_EQ(stw_plan_create(&none, model_with(tiny_options()).get(), &p, &error), STW_BAD_ARGUMENT);
  EXPECT_NE(std::string(error.message).find("low-rank adapters"), std::string::npos) << error.message;
  uint64_t sequence = 0;
  EXPECT_EQ(stw_plan_longest_sequence(model_with(tiny_options()).get(), &p, &sequence, &error),
            STW_BAD_ARGUMENT);
  EXPECT_EQ(none, nullptr);
}

// Reads the base model from its own path and adapters from their folder, and merges them into a third folder.
TEST(Adapters, AreSavedReadAndMergedInFolders) {
  const TemporaryDirectory folder;
  const std::string base = folder / "base", adapters = folder / "adapters", merged = folder / "merged";
  stw_error error = sized<stw_error>();
  {
    const World world(tiny_llama, plan_options());
    must(stw_trainer_export_model(world.trainer.get(), base.c_str(), &error), error);
  }
  auto o = sized<stw_model_options>();
  o.source = base.c_str();
  o.adapter_rank = 4;
  const auto fresh = model_with(o);
  const auto device = open_device();
  const auto plan = make_plan(fresh.get(), plan_options());
  const auto trainer = make<stw_trainer>([&](stw_trainer** out, stw_error* e) {
    return stw_trainer_create(out, device.get(), fresh.get(), plan.get(), nullptr, e);
  });
  const auto data = open_text(folder, text_of(2000));
  run(trainer.get(), data.get(), 4);
  double loss = 0, again = 0;
  must(stw_trainer_evaluate(trainer.get(), data.get(), 2, &loss, &error), error);
  must(stw_trainer_export_model(trainer.get(), adapters.c_str(), &error), error);

  auto by_itself = sized<stw_model_options>();
  by_itself.source = adapters.c_str();
  const auto trained = model_with(by_itself);
  EXPECT_EQ(about(trained.get()).has_weights, 1u);
  const auto other = make<stw_trainer>([&](stw_trainer** out, stw_error* e) {
    return stw_trainer_create(out, device.get(), trained.get(), plan.get(), nullptr, e);
  });
  must(stw_trainer_evaluate(other.get(), data.get(), 2, &again, &error), error);
  EXPECT_EQ(again, loss);

  must(stw_model_export(trained.get(), merged.c_str(), &error), error);
  const World whole(merged, plan_options());
  must(stw_trainer_evaluate(whole.trainer.get(), data.get(), 2, &again, &error), error);
  EXPECT_NEAR(again, loss, 1e-5);
  EXPECT_EQ(stw_model_export(trained.get(), base.c_str(), &error), STW_BAD_ARGUMENT);
  EXPECT_NE(std::string(error.message).find("own weights"), std::string::npos) << error.message;
  EXPECT_EQ(stw_model_export(nullptr, base.c_str(), &error), STW_BAD_ARGUMENT);
  EXPECT_EQ(stw_model_export(trained.get(), "/proc/nowhere", &error), STW_IO_ERROR);
}

}  // namespace
}  // namespace stw::api_test
