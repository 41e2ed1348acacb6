// Folders of 4-bit models: damaged or unknown parts are refused by name.
#include <functional>

#include "tests/src/small_models.h"

namespace stw::nf4_weights_test {
namespace {

using namespace testing_tools;

struct Stored {
  SafetensorsEntry entry;
  std::string bytes;
};

class Nf4Folder : public testing::Test {
 protected:
  void SetUp() override {
    const std::string golden = STW_SOURCE_ROOT "/tests/golden/llama_nf4";
    put_file(config_, file_bytes(golden + "/config.json"));
    auto reader = SafetensorsReader::open(golden);
    ASSERT_TRUE(reader);
    for (const SafetensorsInfo& t : reader->tensors()) {
      std::string bytes(t.bytes, '\0');
      ASSERT_TRUE(reader->read(t, 0, std::as_writable_bytes(std::span(bytes))));
      tensors_.push_back({{t.name, *t.dtype, t.shape}, bytes});
    }
  }
  Result<std::shared_ptr<const Model>> open(const std::vector<Stored>& tensors) {
    std::vector<SafetensorsEntry> entries;
    for (const Stored& t : tensors) entries.push_back(t.entry);
    auto writer = SafetensorsWriter::create(folder_ / "model.safetensors", entries, {});
    EXPECT_TRUE(writer);
    for (const Stored& t : tensors) EXPECT_TRUE(writer->write(std::as_bytes(std::span(t.bytes))));
    EXPECT_TRUE(writer->finish());
    ModelSource source;
    source.source = folder_.path();
    return Model::open(source);
  }
  // Changes or removes the tensor with this suffix, and expects that the folder is refused with a message
  // that has `part`.
  void refused(const std::string& suffix, const std::function<void(Stored&)>& change,
               const std::string& part) {
    std::vector<Stored> changed = tensors_;
    const auto found = std::find_if(changed.begin(), changed.end(),
                                    [&](const Stored& t) { return t.entry.name == matrix + suffix; });
    ASSERT_NE(found, changed.end()) << suffix;
    if (change) change(*found);
    else changed.erase(found);
    const auto model = open(changed);
    ASSERT_FALSE(model) << part;
    EXPECT_NE(model.error().message.find(part), std::string::npos) << model.error().message;
    EXPECT_TRUE(model.error().message.starts_with(folder_.path())) << model.error().message;
  }
  void refused_state(const std::string& from, const std::string& to, const std::string& part) {
    refused(
        state,
        [&](Stored& t) {
          ASSERT_NE(t.bytes.find(from), t.bytes.npos);
          t.bytes.replace(t.bytes.find(from), from.size(), to);
          t.entry.shape = {static_cast<int64_t>(t.bytes.size())};
        },
        part);
  }
  static constexpr const char* state = ".quant_state.bitsandbytes__nf4";
  const std::string matrix = "model.layers.1.self_attn.v_proj.weight";
  TemporaryDirectory folder_;
  const std::string config_ = folder_ / "config.json";
  std::vector<Stored> tensors_;
};

TEST_F(Nf4Folder, HasItsCodesAndTypes) {
  const auto model = open(tensors_);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_TRUE((*model)->has_codes());
  for (const int t : (*model)->parameters())
    EXPECT_EQ((*model)->dtype_of((*model)->graph().at(t)), TensorDType::f32);
}

// Codes may be stored as numbers of another type, for frameworks that only move such types. The bytes are the
// same.
TEST_F(Nf4Folder, CodesAreBytesOfAnyType) {
  std::vector<Stored> changed = tensors_;
  for (Stored& t : changed)
    if (t.entry.name == matrix)
      t.entry = {matrix, TensorDType::bf16, {static_cast<int64_t>(t.bytes.size() / 2), 1}};
  const auto model = open(changed);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_TRUE((*model)->has_codes());
}

// Codes are copied from the files even if quantizing the values would give other scales: nested scales may be
// below 0.
TEST_F(Nf4Folder, CodesComeIntoTheArenaUnchanged) {
  std::vector<Stored> changed = tensors_;
  for (Stored& t : changed) {
    // The byte of the smallest nested value, which makes the scale negative.
    if (t.entry.name == matrix + ".absmax") t.bytes[3] = 0, t.bytes[5] = 1;
    if (t.entry.name == matrix + ".nested_absmax") t.bytes = std::string("\0\0\x80\x40", 4);  // 4
  }
  ASSERT_TRUE(open(changed));
  ModelSource source;
  source.source = folder_.path();
  source.adapters = adapters_of_all();
  const auto model = open_model(source);
  Request request = request_for(2, 24);
  request.quantize = Quantize::nf4;
  const auto planned = plan_for(*model, request);
  OpenTrainer trainer(model, planned);
  const State state = trainer.state();
  int compared = 0;
  for (const Stored& t : changed) {
    const auto found = state.find(t.entry.name);
    if (found == state.end() || t.entry.dtype != TensorDType::u8) continue;
    ++compared;
    const std::string& bytes = found->second;
    const auto count = static_cast<int64_t>(2 * t.bytes.size());
    EXPECT_EQ(bytes.substr(0, t.bytes.size()), t.bytes) << t.entry.name;
    std::vector<float> values(static_cast<size_t>(count));
    const int tensor = *std::find_if(model->parameters().begin(), model->parameters().end(),
                                     [&](int p) { return model->graph().at(p).name == t.entry.name; });
    ASSERT_TRUE(model->read(model->graph().at(tensor), 0, values.size(), values.data()));
    bool any_below = false;
    for (int64_t i = 0; i < count; ++i) {
      float scale;
      std::memcpy(&scale,
                  bytes.data() + kernels::scales_begin(kernels::WeightCodes::nf4, count) +
                      i / kernels::weight_block * 4,
                  4);
      any_below |= scale < 0;
      const auto byte = static_cast<uint8_t>(bytes[i / 2]);
      ASSERT_EQ(values[i], kernels::nf4_values.of[i % 2 == 0 ? byte >> 4 : byte & 15] * scale)
          << t.entry.name << " " << i;
    }
    EXPECT_EQ(any_below, t.entry.name == matrix);
  }
  EXPECT_EQ(compared, 13);
}

// More than one chunk of copying, more than one nested scale, and scales that are not nested.
TEST_F(Nf4Folder, LargeMatricesHaveManyNestedScales) {
  constexpr int64_t rows = 640, columns = 160, count = rows * columns, blocks = count / 64, nested_size = 256;
  std::string config = file_bytes(config_);
  for (const auto& [from, to] : {std::pair{"\"hidden_size\": 64", "\"hidden_size\": 160"},
                                 {"\"intermediate_size\": 128", "\"intermediate_size\": 640"},
                                 {"\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1"}}) {
    ASSERT_NE(config.find(from), config.npos) << from;
    config.replace(config.find(from), std::string(from).size(), to);
  }
  put_file(config_, config);
  ModelSource source;
  source.source = config_;
  const auto random = open_model(source);
  const std::string name = "model.layers.0.mlp.up_proj.weight";
  for (const bool is_nested : {true, false}) {
    std::vector<Stored> tensors;
    for (const int t : random->parameters()) {
      const Tensor& p = random->graph().at(t);
      std::vector<float> values(p.shape.elements());
      ASSERT_TRUE(random->read(p, 0, values.size(), values.data()));
      if (p.name == name) continue;
      tensors.push_back(
          {{p.name, TensorDType::f32, {p.shape.dims.begin(), p.shape.dims.begin() + p.shape.rank}},
           std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4)});
    }
    const auto floats = [&](const std::string& suffix, const std::vector<float>& values) {
      tensors.push_back({{name + suffix, TensorDType::f32, {static_cast<int64_t>(values.size())}},
                         std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4)});
    };
    std::string codes(count / 2, '\0'), scale_codes(blocks, '\0');
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<char>(i * 37 + i / 256);
    for (size_t b = 0; b < scale_codes.size(); ++b) scale_codes[b] = static_cast<char>(b * 11 + b / 256);
    std::vector<float> map(256), nested, scales;
    for (size_t i = 0; i < map.size(); ++i) map[i] = (static_cast<float>(i) - 127) / 128;
    for (int64_t i = 0; i < (blocks + nested_size - 1) / nested_size; ++i)
      nested.push_back(0.01f * static_cast<float>(i + 1));
    constexpr float offset = 0.25f;
    for (int64_t b = 0; b < blocks; ++b) {
      const float product = map[static_cast<uint8_t>(scale_codes[b])] * nested[b / nested_size];
      scales.push_back(product + offset);
    }
    EXPECT_EQ(nested.size(), 7u);
    tensors.push_back({{name, TensorDType::u8, {count / 2, 1}}, codes});
    floats(".quant_map", {std::begin(kernels::nf4_values.of), std::end(kernels::nf4_values.of)});
    std::string about = R"({"quant_type": "nf4", "blocksize": 64, "dtype": "float32", "shape": [640, 160])";
    if (is_nested) {
      about += R"(, "nested_blocksize": 256, "nested_offset": 0.25)";
      floats(".nested_quant_map", map);
      floats(".nested_absmax", nested);
      tensors.push_back({{name + ".absmax", TensorDType::u8, {blocks}}, scale_codes});
    } else {
      floats(".absmax", scales);
    }
    about += "}";
    tensors.push_back({{name + state, TensorDType::u8, {static_cast<int64_t>(about.size())}}, about});
    ASSERT_TRUE(open(tensors));
    source.source = folder_.path();
    source.adapters = adapters_of_all();
    const auto model = open_model(source);
    source.adapters = {};
    const Tensor& p =
        model->graph().at(*std::find_if(model->parameters().begin(), model->parameters().end(),
                                        [&](int t) { return model->graph().at(t).name == name; }));
    std::vector<float> values(count);
    ASSERT_TRUE(model->read(p, 0, values.size(), values.data()));
    for (int64_t i = 0; i < count; ++i) {
      const auto byte = static_cast<uint8_t>(codes[i / 2]);
      ASSERT_EQ(values[i], kernels::nf4_values.of[i % 2 == 0 ? byte >> 4 : byte & 15] * scales[i / 64]) << i;
    }
    Request request = request_for(2, 24);
    request.quantize = Quantize::nf4;
    OpenTrainer trainer(model, plan_for(*model, request));
    const std::string bytes = trainer.state().at(name);
    EXPECT_EQ(bytes.substr(0, codes.size()), codes);
    EXPECT_EQ(bytes.substr(codes.size()),
              std::string(reinterpret_cast<const char*>(scales.data()), scales.size() * 4));
  }
}

