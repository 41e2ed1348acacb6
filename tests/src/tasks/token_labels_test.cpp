// Models that give every token a label: against transformers and PEFT, their bits, their datasets and their
// folders.
#include "planner/plan/plan_file.h"
#include "src/weights/adapter_files.h"
#include "src/weights/merge.h"
#include "tests/src/models/golden.h"
#include "tests/src/small_models.h"

namespace stw::token_labels_test {
namespace {

using namespace testing_tools;

constexpr int64_t sequence = 24;

class GoldenTokenLabels : public testing::TestWithParam<const char*> {};

TEST_P(GoldenTokenLabels, LossGradientsAndLogitsAgree) {
  ModelSource source;
  source.source = folder_of(GetParam());
  source.dropout = 0;
  const auto model = open_model(source);
  auto expected = SafetensorsReader::open(folder_of(GetParam()) + "/expected.safetensors");
  ASSERT_TRUE(model && expected);
  EXPECT_EQ(model->config().task, Task::token_label);
  EXPECT_EQ(model->config().labels.size(), 5u);
  const auto lengths = read_tensor<int32_t>(*expected, "lengths");
  const auto expected_logits = read_tensor<float>(*expected, "logits");
  const auto samples = static_cast<int64_t>(lengths.size());
  const size_t labels = 5;
  GlobalBatch batch;
  batch.tokens = read_tensor<int32_t>(*expected, "tokens");
  batch.targets = read_tensor<int32_t>(*expected, "labels");
  batch.sequence = static_cast<int64_t>(batch.tokens.size()) / samples;
  for (const int32_t length : lengths)
    for (int64_t i = 0; i < batch.sequence; ++i)
      batch.positions.push_back(i < length ? static_cast<int32_t>(i) : 0);
  if (expected->find("token_types")) batch.token_types = read_tensor<int32_t>(*expected, "token_types");
  std::vector<Text> texts;
  std::vector<float> of_texts;  // without padding
  for (int64_t s = 0; s < samples; ++s) {
    const auto length = static_cast<uint64_t>(lengths[s]);
    texts.push_back({batch.tokens.data() + s * batch.sequence, length,
                     batch.token_types.empty() ? nullptr : batch.token_types.data() + s * batch.sequence});
    const auto begin = expected_logits.begin() + s * batch.sequence * static_cast<int64_t>(labels);
    of_texts.insert(of_texts.end(), begin, begin + static_cast<int64_t>(length * labels));
  }
  for (const int64_t micro_batch : {1, 3, 4}) {
    Request request = request_for(samples, batch.sequence, 2);
    request.micro_batch = micro_batch;
    request.inputs.positions = micro_batch != 3;  // without positions a decoder takes one text at a time
    GoldenTrainer trainer(model, plan_for(*model, request));
    std::vector<float> all(of_texts.size());
    const Status classified = trainer->classify(texts, all.data());
    ASSERT_TRUE(classified) << classified.error().message;
    EXPECT_LE(relative(all.data(), of_texts.data(), all.size()), 1e-5);
    EXPECT_GT(batch.target_count(), 20u);
    trainer.expect_step(batch, *expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, GoldenTokenLabels,
                         testing::Values("encoder_bert_tokens", "encoder_deberta_tokens",
                                         "encoder_roberta_tokens", "encoder_distilbert_tokens",
                                         "encoder_electra_tokens", "encoder_modernbert_tokens",
                                         "tokens_bloom", "tokens_gpt2", "tokens_llama",
                                         "adapter_encoder_bert_tokens", "adapter_encoder_albert_tokens",
                                         "adapter_encoder_modernbert_tokens", "adapter_tokens_llama"),
                         [](const auto& info) { return std::string(info.param); });

// Texts of up to 9 tokens end to end. A token's label depends on the token before it; for an encoder on the
// one after it.
GlobalBatch tagged_batch(uint64_t seed, int64_t samples, bool looks_ahead) {
  GlobalBatch batch = random_batch(seed, samples, sequence);
  for (int64_t i = 0; i < samples * sequence; ++i) {
    const int64_t place = i % sequence, position = place % 9;
    const bool has_next = place + 1 < sequence && position < 8;
    batch.positions.push_back(static_cast<int32_t>(position));
    const bool is_labelled = looks_ahead ? has_next : position > 0;
    const int32_t from = is_labelled ? batch.tokens[looks_ahead ? i + 1 : i - 1] : 0;
    batch.targets[i] =
        is_labelled && i % 5 != 0 ? from % static_cast<int32_t>(small_labels) : kernels::ignored_target;
  }
  return batch;
}

class TokenLabelBits : public testing::TestWithParam<NumericsCase> {};

TEST_P(TokenLabelBits, AreTheSameHoweverTheBatchIsCutAndAfterACheckpoint) {
  const auto model = model_of(GetParam().config);
  Request r = GetParam().request(6, sequence, 2);
  r.inputs.positions = true;
  const auto batch_of = [&](uint64_t step) { return tagged_batch(10 + step, 6, true); };
  expect_same_however_cut(model, r, batch_of);
}

INSTANTIATE_TEST_SUITE_P(
    Models, TokenLabelBits,
    testing::Values(NumericsCase{"bert", token_classifier_of(small_bert("0.1")), Precision::fp32, 32},
                    NumericsCase{"albert", token_classifier_of(small_albert("0.1")), Precision::fp32, 32},
                    NumericsCase{"modernbert", token_classifier_of(small_modernbert("0.1")), Precision::fp32,
                                 32},
                    NumericsCase{"distilbert", token_classifier_of(small_distilbert()), Precision::bf16, 8},
                    NumericsCase{"deberta", token_classifier_of(small_deberta("0.1")), Precision::bf16, 8},
                    NumericsCase{"gpt2", token_classifier_of(small_gpt2("0.1")), Precision::fp32, 8},
                    NumericsCase{"llama", token_classifier_of(small_llama()), Precision::bf16, 32},
                    NumericsCase{"bert_adapters",
                                 {token_classifier_of(small_bert("0.1")), adapters_of_all(0.1)},
                                 Precision::bf16,
                                 8},
                    NumericsCase{"modernbert_int8",
                                 {token_classifier_of(small_modernbert("0.1")), adapters_of_all()},
                                 Precision::fp32,
                                 32,
                                 Optimizer::adamw,
                                 {},
                                 Master::exact,
                                 Gradients::fp32,
                                 false,
                                 Quantize::int8,
                                 Quantize::int8},
                    NumericsCase{"llama_nf4",
                                 {token_classifier_of(small_llama()), adapters_of_some()},
                                 Precision::fp32,
                                 32,
                                 Optimizer::adamw,
                                 {},
                                 Master::exact,
                                 Gradients::fp32,
                                 false,
                                 Quantize::nf4}),
    case_name);

TEST(TokenLabels, AreLearned) {
  for (const std::string& config : {token_classifier_of(small_bert()), token_classifier_of(small_llama())}) {
    const auto model = model_of(config);
    const bool looks_ahead = architecture_of(model->config()).is_encoder;
    Request r = request_for(8, sequence, 2);
    r.inputs.positions = true;
    auto trainer = trainer_for(model, plan_for(*model, r));
    for (uint64_t step = 0; step < 200; ++step)
      ASSERT_TRUE(trainer->step(tagged_batch(step, 8, looks_ahead).source(), 8, 5e-3));
    const GlobalBatch unseen = tagged_batch(1000, 8, looks_ahead);
    std::vector<Text> texts;
    for (size_t i = 0, n; i < unseen.tokens.size(); i += n) {
      n = std::min<size_t>(9, sequence - i % sequence);
      texts.push_back({unseen.tokens.data() + i, n, nullptr});
    }
    std::vector<float> logits(unseen.tokens.size() * small_labels), one(logits.size());
    ASSERT_TRUE(trainer->classify(texts, logits.data()));
    uint64_t hits = 0;
    for (size_t i = 0; i < unseen.tokens.size(); ++i) {
      const auto row = logits.begin() + static_cast<std::ptrdiff_t>(i * small_labels);
      hits += unseen.targets[i] == std::max_element(row, row + small_labels) - row;
    }
    EXPECT_GE(static_cast<double>(hits), 0.9 * static_cast<double>(unseen.target_count()));
    size_t done = 0;  // single texts have the same answers
    for (const Text& text : texts) {
      ASSERT_TRUE(trainer->classify({&text, 1}, one.data() + done * small_labels));
      done += text.count;
    }
    EXPECT_TRUE(one == logits);
    EXPECT_EQ(trainer->logits(texts[0].tokens, 3).error().message,
              "logits: the model labels each token; classify gives the logits of all tokens");
    EXPECT_FALSE(trainer->graph().head.generates);
  }
}

// Texts of 1 to 30 tokens, some longer than a sample. Two tokens in three have a label.
struct Tagged {
  TemporaryDirectory folder;
  std::vector<std::vector<int32_t>> tokens;
  std::vector<std::vector<uint32_t>> labels;
  explicit Tagged(size_t count) {
    std::string all, marks, ids;
    std::mt19937 random(4);
    for (size_t d = 0; d < count; ++d) {
      tokens.emplace_back(), labels.emplace_back();
      for (size_t i = 0, length = 1 + random() % 30; i < length; ++i) {
        tokens.back().push_back(static_cast<int32_t>(random() % small_vocabulary));
        labels.back().push_back(random() % 3 == 0 ? no_label
                                                  : static_cast<uint32_t>(random() % small_labels));
        all += {static_cast<char>(tokens.back().back()), '\0'};
        marks += static_cast<char>(i == 0 ? mark_begin : 0);
        ids.append(reinterpret_cast<const char*>(&labels.back().back()), sizeof(uint32_t));
      }
    }
    put_file(folder / "tokens.bin", all);
    put_file(folder / "marks", marks);
    put_file(folder / "labels", ids);
  }
  DatasetOptions options() const {
    DatasetOptions o;
    o.path = folder / "tokens.bin";
    o.marks_path = folder / "marks";
    o.labels_path = folder / "labels";
    o.label_count = small_labels;
    o.task = Task::token_label;
    o.vocabulary = small_vocabulary;
    o.sequence = sequence;
    return o;
  }
};

TEST(TokenLabels, EvaluationAgreesWithTheLogitsOfEveryToken) {
  const Tagged texts(50);
  const auto model = model_of(token_classifier_of(small_roberta()));
  Request r = request_for(3, sequence, 2);
  r.micro_batch = 2;
  auto trainer = trainer_for(model, plan_for(*model, r));
  for (uint64_t step = 0; step < 20; ++step)
    ASSERT_TRUE(trainer->step(tagged_batch(step, 3, true).source(), 3, 1e-2));
  DatasetOptions options = texts.options();
  options.evaluation_fraction = 1;
  auto dataset = Dataset::open(options);
  ASSERT_TRUE(dataset) << dataset.error().message;
  const auto loss = trainer->evaluate(*dataset, 1000);
  ASSERT_TRUE(loss) << loss.error().message;
  double sum = 0;
  int count = 0, hits = 0;
  for (size_t d = 0; d < texts.tokens.size(); ++d) {
    const size_t length = std::min<size_t>(texts.tokens[d].size(), sequence);
    const Text text{texts.tokens[d].data(), length, nullptr};
    std::vector<float> logits(length * small_labels);
    ASSERT_TRUE(trainer->classify({&text, 1}, logits.data()));
    for (size_t i = 0; i < length; ++i) {
      if (texts.labels[d][i] == no_label) continue;
      const float* const row = logits.data() + i * small_labels;
      double total = 0;
      for (int64_t k = 0; k < small_labels; ++k) total += std::exp(static_cast<double>(row[k]));
      sum += std::log(total) - static_cast<double>(row[texts.labels[d][i]]);
      hits += std::max_element(row, row + small_labels) - row == texts.labels[d][i];
      ++count;
    }
  }
  ASSERT_GT(count, 200);
  EXPECT_GT(hits, 0);
  EXPECT_NEAR(*loss, sum / count, 1e-5 * *loss);
  EXPECT_EQ(trainer->progress().evaluation_accuracy, static_cast<double>(hits) / count);
}

TEST(TokenLabels, MismatchedDatasetsAreRefused) {
  const Tagged texts(20);
  const auto refusal = [](const DatasetOptions& options) {
    const auto dataset = Dataset::open(options);
    return dataset ? std::string() : dataset.error().message;
  };
  DatasetOptions options = texts.options();
  const auto path = options.labels_path;
  std::string ids;
  for (const auto& list : texts.labels)
    ids.append(reinterpret_cast<const char*>(list.data()), list.size() * sizeof(uint32_t));
  put_file(path, ids.substr(4));
  EXPECT_EQ(refusal(options), path + ": expected " + std::to_string(ids.size()) +
                                  " bytes, a label for each token, found " + std::to_string(ids.size() - 4));
  std::string wrong = ids;
  wrong.replace(12, 4, std::string("\7\0\0\0", 4));
  put_file(path, wrong);
  EXPECT_EQ(refusal(options), path + ": label 3 is 7, expected less than 7");
  options.task = Task::masked_language_model;
  EXPECT_EQ(refusal(options), "the task masked-language-model has no labels");
  options.task = Task::token_label;
  put_file(path, ids);
  auto dataset = Dataset::open(options);
  ASSERT_TRUE(dataset);
  Request r = request_for(2, sequence);
  r.inputs.positions = true;
  const auto of_texts = model_of(classifier_of(small_llama()));
  EXPECT_EQ(trainer_for(of_texts, plan_for(*of_texts, r))->evaluate(*dataset, 1).error().message,
            "trainer: the model's task is label, the dataset was opened for token-label");
  const auto model = model_of(token_classifier_of(small_llama()));
  auto trainer = trainer_for(model, plan_for(*model, r));
  ASSERT_TRUE(trainer->evaluate(*dataset, 1));
  put_file(path, std::string(ids.size(), '\7'));  // while the dataset is open
  EXPECT_EQ(trainer->evaluate(*dataset, 1).error().message, path + ": it has changed since it was opened");
}

TEST(TokenLabels, AnotherModelGetsANewHead) {
  TemporaryDirectory folder;
  for (const std::string& config : {small_bert(), small_distilbert(), small_albert(), small_modernbert(),
                                    small_gpt2(), small_llama(), small_bloom()}) {
    const std::string base = folder / "base", out = folder / "out";
    std::filesystem::remove_all(out);
    const auto language = model_of(classifier_of(config));
    ASSERT_TRUE(trainer_for(language, plan_for(*language, request_for(2, sequence)))->export_model(base));
    ModelSource source;
    source.source = base;
    source.task = Task::token_label;
    EXPECT_NE(Model::open(source).error().message.find("the model's task is label; token-label was given"),
              std::string::npos);
    // A config that does not give the task of its labels.
    std::ofstream(base + "/config.json") << config;
    EXPECT_NE(Model::open(source).error().message.find(
                  "the task token-label needs labels (label_count, --labels), and the model has none"),
              std::string::npos);
    source.labels = {"O", "B-PER", "I-PER"};
    source.label_count = 3;
    const std::string matrix = architecture_of(language->config()).token_head.module + std::string(".weight");
    const std::vector<Tensor>& tensors = language->graph().tensors;
    if (std::any_of(tensors.begin(), tensors.end(), [&](const Tensor& t) { return t.name == matrix; })) {
      // The other head's matrix has the same name but another size.
      EXPECT_NE(Model::open(source).error().message.find(": expected shape [3, "), std::string::npos);
      source.label_count = small_labels;
      source.labels.clear();
    }
    const auto model = open_model(source);
    ASSERT_TRUE(model);
    EXPECT_EQ(model->config().json.find("problem_type"), nullptr);
    auto trainer = trainer_for(model, plan_for(*model, request_for(2, sequence)));
    ASSERT_TRUE(trainer->export_model(out));
    ModelSource again;
    again.source = out;
    const auto opened = open_model(again);
    ASSERT_TRUE(opened);
    EXPECT_EQ(opened->config().task, Task::token_label);
    EXPECT_EQ(opened->config().labels, model->config().labels);
    EXPECT_EQ(describe(opened->graph()), describe(model->graph()));
    again.task = Task::label;
    EXPECT_NE(Model::open(again).error().message.find("the model's task is token-label; label was given"),
              std::string::npos);
  }
}

TEST(TokenLabels, DropoutAndRefusalsOfConfigs) {
  const auto rate = [](const std::string& config) {
    auto parsed = parse_model(token_classifier_of(config), "config");
    return parsed ? std::to_string(parsed->head_dropout) : parsed.error().message;
  };
  const auto with = [](std::string config, const std::string& member) {
    return config.replace(0, 1, "{" + member + ", ");
  };
  EXPECT_EQ(rate(small_bert("0.25")), "0.250000");
  EXPECT_EQ(rate(with(small_bert("0.25"), "\"classifier_dropout\": 0.5")), "0.500000");
  std::string distilbert = small_distilbert("0.25");
  const std::string key = "\"seq_classif_dropout\": ";
  EXPECT_EQ(rate(distilbert.replace(distilbert.find(key) + key.size(), 4, "0.50")), "0.250000");
  EXPECT_EQ(rate(small_llama()), "0.100000");
  EXPECT_EQ(rate(small_modernbert("0.25")), "0.250000");
  EXPECT_EQ(rate(with(small_llama(), "\"hidden_dropout\": 0.5")), "0.500000");
  EXPECT_EQ(rate(with(small_llama(), "\"hidden_dropout\": 0.5, \"classifier_dropout\": 0")), "0.000000");
  EXPECT_EQ(rate(small_bloom()), "0.000000");
  EXPECT_EQ(rate(small_bloom("0.25")), "0.250000");
  EXPECT_EQ(rate(with(small_llama(), "\"classifier_dropout\": 1")),
            "config: a dropout rate is outside of [0, 1)");
  EXPECT_EQ(rate(with(small_llama(), "\"token_classification_bias\": false")),
            "config: token_classification_bias false is not supported");
  ModelSource source;
  source.config_json = small_gemma3();
  source.task = Task::token_label;
  source.label_count = 3;
  EXPECT_EQ(Model::open(source).error().message,
            "config: Gemma3TextForTokenClassification is not supported: transformers has no such class");
  source.config_json = small_llama();
  source.dropout = 0.25f;
  const auto model = open_model(source);
  ASSERT_TRUE(model);
  EXPECT_EQ(model->config().head_dropout, 0.25f);
  EXPECT_EQ(*get_double(model->config().json, "classifier_dropout"), 0.25);
}

std::vector<float> logits_of(const std::shared_ptr<const Model>& model) {
  const GlobalBatch batch = random_batch(77, 1, sequence);
  const Text text{batch.tokens.data(), static_cast<uint64_t>(sequence), nullptr};
  std::vector<float> logits(static_cast<size_t>(sequence) * model->config().labels.size());
  EXPECT_TRUE(
      trainer_for(model, plan_for(*model, request_for(1, sequence)))->classify({&text, 1}, logits.data()));
  return logits;
}

// The head is new, and is stored with the adapters and its labels' names. It contains ModernBERT's masked-LM
// head, which is frozen.
TEST(TokenLabels, AdaptersBringTheHead) {
  for (const auto& [base_config, head] : {std::pair{masked_of(small_modernbert()), std::string("classifier")},
                                          {masked_of(small_albert()), "classifier"},
                                          {small_gpt2(), "classifier"},
                                          {small_llama(), "score"}}) {
    TemporaryDirectory folder;
    const std::string base = folder / "base", out = folder / "out";
    const auto plain = model_of(base_config);
    ASSERT_TRUE(trainer_for(plain, plan_for(*plain, request_for(2, sequence)))->export_model(base));
    ModelSource source;
    source.source = base;
    source.task = Task::token_label, source.labels = {"O", "B-PER", "I-PER"}, source.label_count = 3;
    source.adapters = adapters_of_all();
    const auto model = open_model(source);
    ASSERT_TRUE(model);
    EXPECT_TRUE(model->has_drawn_head());
    uint64_t trained = 3 * static_cast<uint64_t>(model->config().width) + 3;
    for (const Tensor& t : model->graph().tensors) trained += t.adapter_of >= 0 ? t.shape.elements() : 0;
    EXPECT_EQ(model->graph().trainable_count(), trained);
    Request r = request_for(4, sequence, 2);
    r.inputs.positions = true;
    auto trainer = trainer_for(model, plan_for(*model, r));
    std::vector<double> figures;
    for (uint64_t step = 0; step < 3; ++step) {
      GlobalBatch batch = tagged_batch(step, 4, true);
      for (int32_t& t : batch.targets) t = t < 0 ? t : t % 3;
      ASSERT_TRUE(take_step(*trainer, batch, 4, figures));
    }
    ASSERT_TRUE(trainer->export_model(out));
    const Json written = *parse_json(file_bytes(adapter_config(out)));
    EXPECT_EQ(*written.find("task_type")->as_string(), "TOKEN_CLS");
    EXPECT_EQ(to_string(*written.find("modules_to_save"), 0), R"(["classifier","score"])");
    EXPECT_TRUE(SafetensorsReader::open(adapter_weights(out))->find("base_model.model." + head + ".bias"));
    ModelSource again;
    again.source = out;
    const auto opened = open_model(again);
    ASSERT_TRUE(opened);
    EXPECT_EQ(opened->config().task, Task::token_label);
    EXPECT_EQ(opened->config().labels, source.labels);
    EXPECT_FALSE(opened->has_drawn_head());
    EXPECT_EQ(opened->graph().trainable_count(), trained);
    const std::vector<float> logits = logits_of(opened);
    EXPECT_NE(logits, logits_of(model));
    ASSERT_TRUE(write_merged(*opened, folder / "merged"));
    again.source = folder / "merged";
    const auto merged = open_model(again);
    ASSERT_TRUE(merged);
    EXPECT_EQ(merged->config().task, Task::token_label);
    EXPECT_EQ(merged->config().labels, source.labels);
    const std::vector<float> of_merged = logits_of(merged);
    EXPECT_LE(relative(of_merged.data(), logits.data(), logits.size()), 1e-4);
    // Without the file of names there are no names. PEFT's task_type gives the head's task.
    ASSERT_EQ(std::remove(adapter_labels(out).c_str()), 0);
    again.source = out;
    EXPECT_EQ(open_model(again)->config().task, Task::token_label);
    again.task = Task::label, again.label_count = 3;
    EXPECT_EQ(Model::open(again).error().message,
              out + ": has a head for the task token-label; label was given");
    put_file(adapter_labels(out), R"({"task": "labels", "labels": ["a", "b", "c"]})");
    again.task.reset(), again.label_count = 0;
    EXPECT_EQ(Model::open(again).error().message,
              adapter_labels(out) +
                  ": expected a task for task_type \"TOKEN_CLS\" of adapter_config.json, found \"labels\"");
  }
}

}  // namespace
}  // namespace stw::token_labels_test
