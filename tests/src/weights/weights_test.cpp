// Weights from a seed and from files: valid files in every spelling, invalid ones refused by name.
#include "src/weights/model.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/contract/weight_codes.h"
#include "src/base/numbers.h"
#include "tests/src/small_models.h"
#include "tests/src/temporary_directory.h"

namespace stw::weights_test {
namespace {

using namespace testing_tools;

// ---- weights from a seed ---------------------------------------------------------------------------------

std::vector<float> read_all(const Model& model, const Tensor& t) {
  std::vector<float> values(t.shape.elements());
  const auto status = model.read(t, 0, values.size(), values.data());
  EXPECT_TRUE(status) << status.error().message;
  return values;
}

TEST(Initialisation, IsAFunctionOfSeedNameAndElement) {
  const auto model = model_of(small_gpt2(), 7), same = model_of(small_gpt2(), 7),
             other = model_of(small_gpt2(), 8);
  std::vector<std::vector<float>> seen;
  for (int t : model->parameters()) {
    const Tensor& p = model->graph().at(t);
    const std::vector<float> values = read_all(*model, p);
    EXPECT_EQ(values, read_all(*same, p));
    // The values do not depend on how reads are cut.
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
    for (const auto& earlier : seen)
      EXPECT_FALSE(std::equal(values.begin(), values.begin() + 16, earlier.begin()));
    seen.push_back(values);
  }
}

// ---- weights in a trainer --------------------------------------------------------------------------------

// The arena is filled some thousand elements at a time. A matrix of many such pieces has the model's values,
// in every format of the matrix and of its master weights.
TEST(Filling, MatricesOfManyPiecesHaveTheModelsValues) {
  const auto model = model_of(gpt2_with_vocabulary(2111));
  const std::string name = "transformer.wte.weight";
  const int tensor = *std::find_if(model->parameters().begin(), model->parameters().end(),
                                   [&](int t) { return model->graph().at(t).name == name; });
  const std::vector<float> values = read_all(*model, model->graph().at(tensor));
  ASSERT_GT(values.size(), size_t{2} << 16);
  const auto state_with = [&](Precision precision, Master master) {
    Request r = request_for(1, 8, 2);
    r.precision = precision, r.master = master;
    const auto planned = plan_for(*model, r);
    return OpenTrainer(model, planned).state();
  };
  const auto at = [](const std::string& bytes, size_t i, auto value) {
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    return value;
  };
  for (const auto& [precision, master] : {std::pair{Precision::fp32, Master::exact},
                                          {Precision::fp16, Master::exact},
                                          {Precision::bf16, Master::exact},
                                          {Precision::bf16, Master::short_remainder}}) {
    const State state = state_with(precision, master);
    const std::string& own = state.at(name);
    const std::string whole = precision == Precision::fp32 ? own : state.at(name + ".master");
    size_t wrong = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const bool is_short = master == Master::short_remainder;
      const SplitValue split = split_master(is_short ? rounded_to_24_bits(values[i]) : values[i]);
      if (precision == Precision::fp32) wrong += at(own, i, 0.0f) != values[i];
      else if (precision == Precision::fp16)
        wrong += at(own, i, uint16_t{}) != to_f16(values[i]) || at(whole, i, 0.0f) != values[i];
      else if (is_short)
        wrong += at(own, i, uint16_t{}) != split.half ||
                 at(whole, i, int8_t{}) != static_cast<int8_t>(split.remainder >> 8);
      else wrong += at(own, i, uint16_t{}) != split.half || at(whole, i, int16_t{}) != split.remainder;
    }
    EXPECT_EQ(wrong, 0u) << name_of(precision) << ", master " << static_cast<int>(master);
  }
}

TEST(Filling, CodesOfManyPiecesEqualThoseOfTheWhole) {
  ModelSource source;
  source.config_json =
      R"({"model_type": "gpt2", "vocab_size": 61, "n_positions": 40, "n_embd": 64, "n_inner": 2111, )"
      R"("n_layer": 1, "n_head": 4})";
  source.adapters = adapters_of_all();
  const auto model = open_model(source);
  const std::string name = "transformer.h.0.mlp.c_fc.weight";
  const int tensor = *std::find_if(model->parameters().begin(), model->parameters().end(),
                                   [&](int t) { return model->graph().at(t).name == name; });
  const std::vector<float> values = read_all(*model, model->graph().at(tensor));
  const auto count = static_cast<int64_t>(values.size());
  ASSERT_GT(count, 2 << 16);
  for (const auto& [how, codes] :
       {std::pair{Quantize::nf4, kernels::WeightCodes::nf4}, {Quantize::int8, kernels::WeightCodes::int8}}) {
    Request r = request_for(1, 8, 2);
    r.quantize = how;
    const State state = OpenTrainer(model, plan_for(*model, r)).state();
    std::vector<uint8_t> expected(kernels::code_bytes(codes, values.size()));
    std::vector<float> scales(values.size() / kernels::weight_block);
    kernels::quantize_weights(codes, values.data(), count, expected.data(), scales.data());
    const std::string& found = state.at(name);
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), expected.size()), 0) << name_of(how);
    EXPECT_EQ(std::memcmp(found.data() + kernels::scales_begin(codes, count), scales.data(),
                          scales.size() * sizeof(float)),
              0)
        << name_of(how);
  }
}

