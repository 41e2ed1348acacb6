// What a stranger's folder may contain: configurations and weights, good ones in every spelling and bad ones by name.
#include "src/model.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "planner/plan_file.h"
#include "tests/src/small_models.h"
#include "tests/src/temporary_directory.h"

namespace stw {
namespace {

using namespace testing_tools;

// ---- configurations ---------------------------------------------------------------------------------------------

const char* gpt2_fields = R"("model_type": "gpt2", "vocab_size": 61, "n_positions": 40, "n_embd": 40, "n_layer": 2, "n_head": 4)";
const char* llama_fields = R"("model_type": "llama", "vocab_size": 61, "max_position_embeddings": 40, "hidden_size": 48,
    "intermediate_size": 88, "num_hidden_layers": 2, "num_attention_heads": 6, "num_key_value_heads": 2)";

Json with(const char* fields, const char* key, Json value) {
  auto json = parse_json(std::string("{") + fields + "}");
  EXPECT_TRUE(json);
  json->set(key, std::move(value));
  return *json;
}

TEST(Config, BadOnesAreRefusedByName) {
  const struct { Json json; Code code; const char* part; } cases[] = {
      {with(gpt2_fields, "model_type", "bert"), Code::unsupported, "expected model_type gpt2, llama, mistral, qwen2, found \"bert\""},
      {with(gpt2_fields, "model_type", nullptr), Code::corrupt, "model_type"},
      {with(gpt2_fields, "n_embd", "wide"), Code::corrupt, "n_embd"},
      {with(gpt2_fields, "n_embd", 40.5), Code::corrupt, "n_embd"},
      {with(gpt2_fields, "n_embd", 42), Code::unsupported_field, "n_embd 42 is not a multiple of n_head 4"},
      {with(gpt2_fields, "n_embd", 0), Code::unsupported_field, "n_embd"},
      {with(gpt2_fields, "n_embd", -40), Code::unsupported_field, "n_embd"},
      {with(gpt2_fields, "n_embd", INT64_MAX), Code::unsupported_field, "n_embd"},
      {with(gpt2_fields, "n_embd", int64_t{1} << 33), Code::unsupported_field, "width"},
      {with(gpt2_fields, "num_attention_heads", 2), Code::unsupported_field, "n_head is 4 and num_attention_heads 2"},
      {with(gpt2_fields, "n_head", 0), Code::unsupported_field, "n_head"},
      {with(gpt2_fields, "n_head", 40), Code::unsupported_field, "head width"},
      {with(gpt2_fields, "n_layer", 0), Code::unsupported_field, "layers"},
      {with(gpt2_fields, "n_layer", 1025), Code::unsupported_field, "expected at most 1024 layers, found 1025"},
      {with(gpt2_fields, "n_positions", -1), Code::unsupported_field, "positions"},
      {with(gpt2_fields, "vocab_size", 0), Code::unsupported_field, "vocabulary"},
      {with(gpt2_fields, "vocab_size", int64_t{1} << 40), Code::unsupported_field, "vocabulary"},
      {with(gpt2_fields, "n_inner", 0), Code::unsupported_field, "intermediate"},
      {with(gpt2_fields, "attn_pdrop", 1.0), Code::unsupported_field, "dropout"},
      {with(gpt2_fields, "resid_pdrop", -0.1), Code::unsupported_field, "dropout"},
      {with(gpt2_fields, "layer_norm_epsilon", 1e39), Code::unsupported_field, "epsilon"},
      {with(gpt2_fields, "initializer_range", 1e300), Code::unsupported_field, "initializer_range"},
      {with(gpt2_fields, "activation_function", "relu"), Code::unsupported_field, "activation_function \"relu\""},
      {with(gpt2_fields, "tie_word_embeddings", 1), Code::corrupt, "tie_word_embeddings"},
      {with(gpt2_fields, "add_cross_attention", true), Code::unsupported_field, "add_cross_attention"},
      {with(gpt2_fields, "scale_attn_by_inverse_layer_idx", true), Code::unsupported_field, "scale_attn_by_inverse_layer_idx"},
      {with(llama_fields, "vocab_size", nullptr), Code::corrupt, "vocab_size"},
      {with(llama_fields, "hidden_size", nullptr), Code::corrupt, "hidden_size"},
      {with(llama_fields, "intermediate_size", nullptr), Code::corrupt, "intermediate_size"},
      {with(llama_fields, "num_hidden_layers", nullptr), Code::corrupt, "num_hidden_layers"},
      {with(llama_fields, "num_attention_heads", nullptr), Code::corrupt, "num_attention_heads"},
      {with(llama_fields, "max_position_embeddings", nullptr), Code::corrupt, "max_position_embeddings"},
      {with(llama_fields, "num_key_value_heads", 4), Code::unsupported_field, "6 heads cannot share 4 key-value heads"},
      {with(llama_fields, "num_key_value_heads", 0), Code::unsupported_field, "key-value"},
      {with(llama_fields, "num_key_value_heads", 12), Code::unsupported_field, "key-value"},
      {with(llama_fields, "num_attention_heads", 0), Code::unsupported_field, "heads"},
      {with(llama_fields, "num_attention_heads", INT64_MAX), Code::unsupported_field, "heads"},
      {with(llama_fields, "head_dim", 7), Code::unsupported_field, "head width"},
      {with(llama_fields, "head_dim", 512), Code::unsupported_field, "head width"},
      {with(llama_fields, "head_dim", -8), Code::unsupported_field, "head_dim"},
      {with(llama_fields, "hidden_act", "gelu"), Code::unsupported_field, "hidden_act \"gelu\""},
      {with(llama_fields, "rope_scaling", Json::object().set("rope_type", "yarn")), Code::unsupported_field, "\"yarn\""},
      {with(llama_fields, "rope_scaling", Json::object().set("rope_type", "linear")), Code::corrupt, "factor"},
      {with(llama_fields, "rope_scaling", Json::object().set("rope_type", "linear").set("factor", 0.5)), Code::unsupported_field, "factor"},
      {with(llama_fields, "rope_scaling", Json::object().set("type", "llama3").set("factor", 8)), Code::corrupt, "low_freq_factor"},
      {with(llama_fields, "rope_scaling", "linear"), Code::corrupt, "\"rope_scaling\": expected an object"},
      {with(llama_fields, "rope_parameters", Json(Json::Array{})), Code::corrupt, "\"rope_parameters\": expected an object"},
      {with(llama_fields, "partial_rotary_factor", 0.5), Code::unsupported_field, "partial_rotary_factor"},
      {with(llama_fields, "rope_parameters", Json::object().set("partial_rotary_factor", 0.5)), Code::unsupported_field, "partial_rotary_factor"},
      {with(llama_fields, "rms_norm_eps", "small"), Code::corrupt, "rms_norm_eps"},
  };
  TemporaryDirectory folder;
  for (const auto& c : cases) {
    const std::string text = to_string(c.json, 0), path = folder / "config.json";
    put_file(path, text);
    ModelSource source;
    source.source = path;
    auto model = Model::open(source);
    ASSERT_FALSE(model) << text;
    EXPECT_EQ(model.error().code, c.code) << model.error().message;
    EXPECT_TRUE(model.error().message.starts_with(path + ": ")) << model.error().message;
    EXPECT_NE(model.error().message.find(c.part), std::string::npos) << model.error().message << " has no " << c.part;
    EXPECT_EQ(model.error().message.find('\n'), std::string::npos);
  }
}

// As transformers has it (configuration_llama.py and so on): Llama takes null for an absent key, Qwen2 32, Mistral 8, which
// 6 or 48 heads cannot share.
TEST(Config, KeyValueHeadsThatAreNotSaid) {
  const auto open = [](const char* type, int heads, bool is_null) {
    ModelSource source;
    source.config_json = std::string(R"({"model_type": ")") + type + R"(", "vocab_size": 61, "max_position_embeddings": 40, "hidden_size": 384,
        "intermediate_size": 88, "num_hidden_layers": 1, "head_dim": 8, "num_attention_heads": )" + std::to_string(heads) +
                         (is_null ? R"(, "num_key_value_heads": null})" : "}");
    return Model::open(source);
  };
  const struct { const char* type; int heads; bool is_null; int expected; } cases[] = {
      {"llama", 64, false, 64}, {"llama", 64, true, 64}, {"llama", 6, false, 6}, {"qwen2", 64, false, 32}, {"qwen2", 64, true, 64},
      {"qwen2", 32, false, 32}, {"qwen2", 6, true, 6}, {"qwen2", 6, false, 6}, {"qwen2", 48, false, 48},
      {"mistral", 64, false, 8}, {"mistral", 64, true, 64}, {"mistral", 6, false, 6}};
  for (const auto& [type, heads, is_null, expected] : cases) {
    const auto model = open(type, heads, is_null);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ((*model)->config().kv_heads, expected) << type << ' ' << heads << ' ' << is_null;
  }
}

// Within the window attention is that of all tokens before; behind it, it is not computed.
TEST(Config, SamplesAreNoLongerThanTheWindowOfMistral) {
  const auto open = [](const char* window) {
    ModelSource source;
    source.config_json = std::string(R"({"model_type": "mistral", "vocab_size": 61, "max_position_embeddings": 32768, "hidden_size": 48,
        "intermediate_size": 88, "num_hidden_layers": 1, "num_attention_heads": 6)") + window + "}";
    return Model::open(source);
  };
  const auto positions_of = [&](const char* window) {
    const auto model = open(window);
    return model ? (*model)->config().positions : -1;
  };
  EXPECT_EQ(positions_of(""), 4096);   // transformers' default
  EXPECT_EQ(positions_of(R"(, "sliding_window": null)"), 32768);
  EXPECT_EQ(positions_of(R"(, "sliding_window": 1000)"), 1000);
  EXPECT_EQ(positions_of(R"(, "sliding_window": 40000)"), 32768);
  EXPECT_EQ(open(R"(, "sliding_window": 0)").error().code, Code::unsupported_field);
  EXPECT_EQ(open(R"(, "sliding_window": "all")").error().code, Code::corrupt);
}

