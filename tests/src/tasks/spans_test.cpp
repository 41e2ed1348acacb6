// Answers in texts (task `spans`): comparison with transformers, bits, datasets, evaluations and folders.
#include "src/models/heads/labels.h"
#include "tests/src/models/golden.h"
#include "tests/src/small_models.h"

namespace stw::spans_test {
namespace {

using namespace testing_tools;

constexpr int64_t sequence = 24;
constexpr auto none = std::numeric_limits<float>::quiet_NaN();

// ---- against transformers --------------------------------------------------------------------------------

class GoldenSpans : public testing::TestWithParam<const char*> {};

TEST_P(GoldenSpans, LossGradientsAndLogitsAgree) {
  ModelSource source;
  source.source = folder_of(GetParam());
  const auto model = open_model(source);
  auto expected = SafetensorsReader::open(folder_of(GetParam()) + "/expected.safetensors");
  ASSERT_TRUE(model && expected);
  EXPECT_EQ(model->config().task, Task::spans);
  EXPECT_EQ(model->config().labels, span_labels());
  const auto spans = read_tensor<float>(*expected, "labels"),
             expected_logits = read_tensor<float>(*expected, "logits");
  const auto lengths = read_tensor<int32_t>(*expected, "lengths");
  const size_t samples = lengths.size();
  ASSERT_EQ(spans.size(), samples * 2);
  GlobalBatch batch;
  batch.tokens = read_tensor<int32_t>(*expected, "tokens");
  batch.sequence = static_cast<int64_t>(batch.tokens.size() / samples);
  const auto length_of_sample = static_cast<size_t>(batch.sequence);
  batch.targets.assign(batch.tokens.size(), kernels::ignored_target);
  batch.values.assign(batch.tokens.size() * 2, 1e9f);  // never read without a target
  if (expected->find("token_types")) batch.token_types = read_tensor<int32_t>(*expected, "token_types");
  std::vector<Text> texts;
  std::vector<float> logits_of_texts;
  for (size_t s = 0; s < samples; ++s) {
    const auto length = static_cast<size_t>(lengths[s]), begin = s * length_of_sample;
    batch.targets[begin] = 0;
    std::copy_n(&spans[2 * s], 2, &batch.values[2 * begin]);
    for (size_t i = 0; i < length_of_sample; ++i)
      batch.positions.push_back(i < length ? static_cast<int32_t>(i) : 0);
    texts.push_back({batch.tokens.data() + begin, length,
                     batch.token_types.empty() ? nullptr : batch.token_types.data() + begin});
    logits_of_texts.insert(logits_of_texts.end(), &expected_logits[2 * begin],
                           &expected_logits[2 * begin] + 2 * length);
  }
  for (const int64_t micro_batch : {1, 3, 4}) {
    Request request = request_for(static_cast<int64_t>(samples), batch.sequence, 2);
    request.micro_batch = micro_batch;
    GoldenTrainer trainer(model, plan_for(*model, request));
    std::vector<float> all(logits_of_texts.size());
    const Status classified = trainer->classify(texts, all.data());
    ASSERT_TRUE(classified) << classified.error().message;
    EXPECT_LE(relative(all.data(), logits_of_texts.data(), all.size()), 1e-5);
    trainer.expect_step(batch, *expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, GoldenSpans,
                         testing::Values("spans_bert", "spans_roberta", "spans_modernbert", "spans_albert",
                                         "spans_electra", "spans_distilbert", "spans_deberta"),
                         [](const auto& info) { return std::string(info.param); });

// ---- runs ------------------------------------------------------------------------------------------------

// Texts of up to 12 tokens end to end. Their answers depend on their tokens; every fourth text has none.
GlobalBatch batch_with_spans(uint64_t seed, int64_t samples, const Model& model) {
  GlobalBatch b = random_batch(seed, samples, sequence);
  const bool has_types = model.config().token_types > 1;
  b.targets.assign(b.tokens.size(), kernels::ignored_target);
  b.positions.assign(b.tokens.size(), 0);
  b.values.assign(b.tokens.size() * 2, 0);
  if (has_types) b.token_types.assign(b.tokens.size(), 0);
  std::mt19937 random(static_cast<uint32_t>(seed));
  for (int64_t s = 0; s < samples; ++s)
    for (int64_t begin = 0, length; begin + (length = 1 + static_cast<int64_t>(random() % 12)) <= sequence;
         begin += length) {
      const auto at = static_cast<size_t>(s * sequence + begin), end = at + static_cast<size_t>(length);
      if (random() % 4 > 0) b.targets[at] = 0;
      // From the smallest token to the last one.
      const auto smallest = std::min_element(b.tokens.begin() + static_cast<std::ptrdiff_t>(at),
                                             b.tokens.begin() + static_cast<std::ptrdiff_t>(end)) -
                            b.tokens.begin();
      b.values[2 * at] = static_cast<float>(smallest - static_cast<std::ptrdiff_t>(at));
      b.values[2 * at + 1] = static_cast<float>(length - 1);
      for (int64_t i = 0; i < length; ++i) {
        b.positions[at + static_cast<size_t>(i)] = static_cast<int32_t>(i);
        if (has_types) b.token_types[at + static_cast<size_t>(i)] = i > length / 2;
      }
    }
  return b;
}

class SpanBits : public testing::TestWithParam<NumericsCase> {};

TEST_P(SpanBits, AreTheSameHoweverTheBatchIsCutAndAfterACheckpoint) {
  const auto model = model_of(GetParam().config);
  Request r = GetParam().request(6, sequence, 2);
  r.inputs.positions = true;
  const auto batch_of = [&](uint64_t step) { return batch_with_spans(10 + step, 6, *model); };
  const Trained whole = expect_same_however_cut(model, r, batch_of);
  // Chunks of the loss are samples: a text's loss reads the logits of all its tokens.
  r.micro_batch = 6;
  Decisions decisions = plan_for(*model, r)->plan.decisions;
  for (const int64_t chunks : {2, 4, 64}) {
    decisions.loss_chunks = chunks;
    expect_same(train_on(model, plan_with(*model, r, decisions), batch_of, 3), whole, "chunks");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, SpanBits,
    testing::Values(NumericsCase{"bert", spans_of(small_bert("0.1")), Precision::fp32, 32},
                    NumericsCase{"roberta", spans_of(small_roberta("0.1")), Precision::bf16, 8},
                    NumericsCase{"modernbert", spans_of(small_modernbert("0.1")), Precision::bf16, 8},
                    NumericsCase{"electra", spans_of(small_electra("0.1")), Precision::fp16, 32},
                    NumericsCase{
                        "bert_adapters", {spans_of(small_bert()), adapters_of_all()}, Precision::fp32, 8}),
    case_name);

TEST(Spans, LearnsAnswers) {
  const auto model = model_of(spans_of(small_bert()));
  Request r = request_for(16, sequence, 2);
  r.inputs.positions = true;
  auto trainer = trainer_for(model, plan_for(*model, r));
  double first = 0, last = 0;
  for (uint64_t step = 0; step < 200; ++step) {
    const auto result = trainer->step(batch_with_spans(step, 16, *model).source(), 16, 3e-3);
    ASSERT_TRUE(result);
    if (step == 0) first = result->loss;
    last = result->loss;
  }
  EXPECT_LT(last, 0.5 * first);
}

// ---- datasets --------------------------------------------------------------------------------------------

// Documents of 1 to `longest` tokens. One in nine has no answer.
struct Documents {
  TemporaryDirectory folder;
  std::vector<std::vector<int32_t>> tokens;
  std::vector<std::array<float, 2>> spans;
  explicit Documents(size_t count, size_t longest = sequence) {
    std::string all, marks;
    std::mt19937 random(4);
    for (size_t d = 0; d < count; ++d) {
      tokens.emplace_back();
      for (size_t i = 0, length = 1 + random() % longest; i < length; ++i) {
        tokens.back().push_back(static_cast<int32_t>(random() % small_vocabulary));
        all += {static_cast<char>(tokens.back().back()), '\0'};
        marks += static_cast<char>(i == 0 ? mark_begin : 0);
      }
      const size_t start = random() % tokens[d].size();
      spans.push_back(
          {static_cast<float>(start), static_cast<float>(start + random() % (tokens[d].size() - start))});
      if (d % 9 == 4) spans.back() = {none, none};
    }
    put_file(folder / "tokens.bin", all);
    put_file(folder / "marks", marks);
    put_spans();
  }
  void put_spans() const {
    std::string bytes;
    for (const auto& span : spans) bytes.append(reinterpret_cast<const char*>(span.data()), sizeof span);
    put_file(folder / "spans", bytes);
  }
  DatasetOptions options() const {
    DatasetOptions o;
    o.path = folder / "tokens.bin", o.marks_path = folder / "marks", o.labels_path = folder / "spans";
    o.label_count = 2, o.vocabulary = small_vocabulary, o.sequence = sequence, o.task = Task::spans,
    o.evaluation_fraction = 1;
    return o;
  }
};

TEST(Spans, EvaluationAgreesWithTheLogitsOfEveryDocument) {
  for (const std::string& config : {spans_of(small_bert()), spans_of(small_modernbert())}) {
    const auto model = model_of(config);
    const Documents documents(60);
    Request r = request_for(3, sequence, 2);
    r.inputs.positions = true;
    r.micro_batch = 2;
    auto trainer = trainer_for(model, plan_for(*model, r));
    auto dataset = Dataset::open(documents.options());
    ASSERT_TRUE(dataset) << dataset.error().message;
    const auto loss = trainer->evaluate(*dataset, 1000);
    ASSERT_TRUE(loss) << loss.error().message;
    double sum = 0;
    int count = 0;
    for (size_t d = 0; d < documents.tokens.size(); ++d) {
      if (std::isnan(documents.spans[d][0])) continue;
      const size_t length = documents.tokens[d].size();
      const Text text{documents.tokens[d].data(), length, nullptr};
      std::vector<float> logits(2 * length);
      ASSERT_TRUE(trainer->classify({&text, 1}, logits.data()));
      for (size_t c = 0; c < 2; ++c) {
        double total = 0;
        for (size_t i = 0; i < length; ++i) total += std::exp(static_cast<double>(logits[2 * i + c]));
        sum += (std::log(total) -
                static_cast<double>(logits[2 * static_cast<size_t>(documents.spans[d][c]) + c])) /
               2;
      }
      ++count;
    }
    ASSERT_GT(count, 40);
    EXPECT_NEAR(*loss, sum / count, 1e-5 * *loss);
    EXPECT_TRUE(std::isnan(trainer->progress().evaluation_accuracy));
    const auto refused = trainer->logits(documents.tokens[0].data(), documents.tokens[0].size());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message,
              "logits: the model looks for answers; classify gives the logits of all tokens");
  }
}

TEST(Spans, ErrorsOfDatasetsAreNamed) {
  Documents documents(20);
  const std::string path = documents.folder / "spans";
  const auto refusal = [&] {
    documents.put_spans();
    const auto dataset = Dataset::open(documents.options());
    return dataset ? std::string() : dataset.error().message;
  };
  EXPECT_EQ(refusal(), "");
  const size_t length = documents.tokens[3].size();
  documents.spans[3] = {0, static_cast<float>(length)};
  EXPECT_EQ(refusal(), path + ": document 3 has an answer from token 0 to token " + std::to_string(length) +
                           ", expected one within its " + std::to_string(length) + " tokens");
  documents.spans[3] = {1, 0};
  EXPECT_EQ(refusal(), path + ": document 3 has an answer from token 1 to token 0, expected one within its " +
                           std::to_string(length) + " tokens");
  documents.spans[3] = {0, 0.5f};
  EXPECT_EQ(refusal(), path + ": number 1 of document 3 is 0.500000, expected the index of a token");
  const Documents longer(20, 3 * sequence);
  const auto cut = Dataset::open(longer.options());
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().message.find("expected at most 24, a sample: cut it into texts of its own"),
            std::string::npos)
      << cut.error().message;
}

TEST(Spans, SettingsOfOtherLossesAreRefused) {
  const auto model = model_of(spans_of(small_bert()));
  const auto planned = plan_for(*model, request_for(3, sequence));
  TrainerOptions smoothed;
  smoothed.label_smoothing = 0.1;
  EXPECT_EQ(Trainer::create(best_device(), model, planned, smoothed).error().message,
            "trainer: label_smoothing is not supported for the task spans");
}

// ---- configs ---------------------------------------------------------------------------------------------

TEST(SpanConfig, ATaskIsAskedForAndStaysInTheFolder) {
  for (const std::string& config : {small_bert("0.1"), small_roberta("0.1"), small_distilbert("0.1"),
                                    small_electra("0.1"), small_albert("0.1"), small_modernbert("0.1")}) {
    ModelSource source;
    source.config_json = config;
    source.task = Task::spans;
    const auto model = open_model(source);
    ASSERT_TRUE(model);
    TemporaryDirectory folder;
    ASSERT_TRUE(trainer_for(model, plan_for(*model, request_for(2, sequence)))->export_model(folder / "out"));
    ModelSource again;
    again.source = folder / "out";
    const auto reopened = open_model(again);
    ASSERT_TRUE(reopened);
    EXPECT_EQ(reopened->config().task, Task::spans);
    EXPECT_TRUE(class_of(reopened->config().json).ends_with("ForQuestionAnswering"));
    EXPECT_EQ(reopened->config().json.find("id2label"), nullptr);
    again.task = Task::label, again.label_count = 2;
    EXPECT_NE(Model::open(again).error().message.find("the model's task is spans; label was given"),
              std::string::npos);
  }
}

TEST(SpanConfig, OtherHeadsAreRefusedByName) {
  const auto refusal = [](const std::string& config) {
    const auto parsed = parse_model(config, "config");
    return parsed ? std::string() : parsed.error().message;
  };
  EXPECT_EQ(refusal(spans_of(small_bert())), "");
  EXPECT_EQ(refusal(spans_of(small_llama())),
            "config: LlamaForQuestionAnswering is not supported: answers are found by encoders, and this "
            "model is a decoder");
  EXPECT_EQ(refusal("{\"num_labels\": 3, " + spans_of(small_bert()).substr(1)),
            "config: num_labels is 3, expected 2: the first and the last token of an answer");
  ModelSource named;
  named.config_json = small_bert(), named.task = Task::spans, named.label_count = 2;
  named.labels = {"first", "last"};
  EXPECT_EQ(Model::open(named).error().message,
            "config: labels: the task spans has the labels start and end; no others are possible");
}

TEST(SpanConfig, AdaptersNameTheirTaskAsPeftDoes) {
  ModelSource source;
  source.source = folder_of("spans_bert");
  source.adapters = adapters_of_all();
  const auto model = open_model(source);
  ASSERT_TRUE(model);
  TemporaryDirectory folder;
  auto trainer = trainer_for(model, plan_for(*model, request_for(2, sequence)));
  ASSERT_TRUE(trainer->step(batch_with_spans(1, 2, *model).source(), 2, 1e-3));
  ASSERT_TRUE(trainer->export_model(folder / "out"));
  const auto config = read_text(folder / "out/adapter_config.json", 1 << 20);
  ASSERT_TRUE(config);
  EXPECT_NE(config->find("\"task_type\": \"QUESTION_ANS\""), std::string::npos) << *config;
  EXPECT_NE(config->find("\"qa_outputs\""), std::string::npos) << *config;
  ModelSource again;
  again.source = folder_of("spans_bert"), again.adapter = folder / "out";
  const auto reopened = open_model(again);
  ASSERT_TRUE(reopened);
  EXPECT_EQ(reopened->config().task, Task::spans);
}

}  // namespace
}  // namespace stw::spans_test