// Parameters that a host writes are converted in the same way.
TEST(Filling, ParametersOfManyPiecesAreWritten) {
  const auto model = model_of(gpt2_with_vocabulary(2111));
  OpenTrainer trainer(model, plan_for(*model, request_for(1, 8, 2)));
  std::vector<float> values(2111 * 64);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  for (size_t p = 0; p < model->parameters().size(); ++p)
    if (model->graph().at(model->parameters()[p]).name == "transformer.wte.weight")
      trainer->write_parameter(p, 0, values.data(), values.size());
  const std::string written = trainer.state().at("transformer.wte.weight");
  ASSERT_EQ(written.size(), values.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(written.data(), values.data(), written.size()), 0);
}

// Long samples have tables of many pieces. Every position has its own angle.
TEST(Filling, AnglesOfLongSamplesBelongToTheirPositions) {
  constexpr int64_t positions = 2500;
  const auto model = model_of(
      R"({"model_type": "llama", "vocab_size": 61, "max_position_embeddings": 2500, "hidden_size": 64, )"
      R"("intermediate_size": 64,
                                  "num_hidden_layers": 1, "num_attention_heads": 1})");
  const auto planned = plan_for(*model, request_for(1, positions, 2));
  const OpenTrainer trainer(model, planned);
  const std::string bytes = trainer.bytes();
  ASSERT_EQ(planned->graph.rotary.size(), 1u);
  const RotaryTables& tables = planned->graph.rotary[0];
  const size_t frequencies = tables.inverse_frequencies.size();
  ASSERT_GT(static_cast<size_t>(positions) * frequencies, size_t{1} << 16);
  const Arena& arena = planned->programs.arena;
  for (const auto& [tensor, function] :
       {std::pair<int, double (*)(double)>{tables.cosine, std::cos}, {tables.sine, std::sin}}) {
    const char* const begin = bytes.data() + arena.persistent[arena.of_tensor[tensor]].offset;
    double most = 0;
    for (size_t i = 0; i < static_cast<size_t>(positions) * frequencies; ++i) {
      float value;
      std::memcpy(&value, begin + i * sizeof value, sizeof value);
      const float angle = static_cast<float>(i / frequencies) * tables.inverse_frequencies[i % frequencies];
      most = std::max(most, std::abs(static_cast<double>(value) - function(static_cast<double>(angle))));
    }
    EXPECT_LT(most, 1e-7);
  }
}

// ---- weights from files ----------------------------------------------------------------------------------

struct Weights {
  std::vector<SafetensorsEntry> entries;
  std::vector<std::string> data;
};

