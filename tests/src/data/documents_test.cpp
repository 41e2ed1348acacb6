// Samples that hold several documents, tokens with weights, and sequences of very different lengths.
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "src/trainer/trainer.h"
#include "tests/src/small_models.h"

namespace stw::documents_test {
namespace {

using namespace testing_tools;

constexpr int64_t sequence = 33;

Request packed_request(int64_t batch, int64_t micro_batch = 0, GraphInputs inputs = {true, true}) {
  Request r = request_for(batch, sequence, 2);
  r.micro_batch = micro_batch;
  r.inputs = inputs;
  return r;
}

// Documents of random lengths, end to end in every sample. None predicts the first token of the next one.
GlobalBatch packed_batch(uint64_t seed, int64_t samples) {
  GlobalBatch batch = random_batch(seed, samples, sequence);
  std::mt19937 random(static_cast<uint32_t>(seed));
  for (int64_t s = 0; s < samples; ++s) {
    int64_t left = 0;
    for (int64_t i = 0, position = 0; i < sequence; ++i, ++position) {
      if (left-- == 0) left = static_cast<int64_t>(random() % 12), position = 0;
      batch.positions.push_back(static_cast<int32_t>(position));
      if (left == 0) batch.targets[s * sequence + i] = kernels::ignored_target;
    }
  }
  return batch;
}

// The same documents, each in a sample of its own.
GlobalBatch unpacked(const GlobalBatch& packed) {
  GlobalBatch batch;
  batch.sequence = sequence;
  for (size_t i = 0; i < packed.tokens.size(); ++i) {
    if (packed.positions[i] == 0) {
      batch.tokens.resize(batch.tokens.size() + sequence);
      batch.targets.resize(batch.tokens.size(), kernels::ignored_target);
    }
    const size_t at = batch.tokens.size() - sequence + static_cast<size_t>(packed.positions[i]);
    batch.tokens[at] = packed.tokens[i];
    batch.targets[at] = packed.targets[i];
  }
  return batch;
}

struct Outcome {
  double loss = 0, norm = 0;
  GradientSums gradients;
};

Outcome outcome_of(const Model& model, std::shared_ptr<const Model> shared, const Request& request,
                   const GlobalBatch& batch) {
  const auto planned = plan_for(model, request);
  Outcome outcome;
  TrainerOptions options;
  options.gradient_hook = [&](const GradientView& view) {
    outcome.gradients = gradients_in(*planned, view);
    return true;
  };
  auto trainer = trainer_for(std::move(shared), planned, options);
  auto result = trainer->step(batch.source(), batch.samples(), 1e-3);
  EXPECT_TRUE(result);
  outcome.loss = result->loss;
  outcome.norm = result->grad_norm;
  return outcome;
}

TEST(Documents, TrainAsIfEachWereASample) {
  for (const std::string& config : small_models()) {
    const auto model = model_of(config);
    const GlobalBatch packed = packed_batch(3, 4), alone = unpacked(packed);
    ASSERT_GT(alone.samples(), 8u);
    const Outcome a = outcome_of(*model, model, packed_request(4), packed);
    const Outcome b =
        outcome_of(*model, model, packed_request(static_cast<int64_t>(alone.samples()), 0, {}), alone);
    EXPECT_NEAR(a.loss, b.loss, 1e-6);
    EXPECT_NEAR(a.norm / b.norm, 1, 1e-5);
    for (const auto& [name, values] : b.gradients) {
      double most = 0, error = 0;
      for (size_t i = 0; i < values.size(); ++i) {
        most = std::max(most, std::abs(values[i]));
        error = std::max(error, std::abs(values[i] - a.gradients.at(name)[i]));
      }
      EXPECT_LE(error, 1e-5 * most + 1e-7) << name;
    }
    // Without positions the loss is different.
    GlobalBatch mixed = packed;
    mixed.positions.clear();
    EXPECT_GT(std::abs(outcome_of(*model, model, packed_request(4), mixed).loss - b.loss), 1e-4);
  }
}

TEST(Documents, OneASampleChangesNoBit) {
  const auto model = model_of(small_llama());
  const GlobalBatch batch = random_batch(5, 3, sequence);
  const Outcome plain = outcome_of(*model, model, packed_request(3, 0, {}), batch),
                packed = outcome_of(*model, model, packed_request(3), batch);
  EXPECT_EQ(plain.loss, packed.loss);
  EXPECT_TRUE(plain.gradients == packed.gradients);
}

TEST(Documents, NoSplitChangesABit) {
  for (const std::string& config : {small_gpt2("0.1"), small_llama()})
    for (Precision precision : {Precision::fp32, Precision::bf16}) {
      const auto model = model_of(config);
      GlobalBatch batch = packed_batch(7, 9);
      std::mt19937 random(1);
      for (size_t i = 0; i < batch.tokens.size(); ++i)
        batch.weights.push_back(static_cast<float>(random() % 5) / 2);
      Request r = packed_request(9, 9);
      r.precision = precision;
      const auto plain = plan_for(*model, r);
      OpenTrainer straight(model, plain);
      auto expected = straight->step(batch.source(), 9, 1e-3);
      ASSERT_TRUE(expected);
      for (int64_t micro_batch : {1, 2, 4, 8}) {
        Decisions d = plain->plan.decisions;
        d.micro_batch = micro_batch;
        d.loss_chunks = int64_t{1} << random() % 4;
        for (uint32_t& saved : d.saved) saved = static_cast<uint32_t>(random());
        OpenTrainer trainer(model, plan_with(*model, r, d));
        auto result = trainer->step(batch.source(), 9, 1e-3);
        ASSERT_TRUE(result);
        EXPECT_EQ(std::bit_cast<uint64_t>(result->loss), std::bit_cast<uint64_t>(expected->loss));
        EXPECT_EQ(std::bit_cast<uint64_t>(result->grad_norm), std::bit_cast<uint64_t>(expected->grad_norm));
        EXPECT_EQ(differences(trainer.state(), straight.state()), "") << micro_batch;
      }
    }
}

TEST(Weights, ScaleLossAndGradient) {
  const auto model = model_of(small_gpt2());
  GlobalBatch batch = random_batch(9, 3, sequence);
  const Outcome plain = outcome_of(*model, model, packed_request(3), batch);
  batch.weights.assign(batch.tokens.size(), 2.0f);
  const Outcome doubled = outcome_of(*model, model, packed_request(3), batch);
  EXPECT_EQ(doubled.loss, 2 * plain.loss);
  EXPECT_EQ(doubled.norm, 2 * plain.norm);
  // A target with a weight of 0 counts, but adds nothing.
  GlobalBatch half = batch, ignored = batch;
  for (size_t i = 0; i < batch.tokens.size(); i += 2)
    half.weights[i] = 0, ignored.targets[i] = kernels::ignored_target;
  half.weights.resize(batch.tokens.size());
  const Outcome zeros = outcome_of(*model, model, packed_request(3), half),
                fewer = outcome_of(*model, model, packed_request(3), ignored);
  const double share = static_cast<double>(ignored.target_count()) / static_cast<double>(half.target_count());
  EXPECT_NEAR(zeros.loss, fewer.loss * share, 1e-9);
  EXPECT_TRUE(zeros.gradients == fewer.gradients);
}

// A global batch of sequences of 1 and of 2048 tokens has the same loss and gradients at micro-batch 1 and
// 32.
TEST(Lengths, OfOneAndOf2048TokensMixWithoutATrace) {
  constexpr int64_t length = 2048, samples = 32;
  const auto model = model_of(
      R"({"model_type": "llama", "vocab_size": 61, "max_position_embeddings": 2048, "hidden_size": 16,
      "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1})");
  GlobalBatch batch = random_batch(11, samples, length);
  for (int64_t s = 0; s < samples; ++s)
    for (int64_t i = s % 8 == 3 ? length : 1; i < length; ++i) {
      batch.tokens[s * length + i] = 0;
      batch.targets[s * length + i] = kernels::ignored_target;
    }
  Outcome expected;
  for (const int64_t micro_batch : {32, 1}) {
    Request r = request_for(samples, length, 2);
    r.micro_batch = micro_batch;
    const Outcome found = outcome_of(*model, model, r, batch);
    if (micro_batch == 32) {
      expected = found;
      continue;
    }
    EXPECT_EQ(std::bit_cast<uint64_t>(found.loss), std::bit_cast<uint64_t>(expected.loss));
    EXPECT_EQ(std::bit_cast<uint64_t>(found.norm), std::bit_cast<uint64_t>(expected.norm));
    EXPECT_TRUE(found.gradients == expected.gradients);
  }
}

TEST(DatasetDocuments, BreakTargetsAndCountPositions) {
  TemporaryDirectory folder;
  put_file(folder / "text.txt", "ab\ncdef\n\ng" + std::string(200, 'x'));
  DatasetOptions options;
  options.path = folder / "text.txt";
  options.vocabulary = 256;
  options.document_end = '\n';
  auto dataset = Dataset::open(options);
  ASSERT_TRUE(dataset);
  int32_t tokens[11], targets[11], positions[11];
  ASSERT_TRUE(dataset->read(Dataset::Part::training, 0, rows_of(11, tokens, targets, positions)));
  const int32_t expected[] = {0, 1, 2, 0, 1, 2, 3, 4, 0, 0, 1};
  for (int i = 0; i < 11; ++i) {
    EXPECT_EQ(positions[i], expected[i]) << i;
    EXPECT_EQ(targets[i] == kernels::ignored_target, tokens[i] == '\n') << i;
  }
  // A window inside a document.
  ASSERT_TRUE(dataset->read(Dataset::Part::training, 4, rows_of(4, tokens, targets, positions)));
  EXPECT_EQ(positions[0], 0);
  EXPECT_EQ(positions[3], 3);
  // A plan that cannot keep documents apart is refused.
  options.vocabulary = 61;
  options.document_end = 5;
  options.path = folder / "tokens.bin";
  put_file(options.path, std::string(400, '\1'));
  options.vocabulary = 258;
  auto ids = Dataset::open(options);
  ASSERT_TRUE(ids);
  options.document_end = 258;
  EXPECT_EQ(Dataset::open(options).error().code, Code::bad_argument);
}

}  // namespace
}  // namespace stw::documents_test