TEST(Config, ThetaLiesInRopeParametersOrBeside) {
  const auto theta_of = [](const Json& json) {
    ModelSource source;
    source.config_json = to_string(json, 0);
    const auto model = Model::open(source);
    return model ? (*model)->config().theta : -1;
  };
  const Json none = Json::object().set("rope_type", "default"), own = Json::object().set("rope_type", "default").set("rope_theta", 7.0);
  Json beside = with(llama_fields, "rope_theta", 500000.0);
  EXPECT_EQ(theta_of(beside), 500000);
  EXPECT_EQ(theta_of(beside.set("rope_parameters", none)), 500000);
  EXPECT_EQ(theta_of(beside.set("rope_parameters", own)), 7);
  EXPECT_EQ(theta_of(with(llama_fields, "rope_parameters", none)), 10000);
}

// As transformers reads them, which writes the newer key and takes the older one where somebody added it.
TEST(Config, RopeScalingGoesBeforeRopeParameters) {
  const auto config_of = [](const Json& json) {
    ModelSource source;
    source.config_json = to_string(json, 0);
    return open_model(source)->config();
  };
  const Json newer = Json::object().set("rope_type", "default").set("rope_theta", 7.0);
  Json both = with(llama_fields, "rope_parameters", newer);
  EXPECT_EQ(config_of(both.set("rope_scaling", Json::object())).theta, 7);
  EXPECT_EQ(config_of(both).scaling, RopeScaling::none);
  both.set("rope_scaling", Json::object().set("type", "linear").set("factor", 4.0));
  EXPECT_EQ(config_of(both).scaling, RopeScaling::linear);
  EXPECT_EQ(config_of(both).scaling_factor, 4);
  EXPECT_EQ(config_of(both).theta, 10000);
  EXPECT_EQ(config_of(both.set("rope_theta", 9.0)).theta, 9);
}