// A config may claim codes although the files hold numbers. An exported config does not.
TEST_F(Nf4Folder, NumbersMayHaveTheConfigOfCodes) {
  const auto model = open(tensors_);
  ASSERT_TRUE(model);
  OpenTrainer trainer(*model, plan_for(**model, request_for(2, 24)));
  ASSERT_TRUE(trainer->export_model(folder_ / "numbers"));
  put_file(folder_ / "numbers" + "/config.json", file_bytes(config_));
  ModelSource source;
  source.source = folder_ / "numbers";
  const auto numbers = Model::open(source);
  ASSERT_TRUE(numbers) << numbers.error().message;
  EXPECT_FALSE((*numbers)->has_codes());
  EXPECT_EQ((*numbers)->config().json.find("quantization_config"), nullptr);
  // Without weights other kinds of quantization are ignored too.
  std::string config = file_bytes(config_);
  config.replace(config.find("bitsandbytes"), 12, "gptq");
  source.source = "";
  source.config_json = config;
  EXPECT_EQ(open_model(source)->config().json.find("quantization_config"), nullptr);
}

TEST_F(Nf4Folder, OfGpt2AreRefused) {
  const auto model = model_of(small_gpt2());
  OpenTrainer trainer(model, plan_for(*model, request_for(2, 24)));
  ASSERT_TRUE(trainer->export_model(folder_.path()));
  auto reader = SafetensorsReader::open(folder_ / "model.safetensors");
  ASSERT_TRUE(reader);
  std::vector<Stored> tensors;
  for (const SafetensorsInfo& t : reader->tensors()) {
    std::string bytes(t.bytes, '\0');
    ASSERT_TRUE(reader->read(t, 0, std::as_writable_bytes(std::span(bytes))));
    tensors.push_back({{t.name, *t.dtype, t.shape}, bytes});
    if (t.name.ends_with("h.1.attn.c_attn.weight"))
      tensors.push_back({{t.name + state, TensorDType::u8, {2}}, "{}"});
  }
  const auto refused = open(tensors);
  ASSERT_FALSE(refused);
  EXPECT_NE(
      refused.error().message.find("h.1.attn.c_attn.weight: matrices of gpt2 in 4 bits are not supported"),
      std::string::npos)
      << refused.error().message;
}

