// Batches and files of random tokens for the small models.
#pragma once
#include <fstream>
#include <random>

#include "src/base/random.h"
#include "tests/small_configs.h"
#include "tests/src/small_trainer.h"
#include "tests/src/temporary_directory.h"

namespace stw::testing_tools {

// Random tokens, each predicting the next one. A target is ignored with a probability of 1/5.
inline GlobalBatch random_batch(uint64_t seed, int64_t samples, int64_t sequence,
                                int64_t vocabulary = small_vocabulary) {
  GlobalBatch batch;
  batch.sequence = sequence;
  uint32_t counter = 0;
  auto draw = [&](uint64_t range) {
    const auto words = philox(seed, {counter++, 0, 0, 0});
    return static_cast<int32_t>(scale_to_range(uint64_t{words[0]} << 32 | words[1], range));
  };
  for (int64_t sample = 0; sample < samples; ++sample) {
    int32_t token = draw(static_cast<uint64_t>(vocabulary));
    for (int64_t i = 0; i < sequence; ++i) {
      batch.tokens.push_back(token);
      token = draw(static_cast<uint64_t>(vocabulary));
      batch.targets.push_back(draw(5) == 0 ? kernels::ignored_target : token);
    }
  }
  return batch;
}

// A random batch for any model. The samples of an encoder hold texts of 1 to 20 tokens end to end, each with
// a label.
inline GlobalBatch batch_for(const Model& model, uint64_t seed, int64_t samples, int64_t sequence) {
  GlobalBatch b = random_batch(seed, samples, sequence);
  if (!architecture_of(model.config()).is_encoder) return b;
  b.targets.assign(b.tokens.size(), kernels::ignored_target);
  for (int64_t begin = 0, length = 1, at = 0; at < static_cast<int64_t>(b.tokens.size()); ++at) {
    if (at == begin + length || at % sequence == 0) {
      begin = at, length = 1 + b.tokens[at] % 20;
      b.targets[at] = b.tokens[at + std::min(length, sequence - at % sequence) - 1] %
                      static_cast<int32_t>(model.config().labels.size());
    }
    b.positions.push_back(static_cast<int32_t>(at - begin));
    if (model.config().token_types > 1) b.token_types.push_back(at - begin > length / 2);
  }
  return b;
}

inline void ignore_sample(GlobalBatch& batch, int64_t sample) {
  const auto begin = batch.targets.begin() + static_cast<std::ptrdiff_t>(sample * batch.sequence);
  std::fill(begin, begin + static_cast<std::ptrdiff_t>(batch.sequence), kernels::ignored_target);
}

// A model and its numerics, for tests over many of them.
struct NumericsCase {
  const char* name;
  SmallModel config;
  Precision precision;
  int state_bits;
  Optimizer optimizer = Optimizer::adamw;
  std::vector<ParameterGroup> groups = {};
  Master master = Master::exact;
  Gradients gradients = Gradients::fp32;
  bool fused_update = false;
  Quantize quantize = Quantize::none, quantize_embeddings = Quantize::none;

  Request request(int64_t global_batch, int64_t sequence, int threads) const {
    Request r = request_for(global_batch, sequence, threads);
    r.precision = precision;
    r.state_bits = state_bits;
    r.optimizer = optimizer;
    r.groups = groups;
    r.master = master;
    r.gradients = gradients;
    r.fused_update = fused_update;
    r.quantize = quantize, r.quantize_embeddings = quantize_embeddings;
    return r;
  }
};

inline std::string case_name(const testing::TestParamInfo<NumericsCase>& info) {
  const NumericsCase& c = info.param;
  return std::string(c.name) + "_" + name_of(c.precision) + "_" + name_of(c.optimizer) +
         std::to_string(c.state_bits);
}

// A dataset of `count` tokens, in a file of that folder.
inline Dataset open_tokens(const TemporaryDirectory& folder, uint32_t seed, size_t count) {
  std::ofstream file(folder / "tokens.bin", std::ios::binary);
  std::mt19937 random(seed);
  for (size_t i = 0; i < count; ++i) file.put(static_cast<char>(random() % small_vocabulary)).put(0);
  file.close();
  DatasetOptions options;
  options.path = folder / "tokens.bin";
  options.vocabulary = small_vocabulary;
  auto dataset = Dataset::open(options);
  EXPECT_TRUE(dataset);
  return std::move(*dataset);
}

// Takes a step and appends its loss and gradient norm to `figures`. Returns whether the step was made.
inline bool take_step(Trainer& trainer, const GlobalBatch& batch, uint64_t samples,
                      std::vector<double>& figures) {
  auto result = trainer.step(batch.source(), samples, 3e-3);
  if (!result || result->skip != kernels::skip_none) {
    ADD_FAILURE() << (result ? "a step was skipped" : result.error().message);
    return false;
  }
  figures.insert(figures.end(), {result->loss, result->grad_norm});
  return true;
}

// Evaluates and appends the loss to `figures`.
inline void evaluate(Trainer& trainer, const TemporaryDirectory& folder, std::vector<double>& figures) {
  const Dataset dataset = open_tokens(folder, 5, 4000);
  auto loss = trainer.evaluate(dataset, 1);
  EXPECT_TRUE(loss);
  if (loss) figures.push_back(*loss);
}

// Runs a plan for some steps. batch_of(n) makes the batch of the step that follows n others. `restored`: the
// checkpoint to start from; `saved`: the one to write. Either may be empty.
template <class BatchOf>
Trained train_on(const std::shared_ptr<const Model>& model, const std::shared_ptr<const Planned>& planned,
                 const BatchOf& batch_of, int steps, const std::string& restored = {},
                 const std::string& saved = {}) {
  OpenTrainer trainer(model, planned);
  if (!restored.empty()) { EXPECT_TRUE(trainer->restore(restored)); }
  Trained trained;
  for (int step = 0; step < steps; ++step)
    if (!take_step(*trainer, batch_of(trainer->progress().step), trainer->global_batch(), trained.figures))
      break;
  if (!saved.empty()) { EXPECT_TRUE(trainer->save(saved)); }
  trained.state = trainer.state();
  return trained;
}

// Takes three steps on 6 samples with every micro-batch, and expects the same bits from all. So must a run
// that continues from the checkpoint of another micro-batch. Returns the run with all samples at once.
template <class BatchOf>
Trained expect_same_however_cut(const std::shared_ptr<const Model>& model, Request r,
                                const BatchOf& batch_of) {
  const TemporaryDirectory folder;
  r.micro_batch = 6;
  const auto whole_plan = plan_for(*model, r);
  Trained whole = train_on(model, whole_plan, batch_of, 3);
  for (const int64_t micro_batch : {1, 4}) {
    r.micro_batch = micro_batch;
    r.recompute = micro_batch == 1 ? Recompute::full : Recompute::none;
    const auto planned = plan_for(*model, r);
    expect_same(train_on(model, planned, batch_of, 3), whole, "micro-batch " + std::to_string(micro_batch));
    train_on(model, planned, batch_of, 2, "", folder / "two.stw");
    EXPECT_EQ(differences(train_on(model, whole_plan, batch_of, 1, folder / "two.stw").state, whole.state),
              "");
  }
  return whole;
}

}  // namespace stw::testing_tools
