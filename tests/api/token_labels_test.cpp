// Models that give every token a label, through the C API: batches, a dataset, and the logits of all tokens
// of texts.
#include <algorithm>

#include "tests/api/harness.h"

namespace stw::api_test {
namespace {

stw_model_options token_options(const std::string& config) {
  auto o = sized<stw_model_options>();
  o.config_json = config.data();
  o.config_json_size = config.size();
  o.label_count = 3;
  o.task = STW_TASK_TOKEN_LABEL;
  return o;
}

struct TokenLabels {
  std::string config = tiny_llama;
  Handle<stw_device> device = open_device();
  Handle<stw_model> model = make<stw_model>([&](stw_model** out, stw_error* e) {
    const auto o = token_options(config);
    return stw_model_create(out, &o, e);
  });
  Handle<stw_plan> plan;
  Handle<stw_trainer> trainer;
  explicit TokenLabels(uint32_t inputs = STW_INPUT_POSITIONS) {
    auto o = plan_options();
    o.inputs = inputs;
    plan = make_plan(model.get(), o);
    trainer = make<stw_trainer>([&](stw_trainer** out, stw_error* e) {
      return stw_trainer_create(out, device.get(), model.get(), plan.get(), nullptr, e);
    });
  }
};

// A token's label depends on the token.
struct TaggedSamples {
  int64_t shape[2] = {4, 16};
  std::vector<int32_t> tokens, labels;
  TaggedSamples() {
    uint32_t seed = 9;
    for (int i = 0; i < 64; ++i) {
      tokens.push_back(static_cast<int32_t>((seed = seed * 1664525 + 1013904223) >> 24));
      labels.push_back(i % 4 == 0 ? -100 : tokens.back() % 3);
    }
  }
  stw_status step(stw_trainer* trainer, const char* name, stw_step_result* result, stw_error* error,
                  int label_dimensions = 2) {
    const auto tensor = [&](std::vector<int32_t>& data, int dimensions) {
      DLManagedTensorVersioned t{};
      t.version = {1, 0};
      t.dl_tensor.data = data.data();
      t.dl_tensor.device = {kDLCPU, 0};
      t.dl_tensor.ndim = dimensions;
      t.dl_tensor.dtype = {0, 32, 1};
      t.dl_tensor.shape = shape;
      return t;
    };
    DLManagedTensorVersioned of_tokens = tensor(tokens, 2), of_labels = tensor(labels, label_dimensions);
    const char* const list[] = {"tokens", name};
    const DLManagedTensorVersioned* const tensors[] = {&of_tokens, &of_labels};
    auto batch = sized<stw_batch>();
    batch.count = 2, batch.names = list, batch.tensors = tensors, batch.learning_rate = 1e-2;
    const stw_status status = stw_trainer_step(trainer, &batch, error);
    if (status == STW_OK) must(stw_trainer_wait(trainer, result, error), *error);
    return status;
  }
};

TEST(TokenLabels, OfABatchAreAtTheirTokens) {
  TokenLabels by_labels, by_targets(0);
  auto info = sized<stw_model_info>();
  ASSERT_EQ(stw_model_query(by_labels.model.get(), &info), STW_OK);
  EXPECT_EQ(info.task, uint32_t{STW_TASK_TOKEN_LABEL});
  EXPECT_EQ(info.labels, 3u);
  size_t index = 0;
  EXPECT_EQ(stw_model_tensor_find(by_labels.model.get(), "score.bias", &index), STW_OK);
  TaggedSamples samples;
  stw_error error = sized<stw_error>();
  auto one = sized<stw_step_result>(), other = sized<stw_step_result>();
  double first = 0;
  for (int step = 0; step < 10; ++step) {
    ASSERT_EQ(samples.step(by_labels.trainer.get(), "labels", &one, &error), STW_OK) << error.message;
    ASSERT_EQ(samples.step(by_targets.trainer.get(), "targets", &other, &error), STW_OK) << error.message;
    EXPECT_EQ(one.targets, 48u);
    EXPECT_EQ(one.loss, other.loss);
    EXPECT_EQ(one.grad_norm, other.grad_norm);
    if (step == 0) first = one.loss;
  }
  EXPECT_LT(one.loss, first / 2);
  samples.labels[17] = 3;
  EXPECT_EQ(samples.step(by_labels.trainer.get(), "labels", &one, &error), STW_BAD_ARGUMENT);
  EXPECT_STREQ(error.message, "batch: labels: sample 1, token 1: id 3 is outside of the 3 labels");
  samples.labels[17] = 0;
  EXPECT_EQ(samples.step(by_labels.trainer.get(), "labels", &one, &error, 1), STW_BAD_ARGUMENT);
  EXPECT_STREQ(error.message, "batch: labels: expected two dimensions (samples, tokens), found 1");
}

TEST(TokenLabels, LogitsBelongToEveryToken) {
  TokenLabels together, alone(0);
  TaggedSamples samples;
  stw_error error = sized<stw_error>();
  auto result = sized<stw_step_result>();
  const uint64_t lengths[] = {3, 1, 9};
  std::vector<float> all(13 * 3 + 1, 7), each(13 * 3);
  for (auto* c : {&together, &alone})
    for (int step = 0; step < 30; ++step)
      ASSERT_EQ(samples.step(c->trainer.get(), "labels", &result, &error), STW_OK);
  must(stw_trainer_classify(together.trainer.get(), samples.tokens.data(), nullptr, lengths, 3, all.data(),
                            13 * 3, &error),
       error);
  EXPECT_EQ(all.back(), 7);
  all.pop_back();
  must(stw_trainer_classify(alone.trainer.get(), samples.tokens.data(), nullptr, lengths, 3, each.data(),
                            each.size(), &error),
       error);
  EXPECT_EQ(all, each);
  for (size_t i = 0; i < 13; ++i) {
    if (i % 4 == 0) continue;  // no label
    const auto row = all.begin() + static_cast<std::ptrdiff_t>(3 * i);
    EXPECT_EQ(std::max_element(row, row + 3) - row, samples.labels[i]) << i;
  }
  EXPECT_EQ(stw_trainer_classify(together.trainer.get(), samples.tokens.data(), nullptr, lengths, 3,
                                 all.data(), 13 * 3 - 1, &error),
            STW_BAD_ARGUMENT);
  EXPECT_STREQ(error.message, "classify: expected a capacity of 39, found 38");
  const uint64_t long_one = 1000;
  EXPECT_EQ(stw_trainer_classify(together.trainer.get(), samples.tokens.data(), nullptr, &long_one, 1,
                                 all.data(), 3000, &error),
            STW_UNSUPPORTED_SHAPE);
  EXPECT_EQ(stw_trainer_classify(together.trainer.get(), nullptr, nullptr, nullptr, 0, nullptr, 0, &error),
            STW_OK)
      << error.message;
  float logits[3];
  EXPECT_EQ(stw_trainer_logits(together.trainer.get(), samples.tokens.data(), 3, logits, 3, &error),
            STW_UNSUPPORTED);
  EXPECT_STREQ(error.message, "logits: the model labels each token; classify gives the logits of all tokens");
}

TEST(TokenLabels, OfAFileAreTrainedAndEvaluated) {
  TemporaryDirectory folder;
  const std::string tokens = folder / "tokens.txt", marks = folder / "marks", labels = folder / "labels";
  std::string text, begins, ids;
  for (int i = 0; i < 1000; ++i) {
    text += static_cast<char>('a' + i * i % 7);
    begins += static_cast<char>(i % 5 == 0 ? STW_MARK_BEGIN : 0);
    ids += i % 3 == 0 ? std::string(4, '\xff') : std::string{static_cast<char>(i * i % 7 % 3), 0, 0, 0};
  }
  put_file(tokens, text), put_file(marks, begins), put_file(labels, ids);
  auto o = sized<stw_dataset_options>();
  o.path = tokens.c_str(), o.marks = marks.c_str(), o.labels = labels.c_str();
  o.label_count = 3, o.vocabulary = 256, o.sequence = 16, o.task = STW_TASK_TOKEN_LABEL;
  const auto open = [&] {
    return make<stw_dataset>([&](stw_dataset** out, stw_error* e) { return stw_dataset_open(out, &o, e); });
  };
  const auto training = open();
  o.set_mask = STW_SET_HELD_OUT;
  o.held_out = 1;
  const auto all = open();
  TokenLabels c;
  stw_error error = sized<stw_error>();
  run(c.trainer.get(), training.get(), 40);
  double loss = 0;
  must(stw_trainer_evaluate(c.trainer.get(), all.get(), 100, &loss, &error), error);
  EXPECT_LT(loss, 0.1);
  EXPECT_EQ(progress_of(c.trainer.get()).evaluation_accuracy, 1);
  const std::string out = folder / "out";
  must(stw_trainer_export_model(c.trainer.get(), out.c_str(), &error), error);
  auto source = sized<stw_model_options>();
  source.source = out.c_str();
  const auto again =
      make<stw_model>([&](stw_model** m, stw_error* e) { return stw_model_create(m, &source, e); });
  auto info = sized<stw_model_info>();
  ASSERT_EQ(stw_model_query(again.get(), &info), STW_OK);
  EXPECT_EQ(info.task, uint32_t{STW_TASK_TOKEN_LABEL});
  stw_dataset* none = nullptr;
  o.task = STW_TASK_LABEL;  // a label for each document; there are fewer documents than labels
  EXPECT_EQ(stw_dataset_open(&none, &o, &error), STW_CORRUPT);
  o.task = STW_TASK_SPANS + 1;
  EXPECT_EQ(stw_dataset_open(&none, &o, &error), STW_BAD_ARGUMENT);
  o.task = STW_TASK_TOKEN_LABEL, o.labels = nullptr, o.label_count = 0;
  EXPECT_EQ(stw_dataset_open(&none, &o, &error), STW_BAD_ARGUMENT);
}

}  // namespace
}  // namespace stw::api_test