TEST_F(Nf4Folder, MissingAndDamagedPartsAreNamed) {
  refused("", nullptr, "tensor " + matrix + " is missing");
  refused(state, nullptr, "expected dtype F32, BF16, F16 or F64, found U8");
  refused(".quant_map", nullptr, "expected .quant_map next to its codes, found none");
  refused(".absmax", nullptr, "expected .absmax next to its codes, found none");
  refused(".nested_quant_map", nullptr, "expected .nested_quant_map next to its codes");
  refused(".nested_absmax", nullptr, "expected .absmax of 32 elements in F32, found 32 bytes in U8");
  const auto shorter = [](Stored& t) {
    const uint64_t size = dtype_bytes(t.entry.dtype);
    t.bytes.resize(t.bytes.size() - size);
    t.entry.shape = {static_cast<int64_t>(t.bytes.size() / size)};
  };
  refused("", shorter, "expected 1024 bytes of codes, found 1023");
  refused(".quant_map", shorter, "expected .quant_map of 16 elements in F32, found 60 bytes");
  refused(".absmax", shorter, "expected .absmax of 32 elements in U8, found 31 bytes");
  refused(".nested_quant_map", shorter, "expected .nested_quant_map of 256 elements");
  refused(".nested_absmax", shorter, "expected .nested_absmax of 1 elements");
  refused(state, shorter, "no JSON object");
  refused(
      ".quant_map", [](Stored& t) { t.bytes[8] ^= 1; }, "other values than those of nf4");
}

