// Encoders that compute what only the loss reads for one row of each text (GraphInputs::texts): their logits,
// gradients and bits, compared with those of plans that compute it for all rows.
#include "tests/src/models/golden.h"
#include "tests/src/small_models.h"

namespace stw::text_rows_test {
namespace {

using namespace testing_tools;

constexpr int64_t sequence = 40, samples = 6;

Request with_texts(Request request, int64_t texts) {
  request.inputs.texts = texts;
  return request;
}

const Op* find_op(const Graph& graph, OpKind kind) {
  for (const Op& op : graph.ops)
    if (op.kind == kind) return &op;
  return nullptr;
}

struct Step {
  GradientSums gradients;
  double loss = 0;
};

Step step_of(const std::shared_ptr<const Model>& model, int64_t texts) {
  Step step;
  const auto planned = plan_for(*model, with_texts(request_for(samples, sequence, 2), texts));
  EXPECT_EQ(find_op(planned->graph, OpKind::take_rows) != nullptr, texts > 0);
  TrainerOptions options;
  options.gradient_hook = [&](const GradientView& view) {
    step.gradients = gradients_in(*planned, view);
    return true;
  };
  auto trainer = trainer_for(model, planned, options);
  const GlobalBatch batch = batch_for(*model, 5, samples, sequence);
  const auto result = trainer->step(batch.source(), samples, 1e-3);
  EXPECT_TRUE(result) << result.error().message;
  step.loss = result->loss;
  return step;
}

TEST(TextRows, GiveTheLossAndTheGradientsOfAllRows) {
  for (const std::string& config : small_encoders()) {
    const auto model = model_of(config);
    const Step all = step_of(model, 0), some = step_of(model, 13);
    EXPECT_NEAR(some.loss, all.loss, 1e-6 * std::fabs(all.loss));
    ASSERT_EQ(some.gradients.size(), all.gradients.size());
    for (const auto& [name, values] : all.gradients) {
      const std::vector<double>& others = some.gradients.at(name);
      // A key bias has only rounding errors as its gradient.
      const std::string other = beside_key_bias(name);
      double most = 0, off = 0;
      for (const double x : other.empty() ? values : all.gradients.at(other))
        most = std::max(most, std::fabs(x));
      for (size_t i = 0; i < values.size(); ++i) off = std::max(off, std::fabs(values[i] - others[i]));
      EXPECT_LE(off, 2e-6 * most) << architecture_of(model->config()).model_type << ", " << name;
    }
  }
}

TEST(TextRows, GiveTheBitsOfTheLogitsOfAllRows) {
  for (const std::string& config : small_encoders()) {
    const auto model = model_of(config);
    const GlobalBatch batch = batch_for(*model, 6, samples, sequence);
    std::vector<Text> texts;
    for (uint64_t k = 0; k < 30; ++k) texts.push_back({batch.tokens.data() + 7 * k, 1 + k % 7, nullptr});
    std::vector<std::vector<float>> logits;
    for (const int64_t most : {0, 1, 3, 13, 40}) {
      auto trainer = trainer_for(model, plan_for(*model, with_texts(request_for(2, sequence, 2), most)));
      logits.emplace_back(texts.size() * model->config().labels.size());
      const Status status = trainer->classify(texts, logits.back().data());
      ASSERT_TRUE(status) << status.error().message << ", " << most;
      EXPECT_EQ(logits.back(), logits.front()) << architecture_of(model->config()).model_type << ", " << most;
    }
  }
}

class TextRows : public testing::TestWithParam<NumericsCase> {};

// Sums over rows begin anew in each sample, and rows without a text add 0.
TEST_P(TextRows, TrainTheSameBitsHoweverTheBatchIsCutAndForAnyNumberOfTexts) {
  const auto model = model_of(GetParam().config);
  const auto batch_of = [&](uint64_t step) { return batch_for(*model, 20 + step, 6, sequence); };
  const Request r = GetParam().request(6, sequence, 2);
  const Trained some = expect_same_however_cut(model, with_texts(r, 13), batch_of);
  EXPECT_EQ(differences(train_on(model, plan_for(*model, with_texts(r, 21)), batch_of, 3).state, some.state),
            "");
}

INSTANTIATE_TEST_SUITE_P(
    Models, TextRows,
    testing::Values(NumericsCase{"bert", classifier_of(small_bert("0.1")), Precision::fp32, 32},
                    NumericsCase{"roberta", classifier_of(small_roberta("0.1")), Precision::bf16, 8},
                    NumericsCase{"distilbert", classifier_of(small_distilbert("0.1")), Precision::fp16, 32},
                    NumericsCase{"deberta", classifier_of(small_deberta("0.1")), Precision::bf16, 8},
                    NumericsCase{"albert", classifier_of(small_albert("0.1")), Precision::bf16, 8},
                    NumericsCase{"electra_adapters",
                                 {classifier_of(small_electra("0.1")), adapters_of_all(0.1)},
                                 Precision::bf16,
                                 8},
                    NumericsCase{"modernbert", classifier_of(small_modernbert("0.1")), Precision::fp32, 32}),
    case_name);

TEST(TextRows, AreOneRowOfEachTextFromTheLastBlocksAttentionOn) {
  const auto model = model_of(classifier_of(small_bert()));
  const auto planned = plan_for(*model, with_texts(request_for(2, sequence), 5));
  const Graph& graph = planned->graph;
  EXPECT_EQ(graph.texts, 5);
  bool taken = false;
  for (const Op& op : graph.ops) {
    taken |= op.kind == OpKind::take_rows;
    for (const int t : op.outputs)
      if (graph.at(t).per_sample) { EXPECT_EQ(graph.at(t).rows, taken ? 5 : sequence) << graph.at(t).name; }
  }
  for (const Input input : {Input::targets, Input::text_rows})
    EXPECT_EQ(graph.at(graph.inputs[input]).rows, 5);
  const auto of_values =
      plan_for(*model_of(of_labels(small_bert())), with_texts(request_for(2, sequence), 5));
  const Tensor& values = of_values->graph.at(of_values->graph.inputs[Input::values]);
  EXPECT_EQ(values.rows, 5);
  EXPECT_EQ(values.shape, (Shape{5, of_values->graph.head.labels()}));
  // A number that is no limit changes nothing.
  EXPECT_EQ(plan_for(*model, with_texts(request_for(2, sequence), sequence))->graph.texts, 0);
}

TEST(TextRows, ABatchWithTooManyTextsIsRefused) {
  const auto model = model_of(classifier_of(small_bert()));
  auto trainer = trainer_for(model, plan_for(*model, with_texts(request_for(1, sequence), 2)));
  GlobalBatch batch = random_batch(1, 1, sequence);
  batch.positions.assign(sequence, 0);
  batch.token_types.assign(sequence, 0);
  const auto message = [&](std::initializer_list<size_t> rows) {
    batch.targets.assign(sequence, kernels::ignored_target);
    for (const size_t row : rows) batch.targets[row] = 1;
    const auto result = trainer->step(batch.source(), 1, 1e-3);
    return result ? "" : result.error().message;
  };
  EXPECT_EQ(message({0, 1}), "");
  EXPECT_EQ(message({0, 1, 2}),
            "sample 0: row 2 has a target, but the plan has room for the first 2 texts of a sample (texts)");
  batch.positions[1] = 1;
  EXPECT_EQ(message({0, 2}), "");
  EXPECT_EQ(message({1}), "sample 0: row 1 has a target, but is not the first one of a text");
}

TEST(TextRows, AreRefusedForOtherModels) {
  const auto planned = Planned::make(*model_of(small_llama()), with_texts(request_for(1, sequence), 4));
  ASSERT_FALSE(planned);
  EXPECT_EQ(planned.error().message,
            "texts is for encoders with an output for each text, this model is none");
}

}  // namespace
}  // namespace stw::text_rows_test
