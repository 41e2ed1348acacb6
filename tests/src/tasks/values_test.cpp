// Multi-label classification (task `labels`) and regression (task `number`): comparison with transformers,
// bits, datasets and evaluations.
#include "src/models/heads/labels.h"
#include "tests/src/models/golden.h"
#include "tests/src/small_models.h"

namespace stw::values_test {
namespace {

using namespace testing_tools;

constexpr int64_t sequence = 24;
constexpr auto none = std::numeric_limits<float>::quiet_NaN();

// ---- against transformers --------------------------------------------------------------------------------

class GoldenValues : public testing::TestWithParam<const char*> {};

TEST_P(GoldenValues, LossGradientsAndOutputsAgree) {
  ModelSource source;
  source.source = folder_of(GetParam());
  const auto model = open_model(source);
  auto expected = SafetensorsReader::open(folder_of(GetParam()) + "/expected.safetensors");
  ASSERT_TRUE(model && expected);
  const std::string name_of_folder = GetParam();
  EXPECT_EQ(model->config().task, name_of_folder.starts_with("labels") ? Task::labels : Task::number);
  const bool is_encoder = architecture_of(model->config()).is_encoder;
  const auto labels = read_tensor<float>(*expected, "labels"),
             expected_logits = read_tensor<float>(*expected, "logits");
  const auto lengths = read_tensor<int32_t>(*expected, "lengths");
  const size_t width = model->config().labels.size(), samples = lengths.size();
  ASSERT_EQ(labels.size(), samples * width);
  GlobalBatch batch;
  batch.tokens = read_tensor<int32_t>(*expected, "tokens");
  batch.sequence = static_cast<int64_t>(batch.tokens.size() / samples);
  const auto length_of_sample = static_cast<size_t>(batch.sequence);
  batch.targets.assign(batch.tokens.size(), kernels::ignored_target);
  batch.values.assign(batch.tokens.size() * width, 1e9f);  // never read without a target
  if (expected->find("token_types")) batch.token_types = read_tensor<int32_t>(*expected, "token_types");
  std::vector<Text> texts;
  for (size_t s = 0; s < samples; ++s) {
    const auto length = static_cast<size_t>(lengths[s]), begin = s * length_of_sample,
               row = begin + (is_encoder ? 0 : length - 1);
    batch.targets[row] = 0;
    std::copy_n(labels.begin() + static_cast<std::ptrdiff_t>(s * width), width,
                batch.values.begin() + static_cast<std::ptrdiff_t>(row * width));
    for (size_t i = 0; is_encoder && i < length_of_sample; ++i)
      batch.positions.push_back(i < length ? static_cast<int32_t>(i) : 0);
    texts.push_back({batch.tokens.data() + begin, length,
                     batch.token_types.empty() ? nullptr : batch.token_types.data() + begin});
  }
  for (const int64_t micro_batch : {1, 3, 4}) {
    Request request = request_for(static_cast<int64_t>(samples), batch.sequence, 2);
    request.micro_batch = micro_batch;
    GoldenTrainer trainer(model, plan_for(*model, request));
    std::vector<float> all(expected_logits.size());
    const Status classified = trainer->classify(texts, all.data());
    ASSERT_TRUE(classified) << classified.error().message;
    EXPECT_LE(relative(all.data(), expected_logits.data(), all.size()), 1e-5);
    trainer.expect_step(batch, *expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, GoldenValues,
                         testing::Values("labels_bert", "labels_roberta", "labels_llama", "number_bert",
                                         "number_roberta", "number_llama", "labels_electra", "number_electra",
                                         "labels_albert", "number_albert", "labels_modernbert",
                                         "number_modernbert"),
                         [](const auto& info) { return std::string(info.param); });

// ---- runs ------------------------------------------------------------------------------------------------

// Texts of up to 12 tokens end to end. Their values depend on their tokens.
GlobalBatch batch_with_values(uint64_t seed, int64_t samples, const Model& model) {
  GlobalBatch b = random_batch(seed, samples, sequence);
  const size_t width = model.config().labels.size();
  const bool at_first = architecture_of(model.config()).is_encoder,
             has_types = model.config().token_types > 1, is_number = model.config().task == Task::number;
  b.targets.assign(b.tokens.size(), kernels::ignored_target);
  b.positions.assign(b.tokens.size(), 0);
  b.values.assign(b.tokens.size() * width, 0);
  if (has_types) b.token_types.assign(b.tokens.size(), 0);
  std::mt19937 random(static_cast<uint32_t>(seed));
  for (int64_t s = 0; s < samples; ++s)
    for (int64_t begin = 0, length; begin + (length = 1 + static_cast<int64_t>(random() % 12)) <= sequence;
         begin += length) {
      const auto at = static_cast<size_t>(s * sequence + begin), last = at + static_cast<size_t>(length) - 1,
                 row = at_first ? at : last;
      b.targets[row] = 0;
      for (size_t k = 0; k < width; ++k)
        b.values[row * width + k] = is_number
                                        ? static_cast<float>(b.tokens[last] % 5) / 2 - static_cast<float>(k)
                                        : static_cast<float>(b.tokens[last] >> k & 1);
      for (int64_t i = 0; i < length; ++i) {
        b.positions[at + static_cast<size_t>(i)] = static_cast<int32_t>(i);
        if (has_types) b.token_types[at + static_cast<size_t>(i)] = i > length / 2;
      }
    }
  return b;
}

class ValueBits : public testing::TestWithParam<NumericsCase> {};

TEST_P(ValueBits, AreTheSameHoweverTheBatchIsCutAndAfterACheckpoint) {
  const auto model = model_of(GetParam().config);
  Request r = GetParam().request(6, sequence, 2);
  r.inputs.positions = true;
  const auto batch_of = [&](uint64_t step) { return batch_with_values(10 + step, 6, *model); };
  const Trained whole = expect_same_however_cut(model, r, batch_of);
  // Chunks of the loss, of 16 rows, must not change bits.
  r.micro_batch = 6;
  Decisions decisions = plan_for(*model, r)->plan.decisions;
  decisions.loss_chunks = 4;
  expect_same(train_on(model, plan_with(*model, r, decisions), batch_of, 3), whole, "chunks");
}

INSTANTIATE_TEST_SUITE_P(
    Models, ValueBits,
    testing::Values(NumericsCase{"labels_bert", of_labels(small_bert("0.1")), Precision::fp32, 32},
                    NumericsCase{"number_roberta", of_numbers(small_roberta("0.1")), Precision::bf16, 8},
                    NumericsCase{"labels_modernbert", of_labels(small_modernbert("0.1")), Precision::bf16, 8},
                    NumericsCase{"labels_gpt2", of_labels(small_gpt2("0.1")), Precision::fp16, 32},
                    NumericsCase{"number_llama_adapters",
                                 {of_numbers(small_llama()), adapters_of_some()},
                                 Precision::fp32,
                                 8}),
    case_name);

// ---- datasets --------------------------------------------------------------------------------------------

// Documents of 1 to 30 tokens, some longer than a sample. One in nine has no values.
struct Documents {
  TemporaryDirectory folder;
  std::vector<std::vector<int32_t>> tokens;
  std::vector<std::vector<float>> values;
  Task task;
  Documents(size_t count, Task of) : task(of) {
    std::string all, marks;
    std::mt19937 random(4);
    for (size_t d = 0; d < count; ++d) {
      tokens.emplace_back();
      for (size_t i = 0, length = 1 + random() % 30; i < length; ++i) {
        tokens.back().push_back(static_cast<int32_t>(random() % small_vocabulary));
        all += {static_cast<char>(tokens.back().back()), '\0'};
        marks += static_cast<char>(i == 0 ? mark_begin : 0);
      }
      values.emplace_back();
      for (int64_t k = 0; k < small_labels; ++k)
        values.back().push_back(task == Task::labels ? static_cast<float>(random() % 2)
                                                     : static_cast<float>(random() % 100) / 8 - 6);
      if (d % 9 == 4) values.back()[0] = none;
    }
    put_file(folder / "tokens.bin", all);
    put_file(folder / "marks", marks);
    put_values();
  }
  void put_values() const {
    std::string bytes;
    for (const std::vector<float>& of_document : values)
      bytes.append(reinterpret_cast<const char*>(of_document.data()), of_document.size() * sizeof(float));
    put_file(folder / "values", bytes);
  }
  DatasetOptions options() const {
    DatasetOptions o;
    o.path = folder / "tokens.bin", o.marks_path = folder / "marks", o.labels_path = folder / "values";
    o.label_count = small_labels, o.vocabulary = small_vocabulary, o.sequence = sequence, o.task = task,
    o.evaluation_fraction = 1;
    return o;
  }
};

TEST(Values, EvaluationAgreesWithTheOutputsOfEveryDocument) {
  for (const std::string& config :
       {of_labels(small_llama()), of_labels(small_bert()), of_numbers(small_bert()), of_numbers(small_gpt2()),
        of_labels(small_albert()), of_numbers(small_modernbert())}) {
    const auto model = model_of(config);
    const bool is_number = model->config().task == Task::number;
    const Documents documents(60, model->config().task);
    Request r = request_for(3, sequence, 2);
    r.inputs.positions = true;
    r.micro_batch = 2;
    auto trainer = trainer_for(model, plan_for(*model, r));
    auto dataset = Dataset::open(documents.options());
    ASSERT_TRUE(dataset) << dataset.error().message;
    const auto loss = trainer->evaluate(*dataset, 1000);
    ASSERT_TRUE(loss) << loss.error().message;
    double sum = 0;
    int count = 0, hits = 0;
    for (size_t d = 0; d < documents.tokens.size(); ++d) {
      if (std::isnan(documents.values[d][0])) continue;
      const auto logits = trainer->logits(documents.tokens[d].data(),
                                          std::min<uint64_t>(documents.tokens[d].size(), sequence));
      ASSERT_TRUE(logits);
      bool all_right = true;
      for (size_t k = 0; k < small_labels; ++k) {
        const double x = static_cast<double>((*logits)[k]), y = static_cast<double>(documents.values[d][k]);
        sum += (is_number ? (x - y) * (x - y) : std::log1p(std::exp(y > 0 ? -x : x))) / small_labels;
        all_right = all_right && (x > 0) == (y > 0.5);
      }
      hits += all_right;
      ++count;
    }
    ASSERT_GT(count, 40);
    EXPECT_NEAR(*loss, sum / count, 1e-5 * *loss);
    if (is_number) EXPECT_TRUE(std::isnan(trainer->progress().evaluation_accuracy));
    else EXPECT_EQ(trainer->progress().evaluation_accuracy, static_cast<double>(hits) / count);
  }
}

TEST(Values, LearnsLabelsAndNumbers) {
  for (const std::string& config : {of_labels(small_qwen2()), of_numbers(small_llama())}) {
    const auto model = model_of(config);
    Request r = request_for(16, sequence, 2);
    r.inputs.positions = true;
    auto trainer = trainer_for(model, plan_for(*model, r));
    double first = 0, last = 0;
    for (uint64_t step = 0; step < 150; ++step) {
      const auto result = trainer->step(batch_with_values(step, 16, *model).source(), 16, 3e-3);
      ASSERT_TRUE(result);
      if (step == 0) first = result->loss;
      last = result->loss;
    }
    EXPECT_LT(last, 0.5 * first);
  }
}

TEST(Values, ErrorsOfDatasetsAreNamed) {
  Documents documents(20, Task::labels);
  const auto refusal = [&](const DatasetOptions& o) {
    const auto dataset = Dataset::open(o);
    return dataset ? std::string() : dataset.error().message;
  };
  const std::string path = documents.folder / "values";
  EXPECT_EQ(refusal(documents.options()), "");
  DatasetOptions fewer = documents.options();
  fewer.label_count = 6;
  EXPECT_EQ(refusal(fewer), path + ": expected 480 bytes, 6 numbers for each document, found 560");
  documents.values[3][5] = 1.5f;
  documents.put_values();
  EXPECT_EQ(refusal(documents.options()), path + ": number 5 of document 3 is 1.500000, expected 0 to 1");
  documents.task = Task::number;
  EXPECT_EQ(refusal(documents.options()), "");
  documents.values[3][5] = INFINITY;
  documents.put_values();
  EXPECT_EQ(refusal(documents.options()), path + ": number 5 of document 3 is inf, expected a finite number");
  documents.values[3][0] = none;  // a NaN: the document has no values
  documents.put_values();
  EXPECT_EQ(refusal(documents.options()), "");
}

TEST(Values, DatasetsAndModelsMustAgreeOnTheTask) {
  const Documents documents(30, Task::number);
  Request r = request_for(3, sequence);
  r.inputs.positions = true;
  const auto of_one_label = model_of(classifier_of(small_llama())),
             of_several = model_of(of_labels(small_llama()));
  const auto numbers = Dataset::open(documents.options());
  ASSERT_TRUE(numbers);
  EXPECT_EQ(trainer_for(of_one_label, plan_for(*of_one_label, r))->evaluate(*numbers, 1).error().message,
            "trainer: the model's task is label, the dataset was opened for number");
  EXPECT_EQ(trainer_for(of_several, plan_for(*of_several, r))->evaluate(*numbers, 1).error().message,
            "trainer: the model's task is labels, the dataset was opened for number");
}

TEST(Values, AFileThatChangesIsNamed) {
  Documents documents(20, Task::labels);
  const auto model = model_of(of_labels(small_llama()));
  Request r = request_for(3, sequence);
  r.inputs.positions = true;
  const auto dataset = Dataset::open(documents.options());
  ASSERT_TRUE(dataset);
  for (std::vector<float>& of_document : documents.values) of_document[2] = 7;
  documents.put_values();
  const auto loss = trainer_for(model, plan_for(*model, r))->evaluate(*dataset, 1);
  ASSERT_FALSE(loss);
  EXPECT_EQ(loss.error().code, Code::corrupt);
  EXPECT_NE(loss.error().message.find("it has changed since it was opened"), std::string::npos)
      << loss.error().message;
}

TEST(Values, SettingsOfASoftmaxAreRefused) {
  const auto model = model_of(of_numbers(small_llama()));
  const auto planned = plan_for(*model, request_for(3, sequence));
  TrainerOptions smoothed, penalised;
  smoothed.label_smoothing = 0.1;
  penalised.z_loss = 1e-3;
  EXPECT_EQ(Trainer::create(best_device(), model, planned, smoothed).error().message,
            "trainer: label_smoothing needs a softmax loss; the task number has none");
  EXPECT_EQ(Trainer::create(best_device(), model, planned, penalised).error().message,
            "trainer: z_loss needs a softmax loss; the task number has none");
  Request pairs = request_for(3, sequence);
  pairs.inputs.positions = true, pairs.inputs.preference = Preference::simpo;
  EXPECT_FALSE(Planned::make(*model, pairs));
}

// ---- configs ---------------------------------------------------------------------------------------------

TEST(ValueConfig, NamesItsTaskAsTransformersDoes) {
  const auto task_of = [](const std::string& fields) {
    const auto config = parse_model(
        R"({"architectures": ["LlamaForSequenceClassification"], )" + fields + small_llama().substr(1),
        "config");
    EXPECT_TRUE(config) << config.error().message;
    return config ? std::pair(config->task, config->labels.size())
                  : std::pair(Task::language_model, size_t{0});
  };
  EXPECT_EQ(task_of(R"("num_labels": 1, )"), std::pair(Task::number, size_t{1}));
  EXPECT_EQ(task_of(R"("num_labels": 3, )"), std::pair(Task::label, size_t{3}));
  EXPECT_EQ(task_of(R"("num_labels": 3, "problem_type": "regression", )"),
            std::pair(Task::number, size_t{3}));
  EXPECT_EQ(task_of(R"("num_labels": 1, "problem_type": "multi_label_classification", )"),
            std::pair(Task::labels, size_t{1}));
  EXPECT_EQ(task_of(R"("id2label": {"0": "a", "1": "b"}, "problem_type": "multi_label_classification", )"),
            std::pair(Task::labels, size_t{2}));
  EXPECT_FALSE(parse_model(R"({"architectures": ["LlamaForSequenceClassification"], "num_labels": 1, )"
                           R"("problem_type": "single_label_classification", )" +
                               small_llama().substr(1),
                           "config"));
  EXPECT_FALSE(parse_model(R"({"architectures": ["LlamaForSequenceClassification"], "num_labels": 0, )"
                           R"("problem_type": "regression", )" +
                               small_llama().substr(1),
                           "config"));
}

TEST(ValueConfig, ATaskIsAskedForAndStaysInTheFolder) {
  for (const auto& [config, task, count] : {std::tuple{small_llama(), Task::labels, size_t{3}},
                                            {small_bert(), Task::number, size_t{1}},
                                            {small_bert(), Task::labels, size_t{1}}}) {
    ModelSource source;
    source.config_json = config;
    source.task = task;
    source.label_count = count;
    const auto model = open_model(source);
    ASSERT_TRUE(model);
    TemporaryDirectory folder;
    ASSERT_TRUE(trainer_for(model, plan_for(*model, request_for(2, sequence)))->export_model(folder / "out"));
    ModelSource again;
    again.source = folder / "out";
    const auto reopened = open_model(again);
    ASSERT_TRUE(reopened);
    EXPECT_EQ(reopened->config().task, task);
    EXPECT_EQ(reopened->config().labels.size(), count);
    again.task = Task::label;
    again.label_count = std::max<size_t>(2, count);
    const auto other = Model::open(again);
    ASSERT_FALSE(other);
    EXPECT_NE(other.error().message.find(std::string("the model's task is ") + task_row(task).name +
                                         "; label was given"),
              std::string::npos)
        << other.error().message;
  }
}

// A config without a problem_type allows every task, as transformers infers the task from the training
// labels.
TEST(ValueConfig, LabelsWithoutAProblemTakeAnyTask) {
  for (const Task task : {Task::label, Task::labels, Task::number}) {
    ModelSource source;
    source.config_json = classifier_of(small_qwen2());
    source.task = task;
    const auto model = open_model(source);
    ASSERT_TRUE(model);
    EXPECT_EQ(model->config().task, task);
    EXPECT_EQ(model->config().labels.size(), static_cast<size_t>(small_labels));
    if (task == Task::label) continue;  // as in the config
    ASSERT_NE(model->config().json.find("problem_type"), nullptr);
    EXPECT_EQ(*model->config().json.find("problem_type")->as_string(), task_row(task).problem_type);
  }
}

}  // namespace
}  // namespace stw::values_test