TEST(Config, OriginalPositionsLieBesideRopeParametersToo) {
  const auto original_of = [](const Json& json) {
    ModelSource source;
    source.config_json = to_string(json, 0);
    return open_model(source)->config().original_positions;
  };
  Json rope = Json::object().set("rope_type", "llama3").set("factor", 8.0).set("low_freq_factor", 1.0).set("high_freq_factor", 4.0);
  EXPECT_EQ(original_of(with(llama_fields, "rope_parameters", rope)), 40);   // max_position_embeddings
  Json json = with(llama_fields, "rope_parameters", rope.set("original_max_position_embeddings", 32));
  EXPECT_EQ(original_of(json), 32);
  EXPECT_EQ(original_of(json.set("original_max_position_embeddings", 16)), 16);
}

TEST(Config, Gpt2SizesHaveSecondNames) {
  ModelSource source;
  source.config_json = R"({"model_type": "gpt2", "vocab_size": 61, "max_position_embeddings": 40, "hidden_size": 44, "num_hidden_layers": 3,
                           "num_attention_heads": 2, "n_head": 2})";
  const ModelConfig c = open_model(source)->config();
  EXPECT_EQ(c.positions, 40);
  EXPECT_EQ(c.width, 44);
  EXPECT_EQ(c.layers, 3);
  EXPECT_EQ(c.heads, 2);
}