TEST_F(Nf4Folder, UnknownStatesAreRefused) {
  refused_state("\"nf4\"", "\"fp4\"", "expected quant_type \"nf4\"");
  refused_state("[32, 64]", "[64, 32]", "expected shape [32, 64], found [64, 32]");
  refused_state("[32, 64]", "[-32, 64]", "no shape");
  refused_state("[32, 64]", "\"32, 64\"", "no shape");
  refused_state("\"blocksize\": 64", "\"blocksize\": 128", "expected a blocksize of 64, found 128");
  refused_state("\"blocksize\": 64", "\"blocksize\": -1", "expected a blocksize of 64, found none");
  refused_state("\"nested_blocksize\": 256", "\"nested_blocksize\": -1", "no nested_blocksize");
  refused_state("\"nested_offset\"", "\"offset\"", "nested_offset");
  refused_state("\"float32\"", "\"int8\"", "unknown dtype");
}

// Weights in other quantization formats are neither numbers nor known codes.
TEST_F(Nf4Folder, OtherKindsOfQuantizationAreRefused) {
  const std::string config = file_bytes(config_);
  const auto refused_config = [&](const std::string& from, const std::string& to, const std::string& part) {
    std::string text = config;
    ASSERT_NE(text.find(from), text.npos) << from;
    text.replace(text.find(from), from.size(), to);
    put_file(config_, text);
    const auto model = open(tensors_);
    ASSERT_FALSE(model) << to;
    EXPECT_TRUE(model.error().message.starts_with(config_)) << model.error().message;
    EXPECT_NE(model.error().message.find(part), std::string::npos) << model.error().message;
  };
  refused_config("\"quant_method\": \"bitsandbytes\"", "\"quant_method\": \"gptq\"",
                 "quantization_config, \"gptq\", is not supported: expected weights as numbers");
  refused_config("\"bnb_4bit_quant_type\": \"nf4\"", "\"bnb_4bit_quant_type\": \"fp4\"",
                 "\"bitsandbytes\" with quant_type \"fp4\", is not supported");
  refused_config("\"load_in_4bit\": true", "\"load_in_4bit\": false",
                 "\"bitsandbytes\" in 8 bits, is not supported");
}

}  // namespace
}  // namespace stw::nf4_weights_test