// Every tensor of the small GPT-2 in fp32: 0, 1, 2, …, 999, again and again, divided by 8.
Weights good_weights(const Model& model) {
  Weights w;
  for (int t : model.parameters()) {
    const Tensor& p = model.graph().at(t);
    std::vector<float> values(p.shape.elements());
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000) / 8;
    w.entries.push_back(
        {p.name, TensorDType::f32, {p.shape.dims.begin(), p.shape.dims.begin() + p.shape.rank}});
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
  // f16 and f64 represent these values exactly. bf16 has 8 significant bits, and the other bits are cut off.
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
        } else if (value > 0) {  // exact in half precision: at most 10 bits of mantissa
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

TEST_F(WeightFile, UnneededTensorsAreIgnored) {
  for (const char* name : {"transformer.h.0.attn.bias", "transformer.h.0.attn.masked_bias",
                           "transformer.h.999.attn.c_attn.weight", "vision.h.0.scale", "score.weight"}) {
    weights_.entries.push_back({name, TensorDType::u8, {4}});
    weights_.data.push_back("mask");
  }
  write(path_, weights_);
  expect_values(open_with(path_));
}

// The model that was saved used the unknown tensor; without it the results would differ.
TEST_F(WeightFile, UnknownTensorsOfABlockAreRefused) {
  for (const char* name :
       {"transformer.h.0.attn.c_attn.scales", "h.1.ln_3.weight", "transformer.h.0.mlp.c_fc.weight.absmax",
        "transformer.h.0.attn.c_attn.lora_A.weight"}) {
    Weights w = weights_;
    w.entries.push_back({name, TensorDType::u8, {4}});
    w.data.push_back("abcd");
    write(path_, w);
    expect_file_refused(std::string(": tensor ") + name + " is none of this gpt2");
  }
}

// A config without what the weights have, and what it then leaves out.
struct Undescribed {
  std::string described, lacking;  // two configs
  const char *tensor, *setting;
};

std::string with_setting(const std::string& config, const std::string& setting) {
  return "{" + setting + ", " + config.substr(1);
}

std::string replaced(std::string config, const std::string& from, const std::string& to) {
  EXPECT_NE(config.find(from), config.npos) << from;
  return config.replace(config.find(from), from.size(), to);
}

TEST(Weights, ThatTheConfigDoesNotDescribeAreRefused) {
  const std::string deberta = classifier_of(small_deberta()), norm = "\"norm_rel_ebd\": \"layer_norm\"",
                    modern = masked_of(small_modernbert()), bias = "\"classifier_bias\": true";
  const Undescribed cases[] = {
      {classifier_of(small_bert()), with_setting(classifier_of(small_bert()), "\"type_vocab_size\": 0"),
       "bert.embeddings.token_type_embeddings.weight", "type_vocab_size"},
      {with_setting(deberta, "\"type_vocab_size\": 2"), deberta,
       "deberta.embeddings.token_type_embeddings.weight", "type_vocab_size"},
      {deberta, replaced(deberta, norm, "\"norm_rel_ebd\": \"none\""), "deberta.encoder.LayerNorm.weight",
       "norm_rel_ebd"},
      {deberta, replaced(deberta, "\"relative_attention\": true", "\"relative_attention\": false"),
       "deberta.encoder.rel_embeddings.weight", "relative_attention"},
      {modern, with_setting(modern, "\"decoder_bias\": false"), "decoder.bias", "decoder_bias"},
      {with_setting(modern, bias), modern, "head.dense.bias", "classifier_bias"},
      {with_setting(modern, "\"norm_bias\": true"), modern, "model.embeddings.norm.bias", "norm_bias"},
      {with_setting(small_llama(), "\"mlp_bias\": true"), small_llama(), "model.layers.0.mlp.gate_proj.bias",
       "attention_bias or mlp_bias"},
  };
  for (const auto& [described, lacking, tensor, setting] : cases)
    for (const char* prefix : {"", "bert.", "deberta.", "model."}) {
      TemporaryDirectory folder;
      Weights w = good_weights(*model_of(described));
      // Files of a body alone lack the prefix.
      std::string name = tensor;
      if (*prefix && !name.starts_with(prefix)) continue;
      const size_t left_out = std::strlen(prefix);
      name = name.substr(left_out);
      for (SafetensorsEntry& e : w.entries)
        if (e.name.starts_with(prefix)) e.name = e.name.substr(left_out);
      write(folder / "model.safetensors", w);
      ModelSource source;
      source.config_json = described, source.weights = folder / "model.safetensors";
      EXPECT_TRUE(open_model(source));
      source.config_json = lacking;
      const auto refused = Model::open(source);
      ASSERT_FALSE(refused) << name;
      const std::string& message = refused.error().message;
      EXPECT_NE(message.find(": tensor " + name + " is none of this "), message.npos) << message;
      EXPECT_NE(message.find("the config (" + std::string(setting) + ") describes no"), message.npos)
          << message;
    }
}

TEST(Weights, OfOtherPartsAreNotRefused) {
  struct Case {
    std::string config;
    std::vector<const char*> others;
  };
  const Case cases[] = {
      {masked_of(small_bert()),
       {"bert.embeddings.position_ids", "bert.pooler.dense.weight", "cls.seq_relationship.weight",
        "cls.predictions.decoder.bias"}},
      {token_classifier_of(small_bert()), {"bert.pooler.dense.bias", "cls.predictions.bias"}},
      {masked_of(small_albert()), {"albert.pooler.weight", "albert.embeddings.position_ids"}},
      {masked_of(small_electra()), {"discriminator_predictions.dense.weight"}},
      {classifier_of(small_deberta()),
       {"deberta.embeddings.position_embeddings.weight", "mask_predictions.dense.weight",
        "cls.predictions.decoder.weight"}},
      {small_llama(),
       {"model.vision_tower.blocks.0.weight", "model.mm_projector.0.weight", "vision.weight", "v_head.weight",
        "model.rotary_emb.inv_freq"}},
  };
  for (const auto& [config, others] : cases) {
    TemporaryDirectory folder;
    Weights w = good_weights(*model_of(config));
    for (const char* name : others) {
      w.entries.push_back({name, TensorDType::u8, {4}});
      w.data.push_back("part");
    }
    write(folder / "model.safetensors", w);
    ModelSource source;
    source.config_json = config, source.weights = folder / "model.safetensors";
    EXPECT_TRUE(open_model(source));
  }
}

// transformers' head for the labels of tokens has a bias, and that for texts has none.
TEST(Weights, OfAReplacedHeadAreNotRefused) {
  TemporaryDirectory folder;
  ModelSource source;
  source.config_json = token_classifier_of(small_llama()), source.weights = folder / "model.safetensors";
  write(source.weights, good_weights(*model_of(source.config_json)));
  source.new_head = true, source.task = Task::label, source.label_count = 3;
  EXPECT_TRUE(open_model(source));
  source.new_head = false, source.task = {}, source.label_count = 0;
  source.config_json = classifier_of(small_llama());
  const auto refused = Model::open(source);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find(": tensor score.bias is none of this llama"), std::string::npos)
      << refused.error().message;
}