TEST(Config, WhatIsNoConfig) {
  TemporaryDirectory folder;
  ModelSource source;
  source.source = folder / "missing";
  auto model = Model::open(source);
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message.find("qwen2.5-0.5b"), std::string::npos);
  source.source = folder.path();
  EXPECT_EQ(Model::open(source).error().code, Code::io_error);
  for (const char* text : {"", "{", "[]", "3", "null", "{\"model_type\": 3}", "\xff"}) {
    put_file(folder / "config.json", text);
    EXPECT_EQ(Model::open(source).error().code, Code::corrupt) << text;
  }
  put_file(folder / "config.json", std::string(2 << 20, ' '));
  EXPECT_EQ(Model::open(source).error().code, Code::corrupt);
  ModelSource dropout;
  dropout.config_json = small_gpt2();
  for (float p : {-0.1f, 1.0f, 2.0f, std::nanf("")}) {
    dropout.dropout = p;
    EXPECT_EQ(Model::open(dropout).error().code, Code::bad_argument) << p;
  }
}

TEST(Config, DropoutCanBeOverruled) {
  ModelSource source;
  source.config_json = small_gpt2("0.1");
  const auto with_dropout = open_model(source);
  source.dropout = 0.0f;
  const auto without = open_model(source);
  source.config_json = small_gpt2("0.0");
  source.dropout.reset();
  EXPECT_EQ(describe(without->graph()), describe(open_model(source)->graph()));
  EXPECT_NE(describe(without->graph()), describe(with_dropout->graph()));
  EXPECT_TRUE(without->config().json == open_model(source)->config().json);
  source.dropout = 0.1f;   // which is written as 0.1
  EXPECT_TRUE(open_model(source)->config().json == with_dropout->config().json);
}

TEST(Preset, ParametersAreAsPublished) {
  const std::pair<const char*, uint64_t> published[] = {
      {"gpt2", 124439808}, {"gpt2-medium", 354823168}, {"gpt2-large", 774030080}, {"gpt2-xl", 1557611200},
      {"smollm-135m", 134515008}, {"smollm-360m", 361821120}, {"qwen2.5-0.5b", 494032768}, {"qwen2.5-1.5b", 1543714304},
      {"qwen2.5-3b", 3085938688}, {"qwen2.5-7b", 7615616512}, {"llama-1b", 1235814400}, {"llama-3b", 3212749824},
      {"llama-8b", 8030261248}, {"nano", 858880}};
  size_t count = 0;
  while (preset_name(count)) ++count;
  EXPECT_EQ(count, std::size(published));
  for (const auto& [name, parameters] : published) {
    ModelSource source;
    source.source = name;
    const auto model = open_model(source);
    ASSERT_TRUE(model) << name;
    EXPECT_EQ(model->graph().parameter_count(), parameters) << name;
    EXPECT_FALSE(model->has_weights());
    uint64_t sum = 0;
    for (int t : model->parameters()) sum += model->graph().at(t).shape.elements();
    EXPECT_EQ(sum, parameters) << name;
  }
}

// ---- weights from a seed ----------------------------------------------------------------------------------------

std::vector<float> read_all(const Model& model, const Tensor& t) {
  std::vector<float> values(t.shape.elements());
  const auto status = model.read(t, 0, values.size(), values.data());
  EXPECT_TRUE(status) << status.error().message;
  return values;
}

