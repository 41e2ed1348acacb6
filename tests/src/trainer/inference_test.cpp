// Evaluation and generation run inside the trainer's arena: they agree with each other and change nothing.
#include <algorithm>
#include <cmath>

#include "tests/src/small_models.h"

namespace stw::inference_test {
namespace {

using namespace testing_tools;

constexpr int64_t batch_size = 9, sequence = 33;  // so that loss chunks cut samples

TEST(Evaluate, LossIsThatOfEveryPlanAndNothingChanges) {
  TemporaryDirectory folder;
  const Dataset dataset = open_tokens(folder, 5, 2000);
  const auto model = model_of(small_gpt2("0.3"));
  double expected = 0;
  for (int64_t micro_batch : {9, 1, 2, 5}) {
    Request r = request_for(batch_size, sequence);
    r.micro_batch = micro_batch;
    Decisions d = plan_for(*model, r)->plan.decisions;
    d.loss_chunks = micro_batch;
    OpenTrainer trainer(model, plan_with(*model, r, d));
    ASSERT_TRUE(trainer->step(random_batch(12, batch_size, sequence).source(), batch_size, 1e-3));
    const State before = trainer.state();
    auto loss = trainer->evaluate(dataset, 2);
    ASSERT_TRUE(loss) << loss.error().message;
    EXPECT_EQ(*loss, *trainer->evaluate(dataset, 2));
    EXPECT_EQ(trainer->progress().evaluation_loss, *loss);
    EXPECT_EQ(differences(trainer.state(), before), "");
    if (micro_batch == 9) expected = *loss;
    EXPECT_EQ(*loss, expected) << micro_batch;
  }
  EXPECT_NEAR(expected, std::log(61.0), 0.3);
}

TEST(Evaluate, AgreesWithLogits) {
  TemporaryDirectory folder;
  const Dataset dataset = open_tokens(folder, 5, 2000);
  for (const std::string& config : small_models("0.3")) {
    const auto model = model_of(config);
    Request r = request_for(2, sequence);
    auto trainer = trainer_for(model, plan_for(*model, r));
    ASSERT_TRUE(trainer->step(random_batch(13, 2, sequence).source(), 2, 1e-2));
    double sum = 0;
    for (uint32_t sample = 0; sample < 2; ++sample) {
      std::vector<int32_t> tokens(sequence), targets(sequence);
      const uint64_t start = dataset.evaluation_start(0, 2, sample, sequence);
      ASSERT_TRUE(
          dataset.read(Dataset::Part::evaluation, start, rows_of(sequence, tokens.data(), targets.data())));
      for (uint64_t n = 1; n <= static_cast<uint64_t>(sequence); ++n) {
        auto logits = trainer->logits(tokens.data(), n);
        ASSERT_TRUE(logits);
        double total = 0;
        for (int64_t i = 0; i < small_vocabulary; ++i) total += std::exp(static_cast<double>((*logits)[i]));
        sum += std::log(total) - static_cast<double>((*logits)[targets[n - 1]]);
      }
    }
    auto loss = trainer->evaluate(dataset, 1);
    ASSERT_TRUE(loss);
    EXPECT_NEAR(*loss, sum / (2 * sequence), 1e-5);
  }
}

TEST(Generate, GreedyTakesTheLargestLogit) {
  // Longer than a prefill, so that both programs fill the cache.
  const std::string config =
      R"({"model_type": "llama", "vocab_size": 61, "max_position_embeddings": 100, "hidden_size": 32,
      "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, )"
      R"("initializer_range": 0.3})";
  const auto model = model_of(config);
  Request r = request_for(2, 100);
  OpenTrainer trainer(model, plan_for(*model, r));
  ASSERT_TRUE(trainer->step(random_batch(14, 2, 100).source(), 2, 1e-3));
  const State before = trainer.state();
  for (size_t prompt : {1, 3, 64, 65, 66, 80, 99}) {
    std::vector<int32_t> tokens = random_batch(15, 1, 100).tokens;
    GenerateOptions options;
    options.prompt = tokens.data();
    options.prompt_count = prompt;
    std::vector<int32_t> out(100 - prompt, -1);
    options.out = out.data();
    options.out_capacity = out.size();
    auto count = trainer->generate(options);
    ASSERT_TRUE(count) << count.error().message;
    ASSERT_EQ(*count, out.size());
    tokens.resize(prompt);
    for (int32_t token : out) {
      auto logits = trainer->logits(tokens.data(), tokens.size());
      ASSERT_TRUE(logits);
      ASSERT_EQ(token, std::max_element(*logits, *logits + 61) - *logits)
          << "prompt " << prompt << " at " << tokens.size();
      tokens.push_back(token);
    }
    // Sampling with top_k 1 gives the same. Sampling from all tokens depends only on the seed.
    std::vector<int32_t> drawn(out.size());
    options.out = drawn.data();
    options.sampling.temperature = 1;
    options.sampling.top_k = 1;
    ASSERT_TRUE(trainer->generate(options));
    EXPECT_EQ(drawn, out);
    options.sampling.top_k = 0;
    options.sampling.temperature = 5;
    ASSERT_TRUE(trainer->generate(options));
    const std::vector<int32_t> again = drawn;
    ASSERT_TRUE(trainer->generate(options));
    EXPECT_EQ(drawn, again);
    for (int32_t token : drawn) EXPECT_TRUE(token >= 0 && token < 61);
    if (out.size() > 20) {
      EXPECT_NE(drawn, out);
      options.sampling.seed += 1;
      ASSERT_TRUE(trainer->generate(options));
      EXPECT_NE(drawn, again);
    }
  }
  EXPECT_EQ(differences(trainer.state(), before), "");
}

TEST(Generate, RefusesTooLongTexts) {
  const auto model = model_of(small_gpt2());
  auto trainer = trainer_for(model, plan_for(*model, request_for(1, sequence)));
  std::vector<int32_t> tokens(50, 1), out(50);
  GenerateOptions options{tokens.data(), 10, out.data(), 24};
  EXPECT_EQ(trainer->generate(options).error().code, Code::unsupported_shape);
  options.out_capacity = 23;
  EXPECT_TRUE(trainer->generate(options));
  options.prompt_count = 0;
  EXPECT_EQ(trainer->generate(options).error().code, Code::bad_argument);
  options.prompt_count = 34;
  options.out_capacity = 0;
  EXPECT_EQ(trainer->generate(options).error().code, Code::unsupported_shape);
  options.prompt_count = 5;
  tokens[4] = 61;
  options.out_capacity = 1;
  EXPECT_EQ(trainer->generate(options).error().code, Code::bad_argument);
  tokens[4] = -1;
  EXPECT_EQ(trainer->generate(options).error().code, Code::bad_argument);
  EXPECT_EQ(trainer->logits(tokens.data(), 0).error().code, Code::unsupported_shape);
  EXPECT_EQ(trainer->logits(tokens.data(), 34).error().code, Code::unsupported_shape);
  EXPECT_EQ(trainer->progress().phase, TrainerPhase::idle);
}

}  // namespace
}  // namespace stw::inference_test
