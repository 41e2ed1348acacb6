// Adapters in models, folders and runs: training, writing, reading, and refusals by name.
#include <cmath>

#include "src/weights/adapter_files.h"
#include "src/weights/merge.h"
#include "tests/src/small_models.h"

namespace stw::adapters_test {
namespace {

using namespace testing_tools;

constexpr int64_t batch_size = 4, sequence = 24;

std::vector<float> read_all(const Model& model, const Tensor& t) {
  std::vector<float> values(t.shape.elements());
  EXPECT_TRUE(model.read(t, 0, values.size(), values.data()));
  return values;
}

Result<std::shared_ptr<const Model>> open(const std::string& folder, const std::string& adapter = "") {
  ModelSource source;
  source.source = folder;
  source.adapter = adapter;
  return Model::open(source);
}

std::shared_ptr<const Planned> plan_of(const Model& model, Precision precision = Precision::fp32) {
  Request r = request_for(batch_size, sequence, 2);
  r.precision = precision;
  return plan_for(model, r);
}

std::vector<float> logits_of(const std::shared_ptr<const Model>& model) {
  OpenTrainer trainer(model, plan_of(*model));
  const GlobalBatch batch = random_batch(3, 1, sequence);
  const auto logits = trainer->logits(batch.tokens.data(), sequence);
  EXPECT_TRUE(logits);
  return {*logits, *logits + small_vocabulary};
}

double most_apart(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return most;
}

// A model in a folder, and adapters trained for it in another.
class AdapterFolder : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string config = std::string(GetParam()) == "gpt2"    ? small_gpt2()
                               : std::string(GetParam()) == "bloom" ? small_bloom()
                                                                    : small_qwen3();
    const auto model = model_of(config);
    OpenTrainer trainer(model, plan_of(*model));
    std::vector<double> figures;  // after some steps the norms differ
    ASSERT_TRUE(take_step(*trainer, random_batch(1, batch_size, sequence), batch_size, figures));
    ASSERT_TRUE(trainer->export_model(base_));
    ModelSource source;
    source.source = base_;
    source.adapters = adapters_of_all();
    const auto adapted = open_model(source);
    OpenTrainer of_adapters(adapted, plan_of(*adapted));
    for (uint64_t step = 0; step < 3; ++step)
      ASSERT_TRUE(
          take_step(*of_adapters, random_batch(10 + step, batch_size, sequence), batch_size, figures));
    ASSERT_TRUE(of_adapters->export_model(adapters_));
    state_ = of_adapters.state();
  }
  TemporaryDirectory folder_;
  const std::string base_ = folder_ / "base", adapters_ = folder_ / "adapters";
  State state_;
};

TEST_P(AdapterFolder, IsReadAsItWasTrained) {
  EXPECT_TRUE(holds_adapters(adapters_));
  EXPECT_FALSE(holds_adapters(base_));
  const auto alone = open(adapters_), with_base = open(base_, adapters_);
  ASSERT_TRUE(alone && with_base) << alone.error().message;
  for (const auto& model : {*alone, *with_base}) {
    EXPECT_TRUE(model->has_weights());
    EXPECT_EQ(model->base(), absolute_path(base_));
    EXPECT_EQ(model->config().adapters.rank, 3);
    EXPECT_EQ(model->config().adapters.scale(), 2);
    OpenTrainer trainer(model, plan_of(*model));
    State state = trainer.state(), expected = state_;
    std::erase_if(state, [](const auto& t) {
      return t.first.find(".first") != std::string::npos || t.first.find(".second") != std::string::npos;
    });
    std::erase_if(expected, [](const auto& t) {
      return t.first.find(".first") != std::string::npos || t.first.find(".second") != std::string::npos;
    });
    EXPECT_EQ(differences(state, expected), "");
  }
}

// B·A becomes part of the weights.
TEST_P(AdapterFolder, Merges) {
  const auto model = open(adapters_), base = open(base_);
  ASSERT_TRUE(model && base);
  ASSERT_TRUE(write_merged(**model, folder_ / "merged"));
  const auto merged = open(folder_ / "merged");
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_FALSE((*merged)->graph().has_adapters());
  const std::vector<float> expected = logits_of(*model);
  EXPECT_LE(most_apart(logits_of(*merged), expected), 1e-5);
  EXPECT_GT(most_apart(logits_of(*base), expected), 1e-3);
  // A merged model has the types of the base model's files.
  const auto half = model_of(small_llama());
  OpenTrainer trainer(half, plan_of(*half, Precision::bf16));
  ASSERT_TRUE(trainer->export_model(folder_ / "half"));
  ModelSource source;
  source.source = folder_ / "half";
  source.adapters = adapters_of_some();
  const auto adapted = open_model(source);
  ASSERT_TRUE(write_merged(*adapted, folder_ / "half_merged"));  // B is 0
  EXPECT_TRUE(file_bytes(folder_ / "half_merged" + "/model.safetensors") ==
              file_bytes(folder_ / "half" + "/model.safetensors"));
  for (const std::string& place : {folder_ / "half", adapters_}) {
    const auto refused = write_merged(*adapted, place);
    ASSERT_FALSE(refused) << place;
    EXPECT_EQ(refused.error().code, Code::bad_argument);
  }
}

