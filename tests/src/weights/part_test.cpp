// A language model inside a model for images and text: reading its folder, names of tensors, and writing.
#include "planner/plan/plan_file.h"
#include "src/models/file_names.h"
#include "src/models/heads/labels.h"
#include "src/weights/adapter_files.h"
#include "src/weights/merge.h"
#include "tests/src/models/golden.h"
#include "tests/src/small_models.h"
#include "tests/src/temporary_directory.h"

namespace stw::part_test {
namespace {

using namespace testing_tools;

ModelSource of_folder(const std::string& folder) {
  ModelSource source;
  source.source = folder;
  return source;
}

std::vector<float> values_of(const Model& model, const std::string& name) {
  for (int t : model.parameters()) {
    const Tensor& tensor = model.graph().at(t);
    if (tensor.name != name) continue;
    std::vector<float> values(static_cast<size_t>(tensor.shape.elements()));
    EXPECT_TRUE(model.read(tensor, 0, values.size(), values.data()));
    return values;
  }
  ADD_FAILURE() << "no " << name;
  return {};
}

std::string text_of(const std::string& path) {
  auto text = read_text(path, 1 << 20);
  EXPECT_TRUE(text);
  return text ? *text : "";
}

// Copies a file with other names of the same tensors.
void rename(const std::string& from, const std::string& to,
            const std::function<std::string(const std::string&)>& named) {
  auto reader = SafetensorsReader::open(from);
  ASSERT_TRUE(reader);
  std::vector<SafetensorsEntry> entries;
  for (const SafetensorsInfo& info : reader->tensors())
    entries.push_back({named(info.name), *info.dtype, info.shape});
  auto writer = SafetensorsWriter::create(to, entries, {});
  ASSERT_TRUE(writer);
  for (const SafetensorsInfo& info : reader->tensors()) {
    std::vector<std::byte> bytes(info.bytes);
    ASSERT_TRUE(reader->read(info, 0, bytes));
    ASSERT_TRUE(writer->write(bytes));
  }
  ASSERT_TRUE(writer->finish());
}

// Published files have "language_model.model.…", files saved since then "model.language_model.…", and the
// text part alone has neither.
TEST(Part, NamesInFiles) {
  ModelConfig config(*find_architecture("gemma3_text"));
  EXPECT_EQ(names_in_files(config, "model.norm.weight"),
            (std::vector<std::string>{"model.norm.weight", "norm.weight"}));
  EXPECT_EQ(name_for_adapters(config, "model.layers.0.q_proj"), "model.layers.0.q_proj");
  config.is_part = true;
  EXPECT_EQ(names_in_files(config, "model.norm.weight"),
            (std::vector<std::string>{"language_model.model.norm.weight", "model.language_model.norm.weight",
                                      "model.norm.weight", "norm.weight"}));
  EXPECT_EQ(names_in_files(config, "score.weight"),
            (std::vector<std::string>{"language_model.score.weight", "score.weight"}));
  EXPECT_EQ(name_for_adapters(config, "model.layers.0.q_proj"), "model.language_model.layers.0.q_proj");
  for (const char* name : {"language_model.model.layers.0.q_proj", "model.language_model.layers.0.q_proj",
                           "model.layers.0.q_proj"})
    EXPECT_EQ(name_in_model(name), "model.layers.0.q_proj");
}

TEST(Part, TensorsAreFoundUnderEveryName) {
  const auto whole = open_model(of_folder(folder_of("gemma3")));
  ASSERT_TRUE(whole && whole->has_weights());
  for (const char* prefix : {"model.language_model.", "model."}) {
    TemporaryDirectory folder;
    put_file(folder / "config.json", text_of(folder_of("gemma3") + "/config.json"));
    rename(folder_of("gemma3") + "/model.safetensors", folder / "model.safetensors",
           [&](const std::string& name) {
             const std::string in_files = "language_model.model.";
             return name.starts_with(in_files) ? prefix + name.substr(in_files.size()) : name;
           });
    const auto other = open_model(of_folder(folder.path()));
    ASSERT_TRUE(other);
    for (int t : whole->parameters())
      EXPECT_EQ(values_of(*whole, whole->graph().at(t).name), values_of(*other, whole->graph().at(t).name));
  }
  // Weights for images alone are no language model.
  TemporaryDirectory folder;
  put_file(folder / "config.json", text_of(folder_of("gemma3") + "/config.json"));
  rename(folder_of("gemma3") + "/model.safetensors", folder / "model.safetensors",
         [](const std::string& name) { return "other." + name; });
  const auto none = Model::open(of_folder(folder.path()));
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("tensor model.embed_tokens.weight is missing"), std::string::npos)
      << none.error().message;
}

// A model trained in full is written as a text-only model.
TEST(Part, IsWrittenAlone) {
  TemporaryDirectory folder;
  const auto whole = open_model(of_folder(folder_of("gemma3")));
  ASSERT_TRUE(whole);
  OpenTrainer trainer(whole, plan_for(*whole, request_for(3, 16)));
  ASSERT_TRUE(trainer->export_model(folder.path()));
  const auto json = parse_json(text_of(folder / "config.json"));
  ASSERT_TRUE(json);
  EXPECT_EQ(*json->find("model_type")->as_string(), "gemma3_text");
  EXPECT_EQ(class_of(*json), "Gemma3ForCausalLM");
  EXPECT_EQ(json->find("vision_config"), nullptr);
  const auto alone = open_model(of_folder(folder.path()));
  ASSERT_TRUE(alone);
  EXPECT_EQ(values_of(*alone, "model.norm.weight"), values_of(*whole, "model.norm.weight"));
  auto reader = SafetensorsReader::open(folder / "model.safetensors");
  ASSERT_TRUE(reader);
  EXPECT_NE(reader->find("model.norm.weight"), nullptr);
  EXPECT_EQ(reader->find("language_model.model.norm.weight"), nullptr);
}

// Adapters of the text part belong to the larger model: PEFT finds their modules in it, and not those for
// images.
TEST(Part, Adapters) {
  for (const char* targets : {"", "q_proj", "layers.1.self_attn.q_proj"}) {
    TemporaryDirectory folder;
    ModelSource source = of_folder(folder_of("gemma3"));
    source.adapters = adapters_of_all();
    if (*targets) source.adapters.targets = {targets};
    const auto model = open_model(source);
    ASSERT_TRUE(model);
    const auto planned = plan_for(*model, request_for(4, 16));
    OpenTrainer trainer(model, planned);
    std::vector<double> figures;
    for (uint64_t seed : {1, 2}) ASSERT_TRUE(take_step(*trainer, random_batch(seed, 4, 16), 4, figures));
    ASSERT_TRUE(trainer->export_model(folder.path()));
    auto reader = SafetensorsReader::open(folder / "adapter_model.safetensors");
    ASSERT_TRUE(reader);
    EXPECT_EQ(reader->tensors().size(), *targets == 0 ? 28u : *targets == 'q' ? 4u : 2u);
    EXPECT_NE(reader->find("base_model.model.model.language_model.layers.1.self_attn.q_proj.lora_A.weight"),
              nullptr);
    const auto json = parse_json(text_of(folder / "adapter_config.json"));
    ASSERT_TRUE(json);
    EXPECT_EQ(*json->find("target_modules")->as_string(),
              *targets == 0
                  ? R"((.*\.)?language_model\..*\.(down_proj|gate_proj|k_proj|o_proj|q_proj|up_proj|v_proj))"
              : *targets == 'q' ? R"((.*\.)?language_model\..*\.(q_proj))"
                                : R"((model\.language_model\.layers\.1\.self_attn\.q_proj))");
    const auto again = open_model(of_folder(folder.path()));  // the adapters name the larger model
    ASSERT_TRUE(again);
    OpenTrainer other(again, planned);
    const GlobalBatch batch = random_batch(3, 1, 16);
    const auto expected = trainer->logits(batch.tokens.data(), 16),
               found = other->logits(batch.tokens.data(), 16);
    ASSERT_TRUE(expected && found);
    EXPECT_EQ(std::vector<float>(*expected, *expected + 97), std::vector<float>(*found, *found + 97));
    TemporaryDirectory merged;
    ASSERT_TRUE(write_merged(*again, merged.path()));
    EXPECT_TRUE(open_model(of_folder(merged.path())));
  }
}

TEST(Part, Configs) {
  const auto parsed = [](const std::string& text) { return parse_model(text, "config"); };
  // As in published folders, which rely on transformers' defaults.
  const auto hub = parsed(R"({"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", )"
                          R"("eos_token_id": [1, 106], "torch_dtype": "bfloat16",
    "text_config": {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text", )"
                          R"("num_hidden_layers": 34,
                    "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024}, )"
                          R"("vision_config": {"hidden_size": 1152}})");
  ASSERT_TRUE(hub) << hub.error().message;
  EXPECT_TRUE(hub->is_part);
  EXPECT_EQ(hub->json.find("eos_token_id")->elements().size(), 2u);
  const auto preset = parsed(find_preset("gemma3-4b"));
  ASSERT_TRUE(preset);
  EXPECT_EQ(describe(*architecture_of(*hub).build(*hub, 64, Format::f32, {})),
            describe(*architecture_of(*preset).build(*preset, 64, Format::f32, {})));
  const auto classifier =
      parsed(R"({"architectures": ["Gemma3ForSequenceClassification"], "model_type": "gemma3", )"
             R"("id2label": {"0": "a", "1": "b", "2": "c"},
    "text_config": {"num_hidden_layers": 2}})");
  ASSERT_TRUE(classifier) << classifier.error().message;
  EXPECT_EQ(classifier->labels.size(), 3u);
  EXPECT_EQ(class_of(classifier->json), "Gemma3TextForSequenceClassification");
  const std::pair<const char*, const char*> refused[] = {
      {R"({"model_type": "gemma3"})", "text_config"},
      {R"({"model_type": "gemma3", "text_config": 3})", "text_config"},
      {R"({"model_type": "gemma3", "text_config": {"model_type": "llama"}})",
       "text_config: expected model_type gemma3_text, found \"llama\""},
      {R"({"model_type": "gemma3", "text_config": {"hidden_size": "wide"}})", "hidden_size"},
      {R"({"architectures": ["Gemma3ForTokenClassification"], "model_type": "gemma3", "text_config": {}})",
       "ForTokenClassification is not supported"}};
  for (const auto& [text, part] : refused) {
    const auto config = parsed(text);
    ASSERT_FALSE(config) << text;
    EXPECT_NE(config.error().message.find(part), std::string::npos) << config.error().message;
  }
}

}  // namespace
}  // namespace stw::part_test