// An unknown type of one byte is written like U8, which the writer knows.
TEST_F(WeightFile, UnknownTypesMatterOnlyForNeededTensors) {
  weights_.entries.push_back({"transformer.scales", TensorDType::u8, {4}});
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
  rewrite("\"F32\"", "\"FP8\"");  // in the first tensor
  expect_file_refused(": tensor transformer.wte.weight: expected dtype F32, BF16, F16 or F64, found FP8");
}

// A file may hold a tied tensor under both names, or under either. If both have different values, one would
// be lost.
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
  EXPECT_EQ(status.error().message,
            path_ +
                ": tensor lm_head.weight: expected the values of transformer.wte.weight, found others: "
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
  std::filesystem::create_directory(folder_ / "a.safetensors");  // a folder, not a file
  ModelSource source;
  source.source = folder_.path();
  expect_values(Model::open(source));
  expect_values(open_with(folder_.path()));
  // Shards without an index, or two models, are refused: random weights must not replace them.
  write(folder_ / "more.safetensors", weights_);
  for (const auto& model : {Model::open(source), open_with(folder_.path())}) {
    ASSERT_FALSE(model);
    EXPECT_EQ(model.error().code, Code::bad_argument);
    EXPECT_EQ(model.error().message, folder_.path() +
                                         ": expected model.safetensors, model.safetensors.index.json or one "
                                         "other .safetensors file, found 2, "
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
}  // namespace stw::weights_test