TEST(Initialisation, IsAFunctionOfSeedNameAndElement) {
  const auto model = model_of(small_gpt2(), 7), same = model_of(small_gpt2(), 7), other = model_of(small_gpt2(), 8);
  std::vector<std::vector<float>> seen;
  for (int t : model->parameters()) {
    const Tensor& p = model->graph().at(t);
    const std::vector<float> values = read_all(*model, p);
    EXPECT_EQ(values, read_all(*same, p));
    // Cut anywhere, the values are the same.
    std::vector<float> pieces(values.size());
    for (uint64_t at = 0, n = 1; at < values.size(); at += n, n = n % 7 + 1) {
      n = std::min<uint64_t>(n, values.size() - at);
      ASSERT_TRUE(model->read(p, at, n, pieces.data() + at));
    }
    EXPECT_EQ(values, pieces) << p.name;
    double sum = 0, squares = 0;
    for (float v : values) {
      sum += static_cast<double>(v);
      squares += static_cast<double>(v) * static_cast<double>(v);
    }
    const double n = static_cast<double>(values.size()), std = std::sqrt(squares / n);
    if (p.shape.rank == 1) {
      const float constant = p.name.ends_with("weight") ? 1.0f : 0.0f;
      EXPECT_EQ(values, std::vector<float>(values.size(), constant)) << p.name;
      continue;
    }
    const double expected = p.name.ends_with("c_proj.weight") ? 0.02 / std::sqrt(6.0) : 0.02;
    EXPECT_NEAR(std, expected, 4 * expected / std::sqrt(2 * n)) << p.name;
    EXPECT_NEAR(sum / n, 0, 4 * expected / std::sqrt(n)) << p.name;
    EXPECT_NE(values, read_all(*other, p));
    for (const auto& earlier : seen) EXPECT_FALSE(std::equal(values.begin(), values.begin() + 16, earlier.begin()));
    seen.push_back(values);
  }
}

// ---- weights from files -----------------------------------------------------------------------------------------

struct Weights {
  std::vector<SafetensorsEntry> entries;
  std::vector<std::string> data;
};

// Every tensor of the small GPT-2 in fp32: 1, 2, 3 ... divided by 8.
Weights good_weights(const Model& model) {
  Weights w;
  for (int t : model.parameters()) {
    const Tensor& p = model.graph().at(t);
    std::vector<float> values(p.shape.elements());
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000) / 8;
    w.entries.push_back({p.name, TensorDType::f32, {p.shape.dims.begin(), p.shape.dims.begin() + p.shape.rank}});
    w.data.emplace_back(reinterpret_cast<const char*>(values.data()), values.size() * 4);
  }
  return w;
}

void write(const std::string& path, const Weights& w) {
  auto writer = SafetensorsWriter::create(path, w.entries, {});
  ASSERT_TRUE(writer) << writer.error().message;
  for (const std::string& d : w.data) ASSERT_TRUE(writer->write(std::as_bytes(std::span(d))));
  const auto status = writer->finish();
  ASSERT_TRUE(status) << status.error().message;
}

Result<std::shared_ptr<const Model>> open_with(const std::string& weights) {
  ModelSource source;
  source.config_json = small_gpt2();
  source.weights = weights;
  return Model::open(source);
}

class WeightFile : public testing::Test {
 protected:
  void expect_refused(const std::string& part) {
    write(path_, weights_);
    expect_file_refused(part);
  }
  void expect_file_refused(const std::string& part) {
    auto model = open_with(path_);
    ASSERT_FALSE(model);
    EXPECT_TRUE(model.error().message.starts_with(path_)) << model.error().message;
    EXPECT_NE(model.error().message.find(part), std::string::npos) << model.error().message;
    EXPECT_EQ(model.error().message.find('\n'), std::string::npos);
  }
  void expect_values(const Result<std::shared_ptr<const Model>>& model) {
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_TRUE((*model)->has_weights());
    for (int t : (*model)->parameters()) {
      const std::vector<float> values = read_all(**model, (*model)->graph().at(t));
      for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], static_cast<float>(i % 1000) / 8);
    }
  }
  TemporaryDirectory folder_;
  std::string path_ = folder_ / "model.safetensors";
  std::shared_ptr<const Model> model_ = model_of(small_gpt2());
  Weights weights_ = good_weights(*model_);
};

TEST_F(WeightFile, IsReadInPieces) {
  write(path_, weights_);
  auto model = open_with(path_);
  expect_values(model);
  const Tensor& table = model_->graph().at(model_->parameters()[0]);
  float piece[3];
  ASSERT_TRUE((*model)->read(table, 1001, 3, piece));
  EXPECT_EQ(piece[0], 1.0f / 8);
  EXPECT_EQ(piece[2], 3.0f / 8);
}

