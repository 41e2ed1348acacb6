// Classifiers of whole samples: against transformers and PEFT, in folders, in runs, and in evaluations.
#include "planner/plan/plan_file.h"
#include "src/weights/adapter_files.h"
#include "src/weights/merge.h"
#include "tests/src/models/golden.h"
#include "tests/src/small_models.h"

namespace stw::classifier_test {
namespace {

using namespace testing_tools;

constexpr int64_t sequence = 24;

// ---- against transformers and PEFT -----------------------------------------------------------------------

class GoldenClassifier : public testing::TestWithParam<const char*> {};

TEST_P(GoldenClassifier, LossGradientsAndLogitsAgree) {
  ModelSource source;
  source.source = folder_of(GetParam());
  const auto model = open_model(source);
  auto expected = SafetensorsReader::open(folder_of(GetParam()) + "/expected.safetensors");
  ASSERT_TRUE(model && expected);
  const std::string folder = GetParam();
  // The base models of these two adapters name no labels.
  const std::vector<std::string> names =
      folder == "adapter_classifier_llama" || folder == "adapter_encoder_bert_pooler"
          ? std::vector<std::string>{"LABEL_0", "LABEL_1", "LABEL_2", "LABEL_3", "LABEL_4"}
          : std::vector<std::string>{"arrival", "refund", "top up", "card \u201clost\u201d", "other"};
  EXPECT_EQ(model->config().labels, names);
  const auto labels = read_tensor<int32_t>(*expected, "labels"),
             lengths = read_tensor<int32_t>(*expected, "lengths");
  const auto expected_logits = read_tensor<float>(*expected, "logits");
  const int64_t samples = static_cast<int64_t>(labels.size());
  GlobalBatch batch;
  batch.tokens = read_tensor<int32_t>(*expected, "tokens");
  batch.sequence = static_cast<int64_t>(batch.tokens.size()) / samples;
  batch.targets.assign(batch.tokens.size(), kernels::ignored_target);
  const bool is_encoder = architecture_of(model->config()).is_encoder;
  for (int64_t s = 0; s < samples; ++s) {
    const int64_t length = lengths[s];
    batch.targets[s * batch.sequence + (is_encoder ? 0 : length - 1)] = labels[s];
    for (int64_t i = 0; is_encoder && i < batch.sequence; ++i)
      batch.positions.push_back(i < length ? static_cast<int32_t>(i) : 0);
  }
  if (expected->find("token_types")) batch.token_types = read_tensor<int32_t>(*expected, "token_types");
  for (const int64_t micro_batch : {1, 3, 4}) {
    Request request = request_for(samples, batch.sequence, 2);
    request.micro_batch = micro_batch;
    GoldenTrainer trainer(model, plan_for(*model, request));
    std::vector<Text> texts;
    for (int64_t s = 0; s < samples; ++s)
      texts.push_back({batch.tokens.data() + s * batch.sequence, static_cast<uint64_t>(lengths[s]),
                       batch.token_types.empty() ? nullptr : batch.token_types.data() + s * batch.sequence});
    std::vector<float> all(expected_logits.size());
    ASSERT_EQ(all.size(), texts.size() * names.size());
    const Status classified = trainer->classify(texts, all.data());
    ASSERT_TRUE(classified) << classified.error().message;
    EXPECT_LE(relative(all.data(), expected_logits.data(), all.size()), 1e-5);
    trainer.expect_step(batch, *expected);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Families, GoldenClassifier,
    testing::Values("classifier_bloom", "classifier_gpt2", "classifier_llama", "classifier_qwen3",
                    "adapter_classifier_llama", "encoder_bert", "encoder_roberta", "encoder_xlm-roberta",
                    "encoder_camembert", "encoder_deberta", "encoder_distilbert", "encoder_electra",
                    "encoder_albert", "encoder_modernbert", "encoder_modernbert_mean", "adapter_encoder_bert",
                    "adapter_encoder_bert_dense", "adapter_encoder_bert_pooler", "adapter_encoder_roberta",
                    "adapter_encoder_distilbert", "adapter_encoder_electra", "adapter_encoder_modernbert"),
    [](const auto& info) {
      std::string name = info.param;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

// The padding token inside of a text has the position before the first one, and later tokens do not count it.
TEST(GoldenClassifier, PaddingTokensInsideOfTexts) {
  ModelSource source;
  source.source = folder_of("encoder_roberta");
  const auto model = open_model(source);
  auto expected = SafetensorsReader::open(source.source + "/padding.safetensors");
  ASSERT_TRUE(model && expected);
  const auto tokens = read_tensor<int32_t>(*expected, "tokens"),
             lengths = read_tensor<int32_t>(*expected, "lengths");
  const auto logits = read_tensor<float>(*expected, "logits");
  const int64_t samples = static_cast<int64_t>(lengths.size()),
                width = static_cast<int64_t>(tokens.size()) / samples;
  const auto trainer = trainer_for(model, plan_for(*model, request_for(samples, width, 2)));
  std::vector<Text> texts;
  for (int64_t s = 0; s < samples; ++s)
    texts.push_back({tokens.data() + s * width, static_cast<uint64_t>(lengths[s]), nullptr});
  std::vector<float> all(logits.size());
  const Status classified = trainer->classify(texts, all.data());
  ASSERT_TRUE(classified) << classified.error().message;
  EXPECT_LE(relative(all.data(), logits.data(), all.size()), 1e-5);
}

// ---- runs ------------------------------------------------------------------------------------------------

// Samples of different lengths. A sample's label depends on its last token.
GlobalBatch labelled_batch(uint64_t seed, int64_t samples) {
  GlobalBatch batch = random_batch(seed, samples, sequence);
  for (int64_t s = 0; s < samples; ++s) {
    const int64_t begin = s * sequence, length = 2 + batch.tokens[begin] % (sequence - 1);
    std::fill_n(batch.targets.begin() + begin, sequence, kernels::ignored_target);
    batch.targets[begin + length - 1] = batch.tokens[begin + length - 1] % static_cast<int32_t>(small_labels);
  }
  return batch;
}

Trained train(const std::shared_ptr<const Model>& model, const std::shared_ptr<const Planned>& planned,
              int steps, const std::string& restored = {}, const std::string& saved = {}) {
  OpenTrainer trainer(model, planned);
  if (!restored.empty()) { EXPECT_TRUE(trainer->restore(restored)); }
  Trained trained;
  for (int step = 0; step < steps; ++step) {
    if (!take_step(*trainer, labelled_batch(static_cast<uint64_t>(10 + step) + trainer->progress().step, 6),
                   6, trained.figures))
      break;
  }
  if (!saved.empty()) { EXPECT_TRUE(trainer->save(saved)); }
  trained.state = trainer.state();
  return trained;
}

class ClassifierBits : public testing::TestWithParam<NumericsCase> {};

TEST_P(ClassifierBits, AreTheSameHoweverTheBatchIsCutAndAfterACheckpoint) {
  const auto model = model_of(GetParam().config);
  TemporaryDirectory folder;
  Request r = GetParam().request(6, sequence, 2);
  r.micro_batch = 6;
  const auto whole_plan = plan_for(*model, r);
  const Trained whole = train(model, whole_plan, 3);
  for (const int64_t micro_batch : {1, 4}) {
    r.micro_batch = micro_batch;
    r.recompute = micro_batch == 1 ? Recompute::full : Recompute::none;
    const auto planned = plan_for(*model, r);
    expect_same(train(model, planned, 3), whole, "micro-batch " + std::to_string(micro_batch));
    train(model, planned, 2, "", folder / "two.stw");
    EXPECT_EQ(
        differences(train(model, whole_plan, 0, folder / "two.stw").state, train(model, whole_plan, 2).state),
        "");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, ClassifierBits,
    testing::Values(NumericsCase{"gpt2", classifier_of(small_gpt2("0.1")), Precision::fp32, 32},
                    NumericsCase{"qwen2", classifier_of(small_qwen2()), Precision::bf16, 8},
                    NumericsCase{"llama_adapters",
                                 {classifier_of(small_llama()), adapters_of_some()},
                                 Precision::bf16,
                                 8}),
    case_name);

TEST(Classifier, Learns) {
  const auto model = model_of(classifier_of(small_llama()));
  auto trainer = trainer_for(model, plan_for(*model, request_for(16, sequence, 2)));
  double last = 0;
  for (uint64_t step = 0; step < 250; ++step) {
    const auto result = trainer->step(labelled_batch(step, 16).source(), 16, 3e-3);
    ASSERT_TRUE(result);
    last = result->loss;
  }
  EXPECT_LT(last, 0.6);
  const GlobalBatch unseen = labelled_batch(1000, 64);
  int hits = 0;
  for (int64_t s = 0; s < 64; ++s) {
    const auto begin = unseen.targets.begin() + s * sequence;
    const auto last_token = std::find_if(begin, begin + sequence, [](int32_t t) { return t >= 0; });
    const auto logits =
        trainer->logits(unseen.tokens.data() + s * sequence, static_cast<uint64_t>(last_token - begin + 1));
    ASSERT_TRUE(logits);
    hits += std::max_element(*logits, *logits + small_labels) - *logits == *last_token;
  }
  EXPECT_GE(hits, 58);
}

// Documents of 1 to 30 tokens, some longer than a sample. One in nine has no label.
struct Documents {
  TemporaryDirectory folder;
  std::vector<std::vector<int32_t>> tokens;
  std::vector<uint32_t> labels;
  explicit Documents(size_t count) {
    std::string all, marks, ids;
    std::mt19937 random(4);
    for (size_t d = 0; d < count; ++d) {
      const size_t length = 1 + random() % 30;
      tokens.emplace_back();
      for (size_t i = 0; i < length; ++i) {
        tokens.back().push_back(static_cast<int32_t>(random() % small_vocabulary));
        all += {static_cast<char>(tokens.back().back()), '\0'};
        marks += static_cast<char>(i == 0 ? mark_begin : 0);
      }
      labels.push_back(random() % 9 == 0 ? no_label : static_cast<uint32_t>(random() % small_labels));
      ids.append(reinterpret_cast<const char*>(&labels.back()), sizeof(uint32_t));
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
    o.vocabulary = small_vocabulary;
    o.sequence = sequence;
    return o;
  }
};

TEST(Classifier, EvaluationAgreesWithTheLogitsOfEveryDocument) {
  const Documents documents(60);
  for (const std::string& config : {small_llama(), small_gpt2("0.1")}) {
    const auto model = model_of(classifier_of(config));
    Request r = request_for(3, sequence, 2);
    r.inputs.positions = true;
    r.micro_batch = 2;
    auto trainer = trainer_for(model, plan_for(*model, r));
    for (uint64_t step = 0; step < 30; ++step)
      ASSERT_TRUE(trainer->step(labelled_batch(step, 3).source(), 3, 1e-2));
    DatasetOptions options = documents.options();
    options.evaluation_fraction = 1;
    auto dataset = Dataset::open(options);
    ASSERT_TRUE(dataset) << dataset.error().message;
    EXPECT_EQ(dataset->tokens(Dataset::Part::training), 0u);
    const auto loss = trainer->evaluate(*dataset, 1000);
    ASSERT_TRUE(loss) << loss.error().message;
    double sum = 0;
    int count = 0, hits = 0;
    for (size_t d = 0; d < documents.tokens.size(); ++d) {
      if (documents.labels[d] == no_label) continue;
      const auto logits = trainer->logits(documents.tokens[d].data(),
                                          std::min<uint64_t>(documents.tokens[d].size(), sequence));
      ASSERT_TRUE(logits);
      double total = 0;
      for (int64_t i = 0; i < small_labels; ++i) total += std::exp(static_cast<double>((*logits)[i]));
      sum += std::log(total) - static_cast<double>((*logits)[documents.labels[d]]);
      hits += std::max_element(*logits, *logits + small_labels) - *logits == documents.labels[d];
      ++count;
    }
    ASSERT_GT(count, 40);
    EXPECT_GT(hits, 0);
    EXPECT_LT(hits, count);
    EXPECT_NEAR(*loss, sum / count, 1e-5 * *loss);
    EXPECT_EQ(trainer->progress().evaluation_accuracy, static_cast<double>(hits) / count);
  }
}

TEST(Classifier, DatasetsAndModelsMustAgreeOnLabels) {
  const Documents documents(60);
  Request r = request_for(3, sequence);
  r.inputs.positions = true;
  const auto classifier = model_of(classifier_of(small_llama())), language = model_of(small_llama());
  auto with_labels = Dataset::open(documents.options());
  DatasetOptions plain = documents.options();
  plain.labels_path.clear();
  auto without = Dataset::open(plain);
  DatasetOptions other = documents.options();
  other.label_count = small_labels + 1;
  auto more = Dataset::open(other);
  ASSERT_TRUE(with_labels && without && more);
  auto of_classifier = trainer_for(classifier, plan_for(*classifier, r)),
       of_language = trainer_for(language, plan_for(*language, r));
  EXPECT_TRUE(of_classifier->evaluate(*with_labels, 1));
  EXPECT_EQ(of_classifier->evaluate(*without, 1).error().message,
            "trainer: the model has 7 labels, the dataset has none");
  EXPECT_EQ(of_classifier->evaluate(*more, 1).error().message,
            "trainer: the model has 7 labels, the dataset was opened for 8");
  EXPECT_EQ(of_language->evaluate(*with_labels, 1).error().message,
            "trainer: the model has no labels, the dataset was opened for 7");
  EXPECT_TRUE(of_language->evaluate(*without, 1));
  std::vector<int32_t> prompt{1, 2}, out(3);
  EXPECT_EQ(of_classifier->generate({prompt.data(), 2, out.data(), 3}).error().code, Code::unsupported);
}

// Marks are read again with every sample. Changed marks must not lead to labels past the end.
TEST(Classifier, MarksThatChangeAreNamed) {
  const Documents documents(60);
  DatasetOptions options = documents.options();
  options.evaluation_fraction = 0;
  const auto dataset = Dataset::open(options);
  ASSERT_TRUE(dataset) << dataset.error().message;
  std::vector<int32_t> in(sequence), targets(sequence), positions(sequence);
  const SampleRows rows = rows_of(sequence, in.data(), targets.data(), positions.data());
  EXPECT_TRUE(dataset->read(Dataset::Part::training, 0, rows));
  // Every token begins a document.
  put_file(options.marks_path,
           std::string(dataset->tokens(Dataset::Part::training), static_cast<char>(mark_begin)));
  const Status read = dataset->read(Dataset::Part::training, 0, rows);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::corrupt);
  EXPECT_NE(read.error().message.find("it has changed since it was opened"), std::string::npos)
      << read.error().message;
}

// ---- folders ---------------------------------------------------------------------------------------------

std::vector<float> logits_of(Trainer& trainer) {
  const GlobalBatch batch = random_batch(3, 1, sequence);
  const auto logits = trainer.logits(batch.tokens.data(), sequence);
  EXPECT_TRUE(logits);
  return {*logits, *logits + trainer.graph().head.outputs};
}

std::shared_ptr<const Model> open_labelled(const std::string& folder, size_t count,
                                           std::vector<std::string> names = {}, Adapters adapters = {},
                                           const std::string& adapter = "") {
  ModelSource source;
  source.source = folder;
  source.label_count = count;
  source.labels = std::move(names);
  source.adapters = std::move(adapters);
  source.adapter = adapter;
  return open_model(source);
}

class ClassifierFolder : public testing::TestWithParam<const char*> {
 protected:
  // A language model, trained a little, in a folder.
  void SetUp() override {
    const auto model = model_of(std::string(GetParam()) == "gpt2"    ? small_gpt2()
                                : std::string(GetParam()) == "qwen2" ? small_qwen2()
                                                                     : small_llama());
    OpenTrainer trainer(model, plan_for(*model, request_for(4, sequence)));
    std::vector<double> figures;
    ASSERT_TRUE(take_step(*trainer, random_batch(1, 4, sequence), 4, figures));
    ASSERT_TRUE(trainer->export_model(base_));
  }
  std::unique_ptr<Trainer> trainer_of(const std::shared_ptr<const Model>& model) {
    return trainer_for(model, plan_for(*model, request_for(6, sequence)));
  }

  TemporaryDirectory folder_;
  std::string base_ = folder_ / "base", out_ = folder_ / "out", merged_ = folder_ / "merged";
  const std::vector<std::string> names_ = {"a", "b \"quoted\"", "\u00e9"};
};

TEST_P(ClassifierFolder, ALanguageModelGetsANewHeadAndKeepsTheRest) {
  const auto model = open_labelled(base_, 3, names_);
  ASSERT_TRUE(model);
  EXPECT_TRUE(model->has_weights());
  EXPECT_EQ(model->config().labels, names_);
  ModelSource source;
  source.source = base_;
  const auto language = open_model(source);
  for (const int t : model->parameters()) {
    const Tensor& p = model->graph().at(t);
    std::vector<float> values(p.shape.elements()), before(values.size());
    ASSERT_TRUE(model->read(p, 0, values.size(), values.data()));
    if (p.name == classifier_weight) {
      EXPECT_EQ(p.shape[0], 3);
      double squares = 0;
      for (const float x : values) squares += static_cast<double>(x) * static_cast<double>(x);
      EXPECT_NEAR(std::sqrt(squares / static_cast<double>(values.size())), 0.02, 0.005);
      continue;
    }
    ASSERT_TRUE(language->read(p, 0, before.size(), before.data()));
    EXPECT_EQ(values, before) << p.name;
  }
  auto trainer = trainer_of(model);
  GlobalBatch batch = labelled_batch(5, 6);
  for (int32_t& t : batch.targets) t = t >= 0 ? t % 3 : t;
  ASSERT_TRUE(trainer->step(batch.source(), 6, 1e-3));
  ASSERT_TRUE(trainer->export_model(out_));
  const auto again = open_labelled(out_, 0);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->config().labels, names_);
  EXPECT_EQ(logits_of(*trainer_of(again)), logits_of(*trainer));
  EXPECT_EQ(describe(again->graph()), describe(model->graph()));
  // Its own labels may be given again, or their number without names.
  EXPECT_TRUE(open_labelled(out_, 3, names_));
  EXPECT_TRUE(open_labelled(out_, 3));
  for (const auto& [count, names] :
       {std::pair{size_t{4}, std::vector<std::string>{}}, {size_t{3}, {"a", "b", "c"}}}) {
    ModelSource wrong;
    wrong.source = out_, wrong.label_count = count, wrong.labels = names;
    const auto refused = Model::open(wrong);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("with 3 labels of its own"), std::string::npos)
        << refused.error().message;
  }
}

TEST_P(ClassifierFolder, AdaptersBringTheHeadAndItsNames) {
  const auto model = open_labelled(base_, 3, names_, adapters_of_all());
  ASSERT_TRUE(model);
  const uint64_t adapters = [&] {
    uint64_t n = 0;
    for (const Tensor& t : model->graph().tensors) n += t.adapter_of >= 0 ? t.shape.elements() : 0;
    return n;
  }();
  EXPECT_EQ(model->graph().trainable_count(), adapters + static_cast<uint64_t>(3 * model->config().width));
  auto trainer = trainer_of(model);
  const std::vector<float> untrained = logits_of(*trainer);
  for (uint64_t step = 0; step < 3; ++step) {
    GlobalBatch batch = labelled_batch(step, 6);
    for (int32_t& t : batch.targets) t = t >= 0 ? t % 3 : t;
    ASSERT_TRUE(trainer->step(batch.source(), 6, 1e-2));
  }
  const std::vector<float> trained = logits_of(*trainer);
  EXPECT_NE(trained, untrained);
  ASSERT_TRUE(trainer->export_model(out_));
  ASSERT_TRUE(trainer->save(folder_ / "now.stw"));
  for (const std::string& source : {out_, base_}) {
    const auto again = source == out_ ? open_labelled(out_, 0) : open_labelled(base_, 0, {}, {}, out_);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->config().labels, names_);
    EXPECT_EQ(logits_of(*trainer_of(again)), trained);
  }
  auto restored = trainer_of(model);
  ASSERT_TRUE(restored->restore(folder_ / "now.stw"));
  EXPECT_EQ(logits_of(*restored), trained);
  // A folder written by PEFT has no names.
  ASSERT_EQ(std::remove(adapter_labels(out_).c_str()), 0);
  EXPECT_EQ(open_labelled(out_, 0)->config().labels,
            (std::vector<std::string>{"LABEL_0", "LABEL_1", "LABEL_2"}));
  EXPECT_EQ(open_labelled(base_, 3, names_, {}, out_)->config().labels, names_);
  ModelSource wrong;
  wrong.source = base_, wrong.adapter = out_, wrong.label_count = 4;
  EXPECT_NE(Model::open(wrong).error().message.find("has a head for 3 labels, but 4 were given"),
            std::string::npos);
  // A merged model is a classifier like any other.
  ASSERT_TRUE(write_merged(*open_labelled(base_, 3, names_, {}, out_), merged_));
  const auto merged = open_labelled(merged_, 0);
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->config().labels, names_);
  const std::vector<float> of_merged = logits_of(*trainer_of(merged));
  for (size_t i = 0; i < trained.size(); ++i) EXPECT_NEAR(of_merged[i], trained[i], 1e-4);
}

TEST_P(ClassifierFolder, DamagedHeadsAndNamesAreRefused) {
  const auto model = open_labelled(base_, 3, names_, adapters_of_all());
  ASSERT_TRUE(trainer_of(model)->export_model(out_));
  const auto refusal = [&] {
    ModelSource source;
    source.source = out_;
    const auto opened = Model::open(source);
    return opened ? std::string() : opened.error().message;
  };
  EXPECT_EQ(refusal(), "");
  put_file(adapter_labels(out_), R"(["a", "b"])");
  EXPECT_NE(refusal().find("labels.json: expected 3 names, as many as the head has rows, found 2"),
            std::string::npos)
      << refusal();
  put_file(adapter_labels(out_), R"(["a", "b", "a"])");
  EXPECT_NE(refusal().find("\"a\" is there twice"), std::string::npos) << refusal();
  put_file(adapter_labels(out_), R"(["a", "b", 3])");
  EXPECT_NE(refusal().find("labels.json: expected a list of strings"), std::string::npos) << refusal();
  put_file(adapter_labels(out_), "[");
  EXPECT_NE(refusal().find("labels.json: "), std::string::npos) << refusal();
  put_file(adapter_labels(out_), R"(["a", "b", "c"])");
  EXPECT_EQ(refusal(), "");
}

INSTANTIATE_TEST_SUITE_P(Models, ClassifierFolder, testing::Values("gpt2", "qwen2", "llama"),
                         [](const auto& info) { return std::string(info.param); });

// ---- configs ---------------------------------------------------------------------------------------------

TEST(ClassifierConfig, NamesItsLabelsAsTransformersDoes) {
  const auto labels = [](const std::string& members) -> Result<std::vector<std::string>> {
    STW_ASSIGN(config, parse_model("{\"architectures\": [\"LlamaForSequenceClassification\"], " + members +
                                       small_llama().substr(1),
                                   "config"));
    return config.labels;
  };
  const auto refusal = [&](const std::string& members) {
    const auto read = labels(members);
    return read ? "accepted" : read.error().message;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(*labels(""), (Names{"LABEL_0", "LABEL_1"}));
  EXPECT_EQ(*labels("\"num_labels\": 3, "), (Names{"LABEL_0", "LABEL_1", "LABEL_2"}));
  EXPECT_EQ(*labels(R"("id2label": {"1": "no", "0": "yes"}, "problem_type": null, )"), (Names{"yes", "no"}));
  EXPECT_EQ(*labels(R"("id2label": null, "problem_type": "single_label_classification", )"),
            (Names{"LABEL_0", "LABEL_1"}));
  EXPECT_EQ(refusal(R"("problem_type": "ranking", )"), "config: problem_type \"ranking\" is not supported");
  EXPECT_EQ(refusal(R"("num_labels": 9999999, )"), "config: num_labels is 9999999");
  EXPECT_EQ(refusal(R"("id2label": {"0": "a", "2": "b"}, )"),
            "config: id2label: expected the numbers 0 to 1, each once, found \"2\"");
  EXPECT_EQ(refusal(R"("id2label": {"0": "a", "00": "b"}, )"),
            "config: id2label: expected the numbers 0 to 1, each once, found \"00\"");
  EXPECT_EQ(refusal(R"("id2label": {"0": "a", "1": 7}, )"),
            "config: id2label: 1: expected a string, found an integer");
  EXPECT_EQ(refusal(R"("id2label": {"0": "a", "1": "a"}, )"), "config: labels: \"a\" is there twice");
  EXPECT_EQ(refusal(R"("id2label": [], )").substr(0, 18), "config: \"id2label\"");
  EXPECT_EQ(refusal(R"("id2label": {"0": "a", "1": "b\u0000"}, )"),
            "config: labels: the name of label 1 is not UTF-8, or has a zero byte");
  // Other kinds of heads.
  for (const char* other : {"LlamaForMultipleChoice", "LlamaForNextSentencePrediction"}) {
    const auto read = parse_model(
        std::string("{\"architectures\": [\"") + other + "\"], " + small_llama().substr(1), "config");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().message, std::string("config: architectures: ") + other + " is not supported");
  }
  // A language model's config may have these keys too; they have no effect.
  EXPECT_TRUE(
      parse_model("{\"architectures\": [\"LlamaForCausalLM\"], \"num_labels\": 3, " + small_llama().substr(1),
                  "config")
          ->labels.empty());
}

TEST(ClassifierConfig, AnEndOfTextStandsForPadding) {
  const auto padding_of = [](const std::string& members) {
    ModelSource source;
    source.config_json = "{" + members + small_llama().substr(1);
    source.label_count = 2;
    const auto model = open_model(source);
    const Json& json = model->config().json;
    const Json* found = json.find("pad_token_id");
    EXPECT_EQ(to_string(*json.find("architectures"), 0), "[\"LlamaForSequenceClassification\"]");
    EXPECT_EQ(json.find("num_labels"), nullptr);
    return found ? to_string(*found, 0) : "absent";
  };
  EXPECT_EQ(padding_of(""), "absent");
  EXPECT_EQ(padding_of("\"eos_token_id\": 5, \"num_labels\": 9, "), "5");
  EXPECT_EQ(padding_of("\"eos_token_id\": [7, 5], \"pad_token_id\": null, "), "7");
  EXPECT_EQ(padding_of("\"eos_token_id\": 5, \"pad_token_id\": 3, "), "3");
  EXPECT_EQ(padding_of("\"eos_token_id\": null, "), "absent");
  EXPECT_EQ(padding_of("\"eos_token_id\": 61, "), "absent");  // outside of the vocabulary
  EXPECT_EQ(padding_of("\"eos_token_id\": 60, \"pad_token_id\": -1, "), "60");
}

}  // namespace
}  // namespace stw::classifier_test