// Matrices are merged some rows at a time. Real models need many such pieces, the last of them short.
TEST(Merge, MatricesOfManyPieces) {
  TemporaryDirectory folder;
  ModelSource source;
  source.config_json =
      R"({"model_type": "gpt2", "vocab_size": 61, "n_positions": 40, "n_embd": 64, "n_inner": 5000, )"
      R"("n_layer": 1, "n_head": 4})";
  const auto base = open_model(source);
  source.source = folder / "base";
  OpenTrainer of_base(base, plan_of(*base));
  ASSERT_TRUE(of_base->export_model(source.source));
  source.config_json.clear();
  source.adapters = adapters_of_all();
  const auto adapted = open_model(source);
  OpenTrainer trainer(adapted, plan_of(*adapted));
  std::vector<double> figures;
  for (uint64_t step = 0; step < 3; ++step)
    ASSERT_TRUE(take_step(*trainer, random_batch(10 + step, batch_size, sequence), batch_size, figures));
  ASSERT_TRUE(trainer->export_model(folder / "adapters"));
  const auto model = open(folder / "adapters");
  ASSERT_TRUE(model) << model.error().message;
  ASSERT_TRUE(write_merged(**model, folder / "merged"));
  const auto merged = open(folder / "merged");
  ASSERT_TRUE(merged) << merged.error().message;
  const std::vector<float> expected = logits_of(*model);
  EXPECT_LE(most_apart(logits_of(*merged), expected), 1e-5);
  EXPECT_GT(most_apart(logits_of(base), expected), 1e-3);
}

// A checkpoint keeps all bits. An exported folder has the adapters in the precision of the run.
TEST_P(AdapterFolder, IsTrainedFurther) {
  const auto model = open(adapters_);
  ASSERT_TRUE(model);
  OpenTrainer trainer(*model, plan_of(**model));
  std::vector<double> figures;
  const State before = trainer.state();
  ASSERT_TRUE(take_step(*trainer, random_batch(20, batch_size, sequence), batch_size, figures));
  for (const auto& [name, bytes] : trainer.state()) {
    const bool is_of_adapter = name.find(".lora_") != std::string::npos;
    EXPECT_EQ(bytes != before.at(name), is_of_adapter) << name;
  }
  ASSERT_TRUE(trainer->export_model(folder_ / "further"));
  EXPECT_TRUE(open(folder_ / "further"));
}

TEST_P(AdapterFolder, UnknownSettingsAreRefusedByName) {
  const std::string good = file_bytes(adapter_config(adapters_));
  const auto refused = [&](const std::string& key, Json value, const std::string& part) {
    auto json = parse_json(good);
    ASSERT_TRUE(json);
    json->set(key, std::move(value));
    put_file(adapter_config(adapters_), to_string(*json, 2));
    const auto model = open(adapters_);
    ASSERT_FALSE(model) << key;
    EXPECT_TRUE(model.error().message.starts_with(adapters_)) << model.error().message;
    EXPECT_NE(model.error().message.find(part), std::string::npos) << model.error().message;
  };
  refused("peft_type", "IA3", "peft_type \"IA3\" is not supported");
  refused("bias", "all", "bias \"all\"");
  refused("use_dora", true, "use_dora");
  refused("modules_to_save", Json(Json::Array{"lm_head"}), "modules_to_save");
  refused("rank_pattern", Json::object().set("q_proj", 4), "rank_pattern");
  refused("init_lora_weights", "pissa_niter_4", "init_lora_weights \"pissa_niter_4\"");
  refused("init_lora_weights", "OLoRA", "init_lora_weights \"OLoRA\"");
  refused("r", 0, "r is 0");
  refused("r", 5, "expected shape [5, ");
  refused("r", "8", "\"r\": expected");
  refused("lora_alpha", -1, "alpha");
  // A preset of that name would have random weights.
  refused("base_model_name_or_path", "gpt2", "its model, \"gpt2\", is no folder here");
  refused("base_model_name_or_path", nullptr, "names no model");
  refused("base_model_name_or_path", adapters_, "is a folder of adapters too");
  put_file(adapter_config(adapters_), "{");
  EXPECT_FALSE(open(adapters_));
  // Keys that change no numbers are accepted.
  put_file(adapter_config(adapters_), to_string(parse_json(good)
                                                    ->set("rank_pattern", Json::object())
                                                    .set("modules_to_save", nullptr)
                                                    .set("revision", "x"),
                                                2));
  EXPECT_TRUE(open(adapters_));
}

// Source: peft, tuners/lora/config.py. Files of other tools leave out defaults.
TEST_P(AdapterFolder, MissingKeysHavePeftsDefaults) {
  auto json = parse_json(file_bytes(adapter_config(adapters_)));
  ASSERT_TRUE(json);
  for (const char* key : {"r", "lora_alpha", "lora_dropout", "use_rslora", "use_dora", "bias"})
    json->erase(key);
  put_file(adapter_config(adapters_), to_string(*json, 2));
  const auto config = read_adapter_config(adapters_);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->adapters.rank, 8);
  EXPECT_EQ(config->adapters.alpha, 8);
  EXPECT_EQ(config->adapters.dropout, 0);
  EXPECT_FALSE(config->adapters.rank_stabilised);
}