TEST_F(WeightFile, OtherTypesAreConverted) {
  // Every value fits each type exactly but bf16, which has 8 bits: those keep i % 1000 / 8 up to 255.
  for (TensorDType dtype : {TensorDType::f16, TensorDType::bf16, TensorDType::f64}) {
    Weights w = weights_;
    for (size_t k = 0; k < w.entries.size(); ++k) {
      w.entries[k].dtype = dtype;
      const size_t n = w.data[k].size() / 4;
      std::string converted;
      for (size_t i = 0; i < n; ++i) {
        float value;
        std::memcpy(&value, w.data[k].data() + 4 * i, 4);
        uint16_t half = 0;
        if (dtype == TensorDType::bf16) {
          half = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
        } else if (value > 0) {   // exact in half precision: at most 10 bits of mantissa
          const uint32_t bits = std::bit_cast<uint32_t>(value);
          half = static_cast<uint16_t>(((bits >> 23) - 112) << 10 | (bits >> 13 & 1023));
        }
        const double wide = static_cast<double>(value);
        if (dtype == TensorDType::f64) converted.append(reinterpret_cast<const char*>(&wide), 8);
        else converted.append(reinterpret_cast<const char*>(&half), 2);
      }
      w.data[k] = converted;
    }
    write(path_, w);
    auto model = open_with(path_);
    ASSERT_TRUE(model) << model.error().message;
    if (dtype != TensorDType::bf16) {
      expect_values(model);
      continue;
    }
    for (int t : (*model)->parameters()) {
      const std::vector<float> values = read_all(**model, (*model)->graph().at(t));
      for (size_t i = 0; i < values.size(); ++i) {
        const float exact = static_cast<float>(i % 1000) / 8;
        ASSERT_EQ(values[i], std::bit_cast<float>(std::bit_cast<uint32_t>(exact) & 0xFFFF0000u));
      }
    }
  }
}

TEST_F(WeightFile, NamesWithoutPrefix) {
  for (SafetensorsEntry& e : weights_.entries) e.name = e.name.substr(std::string("transformer.").size());
  write(path_, weights_);
  expect_values(open_with(path_));
}

TEST_F(WeightFile, TensorsThatNobodyNeedsAreIgnored) {
  weights_.entries.push_back({"transformer.h.0.attn.bias", TensorDType::u8, {4}});
  weights_.data.push_back("mask");
  write(path_, weights_);
  expect_values(open_with(path_));
}

// One byte a number is like U8, which the writer knows.
TEST_F(WeightFile, TypesThatAreNotKnownMatterOnlyToWhoNeedsThem) {
  weights_.entries.push_back({"transformer.h.0.attn.scales", TensorDType::u8, {4}});
  weights_.data.push_back("abcd");
  const auto rewrite = [&](const std::string& from, const std::string& to) {
    write(path_, weights_);
    std::string whole = file_bytes(path_);
    const size_t at = whole.find(from);
    ASSERT_NE(at, whole.npos);
    put_file(path_, whole.replace(at, from.size(), to));
  };
  rewrite("\"U8\"", "\"F8\"");
  expect_values(open_with(path_));
  rewrite("\"F32\"", "\"FP8\"");   // of the first one
  expect_file_refused(": tensor transformer.wte.weight: expected dtype F32, BF16, F16 or F64, found FP8");
}

// A file may hold a tied tensor under both names, or under either; but where both have values of their own, one would be lost.
TEST_F(WeightFile, TiedTensorsAreEqual) {
  weights_.entries.push_back({"lm_head.weight", TensorDType::f32, weights_.entries[0].shape});
  weights_.data.push_back(weights_.data[0]);
  write(path_, weights_);
  expect_values(open_with(path_));
  weights_.data.back()[weights_.data.back().size() - 1] ^= 1;
  write(path_, weights_);
  auto model = open_with(path_);
  ASSERT_TRUE(model) << model.error().message;
  const Tensor& table = (*model)->graph().at((*model)->parameters()[0]);
  std::vector<float> values(table.shape.elements());
  const auto status = (*model)->read(table, 0, values.size(), values.data());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, path_ + ": tensor lm_head.weight: expected the values of transformer.wte.weight, found others: "
                                            "the config's tie_word_embeddings should be false");
  weights_.entries.back().shape = {61, 20};
  weights_.data.back().resize(61 * 20 * 4);
  expect_refused("tensor lm_head.weight: expected shape [61, 40], found [61, 20]");
}

TEST_F(WeightFile, TheHeadsNameOfATiedTable) {
  weights_.entries[0].name = "lm_head.weight";
  write(path_, weights_);
  expect_values(open_with(path_));
}

