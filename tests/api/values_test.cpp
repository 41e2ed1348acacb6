// Multi-label classification (task `labels`) and regression (task `number`) through the C API.
#include <cmath>
#include <limits>
#include <utility>

#include "tests/api/harness.h"

namespace stw::api_test {
namespace {

constexpr float none = std::numeric_limits<float>::quiet_NaN();

struct ValueTrainer {
  Handle<stw_device> device = open_device();
  Handle<stw_model> model;
  Handle<stw_plan> plan;
  Handle<stw_trainer> trainer;
  ValueTrainer(uint32_t task, size_t count, const std::string& config = tiny_llama, uint32_t inputs = 0) {
    auto m = sized<stw_model_options>();
    m.config_json = config.data(), m.config_json_size = config.size(), m.label_count = count, m.task = task;
    model = make<stw_model>([&](stw_model** out, stw_error* e) { return stw_model_create(out, &m, e); });
    auto o = plan_options();
    o.inputs = inputs;
    plan = make_plan(model.get(), o);
    trainer = make<stw_trainer>([&](stw_trainer** out, stw_error* e) {
      return stw_trainer_create(out, device.get(), model.get(), plan.get(), nullptr, e);
    });
  }
};

template <class T>
DLManagedTensorVersioned host_tensor(std::vector<T>& data, std::vector<int64_t>& shape) {
  DLManagedTensorVersioned t{};
  t.version = {1, 0};
  t.dl_tensor.data = data.data();
  t.dl_tensor.device = {kDLCPU, 0};
  t.dl_tensor.ndim = static_cast<int32_t>(shape.size());
  t.dl_tensor.dtype = {static_cast<uint8_t>(std::is_same_v<T, float> ? 2 : 0), 32, 1};
  t.dl_tensor.shape = shape.data();
  return t;
}

// Four samples; the last one has no values.
struct ValueSamples {
  std::vector<int64_t> shape{4, 16}, shape_of_lengths{4}, shape_of_values;
  std::vector<int32_t> tokens, lengths{16, 3, 9, 1};
  std::vector<float> values;
  ValueSamples(std::vector<float> of_samples, int64_t width)
      : shape_of_values{4, width}, values(std::move(of_samples)) {
    uint32_t seed = 9;
    for (int i = 0; i < 64; ++i)
      tokens.push_back(static_cast<int32_t>((seed = seed * 1664525 + 1013904223) >> 24));
  }
  template <class T>
  stw_status step(stw_trainer* trainer, const char* name, std::vector<T>& given, stw_step_result* result,
                  stw_error* error) {
    DLManagedTensorVersioned of_tokens = host_tensor(tokens, shape),
                             of_lengths = host_tensor(lengths, shape_of_lengths),
                             of_values = host_tensor(given, shape_of_values);
    const char* const list[] = {"tokens", "lengths", name};
    const DLManagedTensorVersioned* const tensors[] = {&of_tokens, &of_lengths, &of_values};
    auto batch = sized<stw_batch>();
    batch.count = name ? 3 : 2, batch.names = list, batch.tensors = tensors, batch.learning_rate = 1e-2;
    const stw_status status = stw_trainer_step(trainer, &batch, error);
    if (status == STW_OK) must(stw_trainer_wait(trainer, result, error), *error);
    return status;
  }
  stw_status step(stw_trainer* trainer, stw_step_result* result, stw_error* error) {
    return step(trainer, "labels", values, result, error);
  }
  // The outputs for the samples' texts.
  std::vector<float> outputs(stw_trainer* trainer, size_t width) {
    std::vector<float> all;
    stw_error error = sized<stw_error>();
    for (size_t s = 0; s < 4; ++s) {
      std::vector<float> out(width);
      const auto length = static_cast<uint64_t>(lengths[s]);
      must(stw_trainer_classify(trainer, tokens.data() + 16 * s, nullptr, &length, 1, out.data(), width,
                                &error),
           error);
      all.insert(all.end(), out.begin(), out.end());
    }
    return all;
  }
};

TEST(Values, LossAgreesWithOutputsAndTextsAreLearned) {
  const struct {
    uint32_t task;
    const std::string& config;
    ValueSamples samples;
  } cases[] = {{STW_TASK_LABELS, tiny_llama, {{1, 0, 1, 0, 0, 0, 1, 1, 0.25f, none, 9, 9}, 3}},
               {STW_TASK_NUMBER, tiny_llama, {{2.5f, -1, 0.5f, none}, 1}},
               {STW_TASK_NUMBER, tiny_gpt2, {{2.5f, -1, 3, 4, -0.5f, 1, none, 5}, 2}}};
  for (const auto& c : cases) {
    ValueSamples samples = c.samples;
    const auto width = static_cast<size_t>(samples.shape_of_values[1]);
    ValueTrainer trainer(c.task, width, c.config);
    auto info = sized<stw_model_info>();
    ASSERT_EQ(stw_model_query(trainer.model.get(), &info), STW_OK);
    EXPECT_EQ(info.task, c.task);
    EXPECT_EQ(info.labels, width);
    const std::vector<float> outputs = samples.outputs(trainer.trainer.get(), width);
    double expected = 0;
    for (size_t i = 0; i < 3 * width; ++i) {
      const double x = static_cast<double>(outputs[i]), y = static_cast<double>(samples.values[i]);
      expected +=
          (c.task == STW_TASK_NUMBER ? (x - y) * (x - y)
                                     : y * std::log1p(std::exp(-x)) + (1 - y) * std::log1p(std::exp(x))) /
          static_cast<double>(3 * width);
    }
    stw_error error = sized<stw_error>();
    auto result = sized<stw_step_result>();
    ASSERT_EQ(samples.step(trainer.trainer.get(), &result, &error), STW_OK) << error.message;
    EXPECT_EQ(result.targets, 3u);
    EXPECT_NEAR(result.loss, expected, 1e-5 * expected);
    for (int step = 0; step < 20; ++step)
      ASSERT_EQ(samples.step(trainer.trainer.get(), &result, &error), STW_OK) << error.message;
    EXPECT_LT(result.loss, 0.7 * expected);
  }
}

constexpr const char* tiny_spans =
    R"({"model_type": "bert", "architectures": ["BertForQuestionAnswering"], "vocab_size": 256,
        "hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
        "max_position_embeddings": 16, "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0})";

TEST(Values, AnswersInTextsAreLearned) {
  ValueTrainer trainer(STW_TASK_SPANS, 0, tiny_spans);
  auto info = sized<stw_model_info>();
  ASSERT_EQ(stw_model_query(trainer.model.get(), &info), STW_OK);
  EXPECT_EQ(info.task, uint32_t{STW_TASK_SPANS});
  EXPECT_EQ(info.labels, 2u);
  EXPECT_STREQ(stw_model_label_at(trainer.model.get(), 0), "start");
  EXPECT_STREQ(stw_model_label_at(trainer.model.get(), 1), "end");
  ValueSamples samples({4, 15, 0, 0, 2, 2, none, 0}, 2);
  stw_error error = sized<stw_error>();
  double expected = 0;
  for (size_t s = 0; s < 3; ++s) {
    const auto length = static_cast<uint64_t>(samples.lengths[s]);
    std::vector<float> logits(2 * length);
    must(stw_trainer_classify(trainer.trainer.get(), samples.tokens.data() + 16 * s, nullptr, &length, 1,
                              logits.data(), logits.size(), &error),
         error);
    for (size_t c = 0; c < 2; ++c) {
      double sum = 0;
      for (size_t i = 0; i < length; ++i) sum += std::exp(static_cast<double>(logits[2 * i + c]));
      expected += (std::log(sum) -
                   static_cast<double>(logits[2 * static_cast<size_t>(samples.values[2 * s + c]) + c])) /
                  6;
    }
  }
  auto result = sized<stw_step_result>();
  ASSERT_EQ(samples.step(trainer.trainer.get(), &result, &error), STW_OK) << error.message;
  EXPECT_EQ(result.targets, 3u);
  EXPECT_NEAR(result.loss, expected, 1e-5 * expected);
  for (int step = 0; step < 20; ++step)
    ASSERT_EQ(samples.step(trainer.trainer.get(), &result, &error), STW_OK) << error.message;
  EXPECT_LT(result.loss, 0.7 * expected);
  const auto refused = [&](size_t at, float value, const char* why) {
    const float kept = std::exchange(samples.values[at], value);
    EXPECT_EQ(samples.step(trainer.trainer.get(), &result, &error), STW_BAD_ARGUMENT);
    EXPECT_STREQ(error.message, why);
    samples.values[at] = kept;
  };
  refused(1, 16,
          "batch: labels: sample 0: expected an answer within its 16 tokens, found one from token 4 "
          "to token 16");
  refused(0, 15.5f, "batch: labels: sample 0, label 0: expected the index of a token, found 15.500000");
  refused(2, 1,
          "batch: labels: sample 1: expected an answer within its 3 tokens, found one from token 1 to "
          "token 0");
}

TEST(Values, InvalidBatchesAreRefused) {
  ValueTrainer labels(STW_TASK_LABELS, 2), numbers(STW_TASK_NUMBER, 2);
  stw_error error = sized<stw_error>();
  auto result = sized<stw_step_result>();
  ValueSamples samples({0, 1, 0.5f, 0, 1, 1, 0, 0}, 2);
  const auto refused = [&](ValueTrainer& trainer, const char* why, stw_status expected = STW_BAD_ARGUMENT) {
    EXPECT_EQ(samples.step(trainer.trainer.get(), &result, &error), expected);
    EXPECT_STREQ(error.message, why);
  };
  ASSERT_EQ(samples.step(labels.trainer.get(), &result, &error), STW_OK) << error.message;
  samples.values[3] = 1.5f;
  refused(labels, "batch: labels: sample 1, label 1: expected 0 to 1, found 1.500000");
  EXPECT_EQ(samples.step(numbers.trainer.get(), &result, &error), STW_OK) << error.message;
  samples.values[3] = INFINITY;
  refused(numbers, "batch: labels: sample 1, label 1: expected a finite number, found inf");
  samples.values[3] = none;
  refused(numbers, "batch: labels: sample 1, label 1: expected a finite number, found nan");
  samples.values[3] = 0;
  samples.shape_of_values = {2, 2};
  refused(labels, "batch: labels: expected a row for each of 4 samples, found 2");
  samples.shape_of_values = {2, 4};
  refused(labels, "batch: labels: expected (1 to 4, 2), found (2, 4)");
  samples.shape_of_values = {4};
  refused(labels, "batch: labels: expected two dimensions (samples, labels), found 1");
  samples.shape_of_values = {4, 2};
  std::vector<int32_t> whole(8);
  EXPECT_EQ(samples.step(labels.trainer.get(), "labels", whole, &result, &error), STW_BAD_ARGUMENT);
  EXPECT_STREQ(error.message, "batch: labels: expected float32");
  EXPECT_EQ(samples.step(labels.trainer.get(), "targets", whole, &result, &error), STW_BAD_ARGUMENT);
  EXPECT_STREQ(error.message,
               "batch: targets: the model's task is labels: expected labels (samples, labels) of float32");
  EXPECT_EQ(samples.step(labels.trainer.get(), nullptr, whole, &result, &error), STW_BAD_ARGUMENT);
  EXPECT_STREQ(error.message, "batch: labels: it is missing");
}

TEST(Values, DocumentsOfAFileAreTrainedAndEvaluated) {
  TemporaryDirectory folder;
  const std::string tokens = folder / "tokens.txt", marks = folder / "marks", labels = folder / "labels";
  std::string begins, values;
  for (int i = 0; i < 400; ++i) begins += static_cast<char>(i % 10 == 0 ? STW_MARK_BEGIN : 0);
  for (int d = 0; d < 40; ++d) {
    const float of_document[2] = {static_cast<float>(d % 2), static_cast<float>(d % 4 > 1)};
    values.append(reinterpret_cast<const char*>(of_document), sizeof of_document);
  }
  put_file(tokens, text_of(400).substr(0, 400)), put_file(marks, begins), put_file(labels, values);
  auto o = sized<stw_dataset_options>();
  o.path = tokens.c_str(), o.marks = marks.c_str(), o.labels = labels.c_str(), o.vocabulary = 256,
  o.sequence = 16, o.label_count = 2;
  const auto refusal = [&] {
    stw_dataset* out = nullptr;
    stw_error error = sized<stw_error>();
    EXPECT_NE(stw_dataset_open(&out, &o, &error), STW_OK);
    return std::string(error.message);
  };
  EXPECT_NE(refusal().find("expected 160 bytes, a label for each document, found 320"), std::string::npos);
  o.task = STW_TASK_MASKED_LANGUAGE_MODEL;
  EXPECT_EQ(refusal(), "dataset: the task masked-language-model has no labels");
  o.task = STW_TASK_LABELS;
  o.labels = nullptr, o.label_count = 0;
  EXPECT_EQ(refusal(), "dataset: a task without labels");
  o.labels = labels.c_str(), o.label_count = 2;
  auto dataset =
      make<stw_dataset>([&](stw_dataset** out, stw_error* e) { return stw_dataset_open(out, &o, e); });
  ValueTrainer several(STW_TASK_LABELS, 2, tiny_llama, STW_INPUT_POSITIONS),
      number(STW_TASK_NUMBER, 2, tiny_llama, STW_INPUT_POSITIONS);
  double loss = 0;
  stw_error error = sized<stw_error>();
  ASSERT_EQ(stw_trainer_evaluate(several.trainer.get(), dataset.get(), 100, &loss, &error), STW_OK)
      << error.message;
  EXPECT_NEAR(loss, std::log(2.0), 0.1);
  auto progress = sized<stw_progress>();
  ASSERT_EQ(stw_trainer_progress(several.trainer.get(), &progress), STW_OK);
  EXPECT_GE(progress.evaluation_accuracy, 0);
  EXPECT_EQ(stw_trainer_evaluate(number.trainer.get(), dataset.get(), 1, &loss, &error), STW_BAD_STATE);
  EXPECT_STREQ(error.message, "trainer: the model's task is number, the dataset was opened for labels");
  o.task = STW_TASK_NUMBER;
  dataset = make<stw_dataset>([&](stw_dataset** out, stw_error* e) { return stw_dataset_open(out, &o, e); });
  ASSERT_EQ(stw_trainer_evaluate(number.trainer.get(), dataset.get(), 100, &loss, &error), STW_OK)
      << error.message;
  ASSERT_EQ(stw_trainer_progress(number.trainer.get(), &progress), STW_OK);
  EXPECT_TRUE(std::isnan(progress.evaluation_accuracy));
  auto run = sized<stw_run_options>();
  run.until = 5;
  EXPECT_EQ(stw_trainer_run(number.trainer.get(), dataset.get(), &run, &error), STW_OK) << error.message;
}

TEST(Values, ThereAreNoProbabilitiesOfTargets) {
  ValueTrainer trainer(STW_TASK_LABELS, 2);
  ValueSamples samples({0, 1, 0.5f, 0, 1, 1, 0, 0}, 2);
  DLManagedTensorVersioned of_tokens = host_tensor(samples.tokens, samples.shape),
                           of_values = host_tensor(samples.values, samples.shape_of_values);
  const char* const list[] = {"tokens", "labels"};
  const DLManagedTensorVersioned* const tensors[] = {&of_tokens, &of_values};
  auto batch = sized<stw_batch>();
  batch.count = 2, batch.names = list, batch.tensors = tensors;
  std::vector<float> out(64);
  stw_error error = sized<stw_error>();
  EXPECT_EQ(stw_trainer_log_probabilities(trainer.trainer.get(), &batch, out.data(), out.size(), &error),
            STW_UNSUPPORTED);
  EXPECT_STREQ(error.message,
               "log-probabilities: the model's task is labels, of which a target has no probability");
}

}  // namespace
}  // namespace stw::api_test