// The base must be a folder with weights.
TEST_P(AdapterFolder, TheirBaseIsOneFolder) {
  const auto refused = [&](const ModelSource& source, const std::string& part) {
    const auto model = Model::open(source);
    ASSERT_FALSE(model) << part;
    EXPECT_NE(model.error().message.find(part), std::string::npos) << model.error().message;
  };
  ModelSource source;
  source.source = adapters_;
  source.weights = base_;
  refused(source, "where its weights must be");
  source.source = base_;
  source.adapters = adapters_of_all();
  refused(source, "where its weights must be");
  source.adapters = {};
  source.weights = adapters_;
  refused(source, "holds adapters (--adapter)");
  source = {};
  source.source = base_ + "/config.json";
  source.adapter = adapters_;
  refused(source, "has no weights");
  source.adapter = base_;
  refused(source, "expected a folder of adapters");
  put_file(adapters_ + "/model.safetensors", file_bytes(base_ + "/model.safetensors"));
  source = {};
  source.source = adapters_;
  refused(source, "which of them is meant?");
}

TEST_P(AdapterFolder, TensorsAreChecked) {
  const std::string path = adapter_weights(adapters_);
  const auto rewrite = [&](const std::function<void(std::vector<SafetensorsEntry>&)>& change) {
    auto reader = SafetensorsReader::open(path);
    ASSERT_TRUE(reader);
    std::vector<SafetensorsEntry> entries;
    std::string data;
    for (const SafetensorsInfo& t : reader->tensors()) {
      entries.push_back({t.name, *t.dtype, t.shape});
      std::string bytes(t.bytes, '\0');
      ASSERT_TRUE(reader->read(t, 0, std::as_writable_bytes(std::span(bytes))));
      data += bytes;
    }
    change(entries);
    auto writer = SafetensorsWriter::create(path, entries, {});
    ASSERT_TRUE(writer && writer->write(std::as_bytes(std::span(data))) && writer->finish());
  };
  const auto refused = [&](const std::string& part) {
    const auto model = open(adapters_);
    ASSERT_FALSE(model) << part;
    EXPECT_TRUE(model.error().message.starts_with(path)) << model.error().message;
    EXPECT_NE(model.error().message.find(part), std::string::npos) << model.error().message;
  };
  // The wrapper's prefix of names may be absent.
  rewrite([](auto& entries) {
    for (auto& e : entries) e.name = e.name.substr(std::string("base_model.model.").size());
  });
  EXPECT_TRUE(open(adapters_));
  const std::string good = file_bytes(path);
  rewrite([](auto& entries) { entries[0].name += ".x"; });
  refused("is none of a low-rank adapter");
  put_file(path, good);
  rewrite([](auto& entries) { entries[0].shape = {entries[0].shape[0] * entries[0].shape[1]}; });
  refused("expected shape [");
  put_file(path, good);
  rewrite([](auto& entries) { entries[0].name = "some.other.module.lora_A.weight"; });
  const auto unknown = open(adapters_);
  ASSERT_FALSE(unknown);
  EXPECT_TRUE(unknown.error().message.starts_with(adapters_)) << unknown.error().message;
  EXPECT_NE(unknown.error().message.find("some.other.module"), std::string::npos) << unknown.error().message;
}

INSTANTIATE_TEST_SUITE_P(Models, AdapterFolder, testing::Values("gpt2", "qwen3", "bloom"),
                         [](const auto& info) { return std::string(info.param); });

// Before training, a model with adapters computes the same as the model.
TEST(NewAdapters, ChangeNothingBeforeTheFirstStep) {
  for (const std::string& config : {small_gpt2(), small_llama(), small_qwen3()}) {
    const auto plain = model_of(config), model = model_of({config, adapters_of_all()});
    EXPECT_EQ(logits_of(plain), logits_of(model));
    const auto same = model_of({config, adapters_of_all()}), other = model_of({config, adapters_of_all()}, 8);
    for (int t : model->parameters()) {
      const Tensor& p = model->graph().at(t);
      if (p.adapter_of < 0) continue;
      const std::vector<float> values = read_all(*model, p);
      EXPECT_EQ(values, read_all(*same, p));
      double squares = 0;
      for (float v : values) squares += static_cast<double>(v) * static_cast<double>(v);
      if (p.name.ends_with("lora_B.weight")) {
        EXPECT_EQ(squares, 0) << p.name;
        continue;
      }
      EXPECT_NE(values, read_all(*other, p)) << p.name;
      const double n = static_cast<double>(values.size()),
                   expected = 1 / std::sqrt(3 * static_cast<double>(p.shape[1]));
      EXPECT_NEAR(std::sqrt(squares / n), expected, 4 * expected / std::sqrt(2 * n)) << p.name;
    }
  }
}

}  // namespace
}  // namespace stw::adapters_test