TEST_F(WeightFile, Shards) {
  Weights shard[2];
  Json map = Json::object();
  for (size_t k = 0; k < weights_.entries.size(); ++k) {
    shard[k % 2].entries.push_back(weights_.entries[k]);
    shard[k % 2].data.push_back(weights_.data[k]);
    map.set(weights_.entries[k].name, k % 2 ? "b.safetensors" : "a.safetensors");
  }
  write(folder_ / "a.safetensors", shard[0]);
  write(folder_ / "b.safetensors", shard[1]);
  put_file(folder_ / "model.safetensors.index.json", to_string(Json::object().set("weight_map", map), 0));
  put_file(folder_ / "config.json", small_gpt2());
  expect_values(open_with(folder_.path()));
  expect_values(open_with(folder_ / "model.safetensors.index.json"));
  ModelSource source;
  source.source = folder_.path();
  expect_values(Model::open(source));
  std::filesystem::remove(folder_ / "b.safetensors");
  auto model = Model::open(source);
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message.find("b.safetensors"), std::string::npos) << model.error().message;
}

TEST_F(WeightFile, TheOnlyOneOfItsFolderHasAnyName) {
  write(folder_ / "weights.safetensors", weights_);
  put_file(folder_ / "config.json", small_gpt2());
  std::filesystem::create_directory(folder_ / "a.safetensors");   // no file
  ModelSource source;
  source.source = folder_.path();
  expect_values(Model::open(source));
  expect_values(open_with(folder_.path()));
  // Shards without their index, or two models: random weights would be neither.
  write(folder_ / "more.safetensors", weights_);
  for (const auto& model : {Model::open(source), open_with(folder_.path())}) {
    ASSERT_FALSE(model);
    EXPECT_EQ(model.error().code, Code::bad_argument);
    EXPECT_EQ(model.error().message, folder_.path() + ": expected model.safetensors, model.safetensors.index.json or one other .safetensors file, found 2, "
                                                      "more.safetensors the first");
  }
  source.weights = folder_ / "weights.safetensors";
  expect_values(Model::open(source));
  source.weights.clear();
  write(path_, weights_);
  expect_values(Model::open(source));
}

TEST_F(WeightFile, OfAnotherFormatIsNotReplacedByRandomWeights) {
  put_file(folder_ / "config.json", small_gpt2());
  put_file(folder_ / "pytorch_model.bin", "PK");
  ModelSource source;
  source.source = folder_.path();
  for (const auto& model : {Model::open(source), open_with(folder_.path())}) {
    ASSERT_FALSE(model);
    EXPECT_EQ(model.error().code, Code::unsupported);
    EXPECT_TRUE(model.error().message.starts_with(folder_ / "pytorch_model.bin")) << model.error().message;
  }
  source.source = folder_ / "config.json";
  const auto random = Model::open(source);
  ASSERT_TRUE(random) << random.error().message;
  EXPECT_FALSE((*random)->has_weights());
  write(path_, weights_);
  source.source = folder_.path();
  expect_values(Model::open(source));
}

TEST_F(WeightFile, MissingTensor) {
  weights_.entries.erase(weights_.entries.begin() + 3);
  weights_.data.erase(weights_.data.begin() + 3);
  expect_refused("tensor " + model_->graph().at(model_->parameters()[3]).name + " is missing");
}

TEST_F(WeightFile, WrongShape) {
  weights_.entries[0].shape = {40, 61};
  expect_refused("tensor transformer.wte.weight: expected shape [61, 40], found [40, 61]");
  weights_.entries[0].shape = {2440};
  expect_refused("expected shape [61, 40], found [2440]");
}

TEST_F(WeightFile, WrongType) {
  weights_.entries[0].dtype = TensorDType::i32;
  expect_refused("tensor transformer.wte.weight: expected dtype F32, BF16, F16 or F64, found I32");
}

TEST_F(WeightFile, Truncated) {
  write(path_, weights_);
  const std::string good = file_bytes(path_);
  for (size_t size : {size_t{0}, size_t{7}, size_t{8}, size_t{100}, good.size() / 2, good.size() - 1}) {
    put_file(path_, good.substr(0, size));
    expect_file_refused("");
  }
  std::filesystem::remove(path_);
  expect_file_refused("");
}

}  // namespace
}  // namespace stw
