// Encoders as classifiers: texts that lie end to end in samples, their bits, their answers and their files.
// classifier_test.cpp compares them with transformers.
#include "src/models/encoder/encoder.h"
#include "planner/plan/plan_file.h"
#include "src/models/encoder/modernbert.h"
#include "src/weights/adapter_files.h"
#include "src/weights/merge.h"
#include "tests/src/models/golden.h"
#include "tests/src/small_models.h"

namespace stw::encoder_test {
namespace {

using namespace testing_tools;

constexpr int64_t sequence = 40;

// Texts of 1 to 20 tokens end to end in samples, each with a label. The rest of a sample is documents of one
// token.
struct Packed {
  GlobalBatch batch;
  struct Place {
    int64_t sample, begin, length;
    int32_t label;
  };
  std::vector<Place> texts;
};
Packed packed_batch(uint64_t seed, int64_t samples, bool with_types) {
  Packed packed;
  GlobalBatch& b = packed.batch = random_batch(seed, samples, sequence);
  b.targets.assign(b.tokens.size(), kernels::ignored_target);
  b.positions.assign(b.tokens.size(), 0);
  if (with_types) b.token_types.assign(b.tokens.size(), 0);
  std::mt19937 random(static_cast<uint32_t>(seed));
  for (int64_t s = 0; s < samples; ++s)
    for (int64_t begin = 0, length; begin + (length = 1 + static_cast<int64_t>(random() % 20)) <= sequence;
         begin += length) {
      const auto at = static_cast<size_t>(s * sequence + begin);
      // The label depends on the last token, which the first token must attend to.
      const int32_t label =
          b.tokens[at + static_cast<size_t>(length) - 1] % static_cast<int32_t>(small_labels);
      b.targets[at] = label;
      packed.texts.push_back({s, begin, length, label});
      for (int64_t i = 0; i < length; ++i) {
        b.positions[at + static_cast<size_t>(i)] = static_cast<int32_t>(i);
        if (with_types) b.token_types[at + static_cast<size_t>(i)] = i > length / 2;
      }
    }
  return packed;
}

bool has_types(const Model& model) { return model.config().token_types > 1; }

class Encoder : public testing::TestWithParam<NumericsCase> {};

TEST_P(Encoder, TrainsTheSameBitsHoweverTheBatchIsCutAndAfterACheckpoint) {
  const auto model = model_of(GetParam().config);
  Request r = GetParam().request(6, sequence, 2);
  const auto batch_of = [&](uint64_t step) { return packed_batch(10 + step, 6, has_types(*model)).batch; };
  expect_same_however_cut(model, r, batch_of);
}

INSTANTIATE_TEST_SUITE_P(
    Models, Encoder,
    testing::Values(
        NumericsCase{"bert", classifier_of(small_bert("0.1")), Precision::fp32, 32},
        NumericsCase{"roberta", classifier_of(small_roberta("0.1")), Precision::bf16, 8},
        NumericsCase{"electra_adapters",
                     {classifier_of(small_electra("0.1")), adapters_of_all(0.1)},
                     Precision::bf16,
                     8},
        NumericsCase{"distilbert_int8",
                     {classifier_of(small_distilbert()), adapters_of_all()},
                     Precision::fp32,
                     32,
                     Optimizer::adamw,
                     {},
                     Master::exact,
                     Gradients::fp32,
                     false,
                     Quantize::int8},
        NumericsCase{"distilbert", classifier_of(small_distilbert("0.1")), Precision::fp16, 32},
        NumericsCase{"electra", classifier_of(small_electra()), Precision::fp32, 8},
        NumericsCase{"deberta", classifier_of(small_deberta("0.1")), Precision::fp32, 32},
        NumericsCase{"deberta", classifier_of(small_deberta("0.1")), Precision::bf16, 8},
        NumericsCase{
            "deberta_frozen",
            classifier_of(small_deberta("0.1")),
            Precision::bf16,
            8,
            Optimizer::adamw,
            {{"embeddings", true, {}, {}, {}}, {"blocks.0-1", true, {}, {}, {}}, {"head", {}, {}, {}, 32}}},
        NumericsCase{"deberta_apart", classifier_of(small_deberta("0.1", false)), Precision::fp16, 32},
        NumericsCase{"deberta_bf16_gradients",
                     classifier_of(small_deberta("0.1")),
                     Precision::bf16,
                     8,
                     Optimizer::adamw,
                     {},
                     Master::short_remainder,
                     Gradients::bf16},
        NumericsCase{"deberta_int8",
                     {classifier_of(small_deberta("0.1")), adapters_of_all(0.1)},
                     Precision::bf16,
                     32,
                     Optimizer::adamw,
                     {},
                     Master::exact,
                     Gradients::fp32,
                     false,
                     Quantize::int8},
        NumericsCase{"albert", classifier_of(small_albert("0.1")), Precision::bf16, 8},
        NumericsCase{"modernbert", classifier_of(small_modernbert("0.1")), Precision::fp32, 32},
        NumericsCase{"modernbert", classifier_of(small_modernbert()), Precision::bf16, 8}),
    case_name);

// A text's logits and its part of the gradients do not depend on the other texts in its sample, nor on its
// place there.
TEST(Encoder, ATextDoesNotDependOnOthers) {
  for (const std::string& config : small_encoders()) {
    const auto model = model_of(config);
    const Packed packed = packed_batch(3, 4, has_types(*model));
    const size_t count = packed.texts.size();
    Request r = request_for(4, sequence, 2);
    GradientSums together, alone;
    GradientSums* sums = &together;
    std::shared_ptr<const Planned> planned = plan_for(*model, r);
    TrainerOptions options;
    options.gradient_hook = [&](const GradientView& view) {
      *sums = gradients_in(*planned, view);
      return true;
    };
    auto trainer = trainer_for(model, planned, options);
    std::vector<Text> texts;
    for (const auto& [sample, begin, length, label] : packed.texts) {
      const auto at = static_cast<size_t>(sample * sequence + begin);
      texts.push_back({packed.batch.tokens.data() + at, static_cast<uint64_t>(length),
                       has_types(*model) ? packed.batch.token_types.data() + at : nullptr});
    }
    std::vector<float> all(count * small_labels), one(small_labels);
    ASSERT_TRUE(trainer->classify(texts, all.data()));
    for (size_t k = 0; k < count; ++k) {
      ASSERT_TRUE(trainer->classify({&texts[k], 1}, one.data()));
      for (size_t i = 0; i < one.size(); ++i) EXPECT_EQ(all[k * one.size() + i], one[i]) << "text " << k;
    }
    ASSERT_TRUE(trainer->step(packed.batch.source(), 4, 1e-3));
    // Each text in a sample of its own.
    GlobalBatch apart;
    apart.sequence = sequence;
    for (size_t k = 0; k < count; ++k) {
      const auto& [sample, begin, length, label] = packed.texts[k];
      const auto at = packed.batch.tokens.begin() + (sample * sequence + begin);
      apart.tokens.insert(apart.tokens.end(), at, at + length);
      apart.tokens.resize((k + 1) * sequence, 1);
      apart.targets.resize(k * sequence, kernels::ignored_target);
      apart.targets.push_back(label);
      for (int64_t i = 0; i < sequence; ++i)
        apart.positions.push_back(i < length ? static_cast<int32_t>(i) : 0);
      if (!has_types(*model)) continue;
      const auto types = packed.batch.token_types.begin() + (sample * sequence + begin);
      apart.token_types.insert(apart.token_types.end(), types, types + length);
      apart.token_types.resize((k + 1) * sequence, 0);
    }
    apart.targets.resize(count * sequence, kernels::ignored_target);
    r.global_batch = static_cast<int64_t>(count);
    planned = plan_for(*model, r);
    sums = &alone;
    trainer = trainer_for(model, planned, options);
    ASSERT_TRUE(trainer->step(apart.source(), count, 1e-3));
    ASSERT_EQ(together.size(), alone.size());
    for (const auto& [name, values] : together) {
      const std::vector<double>& others = alone[name];
      ASSERT_EQ(values.size(), others.size());
      // A key bias has only rounding errors as its gradient.
      const std::string other = beside_key_bias(name);
      double most = 0, off = 0;
      for (const double x : other.empty() ? values : together[other]) most = std::max(most, std::fabs(x));
      for (size_t i = 0; i < values.size(); ++i) off = std::max(off, std::fabs(values[i] - others[i]));
      EXPECT_LE(off, 2e-6 * most) << name;
    }
  }
}

TEST(Encoder, LearnsAndItsFolderAnswersAlike) {
  TemporaryDirectory folder;
  const auto model = model_of(classifier_of(small_bert()));
  Request request = request_for(16, sequence, 2);
  // Documents ask for positions. An encoder has them in any case, and asking again changes nothing.
  request.inputs.positions = true;
  auto trainer = trainer_for(model, plan_for(*model, request));
  double last = 0;
  for (uint64_t step = 0; step < 300; ++step) {
    const auto result = trainer->step(packed_batch(step, 16, true).batch.source(), 16, 2e-3);
    ASSERT_TRUE(result) << result.error().message;
    last = result->loss;
  }
  EXPECT_LT(last, 0.7);
  ASSERT_TRUE(trainer->export_model(folder / "out"));
  ModelSource source;
  source.source = folder / "out";
  const auto again = open_model(source);
  ASSERT_TRUE(again);
  auto opened = trainer_for(again, plan_for(*again, request_for(1, sequence)));
  const Packed unseen = packed_batch(1000, 8, true);
  int hits = 0;
  for (const auto& [sample, begin, length, label] : unseen.texts) {
    const auto at = static_cast<size_t>(sample * sequence + begin);
    const Text text{unseen.batch.tokens.data() + at, static_cast<uint64_t>(length),
                    unseen.batch.token_types.data() + at};
    std::vector<float> logits(small_labels), theirs(small_labels);
    ASSERT_TRUE(trainer->classify({&text, 1}, logits.data()));
    ASSERT_TRUE(opened->classify({&text, 1}, theirs.data()));
    EXPECT_EQ(logits, theirs);
    hits += std::max_element(logits.begin(), logits.end()) - logits.begin() == label;
  }
  EXPECT_GE(hits, static_cast<int>(unseen.texts.size() * 8 / 10));
}

// ---- adapters --------------------------------------------------------------------------------------------

std::shared_ptr<const Model> open_adapters(const std::string& source, Adapters adapters = {},
                                           const std::string& adapter = {}, size_t labels = 0) {
  ModelSource s;
  s.source = source, s.adapters = std::move(adapters), s.adapter = adapter, s.label_count = labels;
  return open_model(s);
}

std::string refusal(const std::string& source) {
  ModelSource s;
  s.source = source;
  const auto opened = Model::open(s);
  return opened ? "accepted" : opened.error().message;
}

std::vector<float> answers(const std::shared_ptr<const Model>& model) {
  auto trainer = trainer_for(model, plan_for(*model, request_for(1, sequence)));
  const Packed packed = packed_batch(77, 2, has_types(*model));
  std::vector<Text> texts;
  for (const auto& [sample, begin, length, label] : packed.texts)
    texts.push_back(
        {packed.batch.tokens.data() + sample * sequence + begin, static_cast<uint64_t>(length), nullptr});
  std::vector<float> logits(texts.size() * model->config().labels.size());
  EXPECT_TRUE(trainer->classify(texts, logits.data()));
  return logits;
}

// Trains for some steps and exports to a folder.
void train_into(const std::string& folder, const std::shared_ptr<const Model>& model, uint64_t steps) {
  auto trainer = trainer_for(model, plan_for(*model, request_for(4, sequence, 2)));
  std::vector<double> figures;
  for (uint64_t step = 0; step < steps; ++step)
    ASSERT_TRUE(take_step(*trainer, batch_for(*model, step, 4, sequence), 4, figures));
  ASSERT_TRUE(trainer->export_model(folder));
}

std::string list_of(const std::string& folder, const char* key) {
  return to_string(*parse_json(file_bytes(adapter_config(folder)))->find(key), 0);
}

TEST(EncoderAdapters, AreReadAndMergedAsTheyWereTrained) {
  for (const auto& [config, targets] :
       {std::pair{small_bert(), R"(["dense","key","query","value"])"},
        {small_roberta(), R"(["intermediate.dense","key","output.dense","query","value"])"},
        {small_distilbert(), R"(["k_lin","lin1","lin2","out_lin","q_lin","v_lin"])"},
        {small_electra(),
         R"(["embeddings_project","intermediate.dense","key","output.dense","query","value"])"},
        {small_deberta(), R"(["dense","key_proj","query_proj","value_proj"])"},
        {small_modernbert(), R"(["Wi","Wo","Wqkv","dense"])"}}) {
    TemporaryDirectory folder;
    const std::string base = folder / "base", out = folder / "out", merged = folder / "merged";
    train_into(base, model_of(classifier_of(config)), 1);
    const auto adapted = open_adapters(base, adapters_of_all());
    EXPECT_EQ(answers(adapted), answers(open_adapters(base)));  // B is 0
    auto trainer = trainer_for(adapted, plan_for(*adapted, request_for(4, sequence, 2)));
    std::vector<double> figures;
    for (uint64_t step = 0; step < 3; ++step)
      ASSERT_TRUE(take_step(*trainer, batch_for(*adapted, step, 4, sequence), 4, figures));
    ASSERT_TRUE(trainer->export_model(out));
    EXPECT_EQ(list_of(out, "target_modules"), targets);
    EXPECT_EQ(list_of(out, "modules_to_save"), R"(["classifier","score"])");
    EXPECT_EQ(list_of(out, "task_type"), "\"SEQ_CLS\"");
    const std::vector<float> trained = answers(open_adapters(out));
    EXPECT_NE(trained, answers(adapted));
    EXPECT_EQ(answers(open_adapters(base, {}, out)), trained);
    ASSERT_TRUE(write_merged(*open_adapters(out), merged));
    const std::vector<float> of_merged = answers(open_adapters(merged));
    EXPECT_LE(relative(of_merged.data(), trained.data(), trained.size()), 1e-4);
  }
}

// A trained pooler is frozen, as in PEFT. A pooler that no file has is trained, and is stored with the
// adapters.
TEST(EncoderAdapters, APoolerThatNoFileHasIsTrained) {
  TemporaryDirectory folder;
  const std::string base = folder_of("encoder_bert_mlm"), out = folder / "out";
  Adapters some = adapters_of_some_of_encoders();
  const auto model = open_adapters(base, some, {}, 3);
  train_into(out, model, 2);
  EXPECT_EQ(list_of(out, "target_modules"), R"(["output.dense","query","value"])");
  EXPECT_EQ(list_of(out, "modules_to_save"), R"(["classifier","score","bert.pooler.dense"])");
  auto written = SafetensorsReader::open(adapter_weights(out));
  ASSERT_TRUE(written && written->find("base_model.model.bert.pooler.dense.weight") &&
              written->find("base_model.model.classifier.bias"));
  const auto again = open_adapters(base, {}, out);
  EXPECT_EQ(again->graph().trainable_count(), model->graph().trainable_count());
  EXPECT_NE(answers(again), answers(model));
  // A model that has a pooler does not train it: it is not in PEFT's default list, and may have an adapter.
  const auto has_one = open_adapters(folder_of("encoder_bert"), some);
  for (const Tensor& t : has_one->graph().tensors)
    EXPECT_FALSE(t.role == Role::parameter && t.name.find("pooler") != std::string::npos &&
                 (t.trainable || t.of_adapters))
        << t.name;
  const std::string peft = file_bytes(folder_of("adapter_encoder_bert") + "/adapter_config.json"),
                    weights = file_bytes(folder_of("adapter_encoder_bert") + "/adapter_model.safetensors");
  const auto refused = [&](const char* key, Json value) {
    auto json = parse_json(peft);
    json->set("base_model_name_or_path", folder_of("encoder_bert")).set(key, std::move(value));
    put_file(adapter_config(out), to_string(*json, 2));
    put_file(adapter_weights(out), weights);
    std::remove(adapter_labels(out).c_str());
    return refusal(out);
  };
  EXPECT_EQ(refused("revision", nullptr), "accepted");
  EXPECT_EQ(refused("modules_to_save", Json(Json::Array{"classifier", "pooler"})), "accepted");
  EXPECT_EQ(refused("modules_to_save", Json(Json::Array{"classifier", "embeddings"})),
            adapter_config(out) + ": modules_to_save \"embeddings\" is not supported");
  EXPECT_EQ(refused("modules_to_save", Json(Json::Array{"dense"})),
            adapter_config(out) + ": modules_to_save \"dense\" is not supported");
  EXPECT_EQ(refused("task_type", "CAUSAL_LM"),
            adapter_config(out) + ": task_type \"CAUSAL_LM\" with a head is not supported");
  EXPECT_EQ(refused("task_type", "TOKEN_CLS"),
            folder_of("encoder_bert") + "/config.json: the model's task is label; token-label was given");
  EXPECT_EQ(refused("base_model_name_or_path", folder_of("encoder_bert_mlm")),
            adapter_weights(out) + ": tensor bert.pooler.dense.weight is missing, and the model has none");
  EXPECT_NE(refused("base_model_name_or_path", folder_of("encoder_distilbert")).find("there are k_lin"),
            std::string::npos);
}

// A parameter that blocks share is stored once, under transformers' names. It has one state, and a gradient
// for each use.
TEST(Encoder, SharedParametersAreStoredOnce) {
  TemporaryDirectory folder;
  ModelSource source;
  source.source = folder_of("encoder_albert");
  const auto model = open_model(source);
  ASSERT_TRUE(model);
  const auto planned = plan_for(*model, request_for(2, sequence));
  const auto trainer = trainer_for(model, planned);
  ASSERT_TRUE(trainer->export_model(folder / "out"));
  auto theirs = SafetensorsReader::open(folder_of("encoder_albert") + "/model.safetensors"),
       ours = SafetensorsReader::open(folder / "out/model.safetensors");
  ASSERT_TRUE(theirs && ours);
  ASSERT_EQ(ours->tensors().size(), theirs->tensors().size());
  EXPECT_EQ(model->parameters().size(), theirs->tensors().size());
  for (const SafetensorsInfo& t : theirs->tensors())
    EXPECT_EQ(read_tensor<float>(*ours, t.name), read_tensor<float>(*theirs, t.name)) << t.name;
  uint64_t states = 0, gradients = 0;
  for (const Buffer& b : planned->programs.arena.persistent)
    states += b.owner == MemoryClass::optimizer, gradients += b.owner == MemoryClass::gradients;
  EXPECT_EQ(states, 2 * model->parameters().size());
  constexpr uint64_t of_block = 16, layers = 3;
  EXPECT_EQ(gradients, model->parameters().size() + of_block * (layers - 1));
}

const ModernBertConfig& modernbert_of(const ModelConfig& config) {
  return std::any_cast<const ModernBertConfig&>(config.family);
}

// Source: transformers 5, configuration_bert.py, _roberta, _xlm_roberta, _distilbert, _electra, _albert and
// _modernbert.
TEST(Encoder, AnEmptyConfigHasTheSizesOfItsFamily) {
  struct Expected {
    const char* type;
    int64_t vocabulary, width, layers, heads, intermediate, positions, types, first, embeddings;
    float head;
  };
  for (const Expected& e : {Expected{"bert", 30522, 768, 12, 12, 3072, 512, 2, 0, 768, 0.1f},
                            {"roberta", 50265, 768, 12, 12, 3072, 510, 2, 2, 768, 0.1f},
                            {"camembert", 30522, 768, 12, 12, 3072, 510, 2, 2, 768, 0.1f},
                            {"xlm-roberta", 30522, 768, 12, 12, 3072, 510, 2, 2, 768, 0.1f},
                            {"distilbert", 30522, 768, 6, 12, 3072, 512, 0, 0, 768, 0.2f},
                            {"electra", 30522, 256, 12, 4, 1024, 512, 2, 0, 128, 0.1f},
                            {"albert", 30000, 4096, 12, 64, 16384, 512, 2, 0, 128, 0.1f},
                            {"modernbert", 50368, 768, 22, 12, 1152, 8192, 0, 0, 768, 0.0f}}) {
    const auto c = parse_model(std::string("{\"model_type\": \"") + e.type + "\"}", "config");
    ASSERT_TRUE(c) << c.error().message;
    EXPECT_EQ((std::vector<int64_t>{c->vocabulary, c->width, c->layers, c->heads, c->intermediate,
                                    c->positions, c->token_types, c->embedding_width}),
              (std::vector<int64_t>{e.vocabulary, e.width, e.layers, e.heads, e.intermediate, e.positions,
                                    e.types, e.embeddings}))
        << e.type;
    EXPECT_EQ(c->head_dropout, e.head) << e.type;
    const bool is_albert = e.type == std::string("albert"), is_modern = e.type == std::string("modernbert"),
               drops = !is_albert && !is_modern;
    if (is_modern) {
      EXPECT_EQ(modernbert_of(*c).head_activation, Activation::gelu_erf);
    } else {
      const auto& own = std::any_cast<const EncoderConfig&>(c->family);
      EXPECT_EQ(own.gelu, is_albert ? Activation::gelu_tanh : Activation::gelu_erf);
      EXPECT_EQ(own.first_position, e.first) << e.type;
    }
    for (const float rate : {c->embedding_dropout, c->attention_dropout, c->residual_dropout})
      EXPECT_EQ(rate, drops ? 0.1f : 0.0f) << e.type;
  }
}

Result<ModelConfig> modernbert_with(const std::string& fields) {
  Json config = *parse_json(small_modernbert());
  const Json other = *parse_json("{" + fields + "}");
  for (const auto& [key, value] : other.members()) config.set(key, value);
  return parse_model(to_string(config, 0), "config");
}

// Source: transformers 5, configuration_modernbert.py.
TEST(Encoder, ModernBertIsReadAsNewerAndOlderFilesHaveIt) {
  const auto absent = parse_model(R"({"model_type": "modernbert"})", "config");
  ASSERT_TRUE(absent);
  EXPECT_EQ(absent->epsilon, 1e-5f);
  const ModernBertConfig& own = modernbert_of(*absent);
  EXPECT_EQ(own.gate, Gate::gelu_erf);
  EXPECT_FALSE(own.norm_bias || own.attention_bias || own.mlp_bias || own.head_bias || own.head_reads_mean);
  EXPECT_TRUE(own.logits_bias);
  EXPECT_EQ(own.rotary[0].theta, 160000);
  EXPECT_EQ(own.rotary[1].theta, 10000);
  for (size_t layer = 0; layer < 22; ++layer) {
    // 64 keys to each side
    EXPECT_EQ(own.layers[layer].window, layer % 3 == 0 ? 0 : 65) << layer;
    EXPECT_EQ(own.layers[layer].rotary, layer % 3 == 0 ? 0 : 1) << layer;
  }
  const auto older =
      modernbert_with(R"("global_rope_theta": 500.0, "local_rope_theta": 20, "norm_bias": true, )"
                      R"("deterministic_flash_attn": true, "reference_compile": false)");
  const auto newer = parse_model(
      R"({"model_type": "modernbert", "vocab_size": 61, "max_position_embeddings": 40, "hidden_size": 40, )"
      R"("num_hidden_layers": 3, "num_attention_heads": 5,
    "intermediate_size": 72, "local_attention": 8, "layer_types": ["full_attention", "sliding_attention", )"
      R"("full_attention"], "classifier_pooling": "mean", "norm_bias": true,
    "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 500.0}, )"
      R"("sliding_attention": {"rope_type": "default", "rope_theta": 20.0}}})",
      "config");
  const auto scaled = modernbert_with(
      R"("rope_scaling": {"rope_type": "linear", "factor": 4.0}, )"
      R"("rope_parameters": {"full_attention": {"rope_theta": 7.0}, "sliding_attention": {"factor": 2.0}})");
  ASSERT_TRUE(older && newer && scaled);
  const auto graph_text = [](ModelConfig c) {
    c.task = Task::label, c.labels = {"a", "b"};
    return describe(*architecture_of(c).build(c, 33, Format::f32, {}));
  };
  EXPECT_EQ(graph_text(*older), graph_text(*newer));
  EXPECT_NE(graph_text(*older), graph_text(*scaled));
  const std::vector<RotaryConfig>& rotaries = modernbert_of(*scaled).rotary;
  EXPECT_EQ(rotaries[0].theta, 7);
  EXPECT_EQ(rotaries[1].theta, 10000);
  for (const RotaryConfig& rotary : rotaries) EXPECT_EQ(rotary.factor, 4);
  const auto with_head = modernbert_with(
      R"("classifier_bias": true, "classifier_activation": "relu", "hidden_activation": "silu", )"
      R"("attention_bias": true, "mlp_bias": true)");
  ASSERT_TRUE(with_head);
  const ModernBertConfig& head = modernbert_of(*with_head);
  EXPECT_TRUE(head.head_bias && head.attention_bias && head.mlp_bias && head.head_reads_mean);
  EXPECT_EQ(head.head_activation, Activation::relu);
  EXPECT_EQ(head.gate, Gate::silu);
}

// The places of dropout in a block. Source: transformers, modeling_bert.py and the like: DistilBERT has none
// after the attention's output, ALBERT none after the feed-forward part.
TEST(Encoder, BlocksDropWhereTransformersDoes) {
  using Places = std::vector<std::string>;
  const std::pair<std::string, Places> blocks[] = {{small_bert("0.1"), {"attn_dropout", "ffn_dropout"}},
                                                   {small_roberta("0.1"), {"attn_dropout", "ffn_dropout"}},
                                                   {small_electra("0.1"), {"attn_dropout", "ffn_dropout"}},
                                                   {small_distilbert("0.1"), {"ffn_dropout"}},
                                                   {small_albert("0.1"), {"attn_dropout"}}};
  for (const auto& [text, places] : blocks) {
    auto config = parse_model(text, "config");
    ASSERT_TRUE(config) << config.error().message;
    config->task = Task::label, config->labels = {"a", "b"};
    const Graph graph = *architecture_of(*config).build(*config, 33, Format::f32, {});
    std::map<std::string, int64_t> counts;
    for (const Op& op : graph.ops)
      if (op.kind == OpKind::dropout) ++counts[graph.tensors[op.outputs[0]].name];
    for (const char* label : {"attn_dropout", "ffn_dropout"}) {
      const bool drops = std::find(places.begin(), places.end(), label) != places.end();
      int64_t count = 0;
      for (const auto& [name, times] : counts) count += name.find(label) != name.npos ? times : 0;
      EXPECT_EQ(count, drops ? config->layers : 0) << text << label;
    }
  }
}

// ModernBERT's classifier head begins with the layers of its masked-LM head. A file of the base model alone
// has neither, and its names lack "model.".
TEST(Encoder, ModernBertBringsTheHeadThatItHas) {
  const auto golden = SafetensorsReader::open(folder_of("encoder_modernbert") + "/model.safetensors");
  auto config = parse_json(file_bytes(folder_of("encoder_modernbert") + "/config.json"));
  ASSERT_TRUE(golden && config);
  for (const char* key : {"id2label", "label2id"}) config->erase(key);
  for (const bool is_body : {false, true}) {
    TemporaryDirectory folder;
    Json classes = Json::array();
    classes.push(is_body ? "ModernBertModel" : "ModernBertForMaskedLM");
    config->set("architectures", std::move(classes));
    put_file(folder / "config.json", to_string(*config, 0));
    const std::string_view prefix = "model.", left_out = is_body ? "head." : "classifier.";
    std::vector<const SafetensorsInfo*> kept;
    std::vector<SafetensorsEntry> entries;
    for (const SafetensorsInfo& t : golden->tensors()) {
      if (t.name.starts_with("classifier.") || t.name.starts_with(left_out)) continue;
      kept.push_back(&t);
      entries.push_back({is_body ? t.name.substr(prefix.size()) : t.name, TensorDType::f32, t.shape});
    }
    auto writer = SafetensorsWriter::create(folder / "model.safetensors", entries, {});
    ASSERT_TRUE(writer);
    for (const SafetensorsInfo* t : kept)
      ASSERT_TRUE(writer->write(std::as_bytes(std::span<const float>(read_tensor<float>(*golden, t->name)))));
    ASSERT_TRUE(writer->finish());
    ModelSource source;
    source.source = folder.path(), source.label_count = 3;
    const auto model = open_model(source);
    ASSERT_TRUE(model);
    for (const int t : model->parameters()) {
      const Tensor& p = model->graph().at(t);
      std::vector<float> values(p.shape.elements());
      ASSERT_TRUE(model->read(p, 0, values.size(), values.data()));
      const bool is_new = p.name.starts_with("classifier.") || (is_body && p.name.starts_with("head."));
      if (!is_new) {
        EXPECT_EQ(values, read_tensor<float>(*golden, p.name)) << p.name;
      } else if (p.name == "head.norm.weight") {
        EXPECT_EQ(values, std::vector<float>(values.size(), 1.0f));
      } else {
        EXPECT_EQ(p.shape[0], p.name == "head.dense.weight" ? model->config().width : 3) << p.name;
      }
    }
  }
}

TEST(Encoder, ModernBertRefusesUnsupportedConfigs) {
  EXPECT_NE(Planned::make(*model_of(classifier_of(small_modernbert())), request_for(2, sequence + 1))
                .error()
                .message.find("the model has 40 positions"),
            std::string::npos);
  for (const auto& [change, message] :
       {std::pair{R"("classifier_pooling": "max")",
                  "classifier_pooling \"max\" is not supported: expected \"cls\" or \"mean\""},
        {R"("hidden_activation": "mish")", "hidden_activation \"mish\" is not supported"},
        {R"("classifier_activation": "mish")", "classifier_activation \"mish\" is not supported"},
        {R"("is_decoder": true)", "is_decoder is not supported"},
        {R"("sliding_window": 4)", "sliding_window is not supported: expected local_attention"},
        {R"("local_attention": -2)", "local_attention is -2"},
        {R"("global_attn_every_n_layers": 0)", "global_attn_every_n_layers is 0"},
        {R"("layer_types": ["full_attention"])",
         "expected a kind of attention for each of 3 layers as layer_types"},
        {R"("layer_types": ["full_attention", "chunked_attention", "full_attention"])",
         "layer_types has \"chunked_attention\", which is not supported"},
        {R"("local_rope_theta": null)", "local_rope_theta null is not supported"},
        {R"("global_rope_theta": -1)", "rope_theta must be positive"},
        {R"("rope_scaling": {"type": "linear", "factor": 2})",
         "rope_scaling has a \"type\", which is read in two ways"},
        {R"("rope_scaling": {"rope_type": "yarn", "factor": 2})", "rope scaling \"yarn\" is not supported"},
        {R"("partial_rotary_factor": 0.5)", "partial_rotary_factor is not supported"},
        {R"("head_dim": 16)", "head_dim is 16, expected hidden_size / num_attention_heads, 8"},
        {R"("num_attention_heads": 7)", "hidden_size 40 is not a multiple of num_attention_heads 7"},
        {R"("mlp_dropout": 1)", "a dropout rate is outside of [0, 1)"}}) {
    const auto refused = modernbert_with(change);
    ASSERT_FALSE(refused) << change;
    EXPECT_NE(refused.error().message.find(message), std::string::npos) << refused.error().message;
  }
}

TEST(Encoder, RefusesUnsupportedConfigs) {
  const auto body = model_of(small_bert()), model = model_of(classifier_of(small_bert()));
  EXPECT_NE(Planned::make(*body, request_for(2, sequence)).error().message.find("it needs labels"),
            std::string::npos);
  auto trainer = trainer_for(model, plan_for(*model, request_for(2, sequence)));
  std::vector<int32_t> prompt{1, 2}, out(3), types{0, 2};
  EXPECT_EQ(trainer->generate({prompt.data(), 2, out.data(), 3}).error().code, Code::unsupported);
  std::vector<float> logits(small_labels);
  const Text text{prompt.data(), 2, types.data()}, longer{prompt.data(), sequence + 1, nullptr};
  EXPECT_EQ(trainer->classify({&text, 1}, logits.data()).error().message,
            "classify: text 0: token type 2 is outside of the model's 2");
  EXPECT_EQ(trainer->classify({&longer, 1}, logits.data()).error().code, Code::unsupported_shape);
  EXPECT_NE(
      Planned::make(*model, request_for(2, sequence + 1)).error().message.find("the model has 40 positions"),
      std::string::npos);
  EXPECT_NE(Planned::make(*model_of(classifier_of(small_roberta())), request_for(2, sequence + 1))
                .error()
                .message.find("the model has 40 positions"),
            std::string::npos);
  for (const auto& [change, message] :
       {std::pair{R"("position_embedding_type": "relative_key", )",
                  "position_embedding_type \"relative_key\" is not supported"},
        {R"("is_decoder": true, )", "is_decoder is not supported"},
        {R"("hidden_act": "mish", )", "hidden_act \"mish\" is not supported"},
        {R"("type_vocab_size": -1, )", "type_vocab_size is -1"}}) {
    const auto refused = parse_model("{" + std::string(change) + small_bert().substr(1), "config");
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find(message), std::string::npos) << refused.error().message;
  }
  for (const char* key : {"num_hidden_groups", "inner_group_num"}) {
    const auto refused =
        parse_model("{\"" + std::string(key) + "\": 2, " + small_albert().substr(1), "config");
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find(std::string(key) + " 2 is not supported"), std::string::npos)
        << refused.error().message;
  }
}

}  // namespace
}  // namespace stw::encoder_test
