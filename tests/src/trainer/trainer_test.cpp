// The contracts of a step: the bits depend only on the numerics (contracts E1 to E4), the loss is the mean
// over all targets of the global batch, and a step that fails or is skipped changes no byte.
#include "src/trainer/trainer.h"

#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <thread>

#include "tests/src/small_models.h"
#include "tests/src/temporary_directory.h"

namespace stw::trainer_test {
namespace {

using namespace testing_tools;

// More rows than a chain of sums has terms (256), so that loss chunks cut samples.
constexpr int64_t batch_size = 9, sequence = 33;
#ifdef STW_SANITIZED  // a quarter of the variants, among them plans that keep all, no or random activations
constexpr int disturbed_rounds = 3, variant_step = 4;
#else
constexpr int disturbed_rounds = 20, variant_step = 1;
#endif

// A step on 7 of the 9 samples, one with a sample without targets, and one on 5 samples.
Trained train(const std::shared_ptr<const Model>& model, const std::shared_ptr<const Planned>& planned,
              const Device& device) {
  Trained outcome;
  OpenTrainer trainer(model, planned, {}, device);
  for (uint64_t step = 0; step < 3; ++step) {
    GlobalBatch batch = batch_for(*model, 100 + step, batch_size, sequence);
    if (step == 1) ignore_sample(batch, 3);
    if (!take_step(*trainer, batch, step == 2 ? 5 : 7, outcome.figures)) return outcome;
  }
  outcome.state = trainer.state();
  return outcome;
}

using Case = NumericsCase;

class SameBits : public testing::TestWithParam<Case> {
 protected:
  SameBits() : model_(model_of(GetParam().config)) {}
  Request request(int threads) const { return GetParam().request(batch_size, sequence, threads); }
  // All activations are kept; no chunks, one micro-step, one thread.
  std::shared_ptr<const Planned> simplest() const {
    Request r = request(1);
    r.micro_batch = batch_size;
    r.recompute = Recompute::none;
    return plan_for(*model_, r);
  }
  std::shared_ptr<const Model> model_;
};

TEST_P(SameBits, MicroBatchRecomputeChunksAndThreads) {
  const auto plain = simplest();
  const Trained expected = train(model_, plain, best_device());
  ASSERT_EQ(expected.figures.size(), 6u);
  std::mt19937 random(3);
  int variant = 0;
  for (int64_t micro_batch : {1, 2, 3, 5, 9})
    for (int kind : {0, 1, 2}) {
      if (variant++ % variant_step != 0) continue;
      const int threads = 1 + variant % 3;
      Decisions d = plain->plan.decisions;
      d.micro_batch = micro_batch;
      d.loss_chunks = int64_t{1} << random() % 5;
      for (uint32_t& saved : d.saved)
        saved = kind == 0 ? ~0u : kind == 1 ? 0u : static_cast<uint32_t>(random());
      const auto planned = plan_with(*model_, request(threads), d);
      expect_same(train(model_, planned, best_device()), expected,
                  "micro-batch " + std::to_string(micro_batch) + ", sets " + std::to_string(kind) +
                      ", chunks " + std::to_string(d.loss_chunks) + ", threads " + std::to_string(threads));
    }
}

TEST_P(SameBits, EveryBudget) {
  const auto plain = simplest();
  const Trained expected = train(model_, plain, best_device());
  Request r = request(2);
  r.memory_bytes = 1;
  auto refused = Planned::make(*model_, r);
  ASSERT_TRUE(refused);
  ASSERT_FALSE((*refused)->plan.fits);
  const uint64_t least = (*refused)->plan.minimum_bytes, most = plain->plan.bytes.peak;
  ASSERT_LT(least, most);
  for (uint64_t quarter = 0; quarter <= 4; quarter += variant_step) {
    r.memory_bytes = least + (most - least) * quarter / 4;
    const auto planned = plan_for(*model_, r);
    ASSERT_TRUE(planned);
    EXPECT_LE(planned->plan.bytes.peak, r.memory_bytes);
    expect_same(train(model_, planned, best_device()), expected, std::to_string(r.memory_bytes) + " bytes");
  }
}

TEST_P(SameBits, EveryInstructionSet) {
  const auto plain = simplest();
  const Trained expected = train(model_, plain, best_device());
  Request r = request(2);
  r.micro_batch = 3;
  const auto planned = plan_for(*model_, r);
  for (kernels::Isa isa :
       {kernels::Isa::scalar, kernels::Isa::avx2, kernels::Isa::avx512, kernels::Isa::neon})
    if (const Device* device = device_with(isa); device && isa != kernels::best_isa())
      expect_same(train(model_, planned, *device), expected,
                  "instruction set " + std::to_string(static_cast<int>(isa)));
}

// Runs a step twenty times on threads that come late, early and out of order.
TEST(DisturbedThreads, ChangeNoBit) {
  struct Disturber {
    std::mt19937 random{5};
    static void run(void* self, uint32_t tasks, void (*task)(void*, uint32_t), void* context) {
      std::mt19937& random = static_cast<Disturber*>(self)->random;
      std::vector<uint32_t> order(tasks);
      std::iota(order.begin(), order.end(), 0u);
      std::shuffle(order.begin(), order.end(), random);
      std::atomic<size_t> next = 0;
      const uint32_t delay = random() % 200;
      auto work = [&](bool is_late) {
        if (is_late) std::this_thread::sleep_for(std::chrono::microseconds(delay));
        for (size_t i; (i = next++) < order.size();) task(context, order[i]);
      };
      std::thread helper(work, random() % 2);
      work(random() % 2);
      helper.join();
    }
  } disturber;
  DeviceOptions options;
  options.threads = 2;
  options.run = Disturber::run;
  options.run_user = &disturber;
  auto device = Device::open(options);
  ASSERT_TRUE(device);
  const auto model = model_of(small_gpt2("0.1"));
  Request r = request_for(batch_size, sequence, 2);
  r.precision = Precision::bf16;
  r.state_bits = 8;
  const auto planned = plan_for(*model, r);
  const Trained expected = train(model, planned, best_device());
  for (int round = 0; round < disturbed_rounds; ++round)
    expect_same(train(model, planned, **device), expected, "round " + std::to_string(round));
}

INSTANTIATE_TEST_SUITE_P(
    Models, SameBits,
    testing::Values(
        Case{"gpt2", small_gpt2(), Precision::fp32, 32}, Case{"gpt2", small_gpt2(), Precision::bf16, 8},
        Case{"gpt2_dropout", small_gpt2("0.1"), Precision::fp32, 8},
        Case{"gpt2_dropout", small_gpt2("0.1"), Precision::bf16, 32},
        Case{"llama", small_llama(), Precision::fp32, 32}, Case{"llama", small_llama(), Precision::bf16, 8},
        Case{"qwen2", small_qwen2(), Precision::fp32, 8}, Case{"qwen2", small_qwen2(), Precision::bf16, 32},
        Case{"qwen3", small_qwen3(), Precision::fp32, 32}, Case{"qwen3", small_qwen3(), Precision::bf16, 8},
        Case{"phi3", small_phi3("0.1"), Precision::fp32, 8},
        Case{"smollm3", small_smollm3(), Precision::bf16, 32},
        Case{"gemma3", small_gemma3(), Precision::bf16, 8},
        Case{"bloom", small_bloom("0.1"), Precision::fp32, 8},
        Case{"bloom_adapters", {small_bloom(), adapters_of_all()}, Precision::bf16, 32},
        Case{"bert", classifier_of(small_bert("0.1")), Precision::bf16, 32, Optimizer::muon},
        Case{"bert_adapters", {classifier_of(small_bert("0.1")), adapters_of_all(0.1)}, Precision::bf16, 8},
        Case{"electra_adapters",
             {classifier_of(small_electra("0.1")), adapters_of_all()},
             Precision::fp32,
             32},
        Case{"roberta_nf4",
             {classifier_of(small_roberta()), adapters_of_some_of_encoders()},
             Precision::fp16,
             32,
             Optimizer::adamw,
             {},
             Master::exact,
             Gradients::fp32,
             false,
             Quantize::nf4,
             Quantize::int8},
        Case{"gpt2_dropout", small_gpt2("0.1"), Precision::fp16, 8},
        Case{"llama", small_llama(), Precision::fp16, 32, Optimizer::adafactor},
        Case{"gpt2", small_gpt2(), Precision::bf16, 8, Optimizer::lion},
        Case{"llama", small_llama(), Precision::bf16, 32, Optimizer::muon},
        Case{"qwen2", small_qwen2(), Precision::fp32, 32, Optimizer::sgd},
        Case{
            "llama_split8", small_llama(), Precision::bf16, 8, Optimizer::adamw, {}, Master::short_remainder},
        Case{
            "qwen2_stochastic", small_qwen2(), Precision::bf16, 32, Optimizer::adamw, {}, Master::stochastic},
        Case{"gpt2_short_gradients",
             small_gpt2("0.1"),
             Precision::fp32,
             32,
             Optimizer::adamw,
             {},
             Master::exact,
             Gradients::bf16},
        Case{"llama_short_all",
             small_llama(),
             Precision::bf16,
             8,
             Optimizer::adamw,
             {},
             Master::short_remainder,
             Gradients::bf16},
        Case{"gpt2_adapters", {small_gpt2(), adapters_of_all(0.1)}, Precision::bf16, 8},
        Case{"llama_adapters", {small_llama(), adapters_of_some()}, Precision::fp32, 32},
        Case{"qwen3_adapters", {small_qwen3(), adapters_of_all()}, Precision::fp16, 32, Optimizer::muon},
        Case{"llama_nf4",
             {small_llama(), adapters_of_some()},
             Precision::bf16,
             8,
             Optimizer::adamw,
             {},
             Master::exact,
             Gradients::fp32,
             false,
             Quantize::nf4},
        Case{"gpt2_frozen",
             small_gpt2("0.1"),
             Precision::fp32,
             32,
             Optimizer::adamw,
             {{"embeddings", true, {}, {}, {}}, {"blocks.0-1", true, {}, {}, {}}}},
        Case{"llama_grouped",
             small_llama(),
             Precision::bf16,
             8,
             Optimizer::adamw,
             {{"norms", true, {}, {}, {}}, {"blocks.0", {}, 0.1, 0.0, 32}}}),
    case_name);

// ---- one step in detail ----------------------------------------------------------------------------------

class Step : public testing::Test {
 protected:
  std::shared_ptr<const Model> model_ = model_of(small_gpt2());
  std::shared_ptr<const Planned> planned(int64_t micro_batch, int64_t batch = batch_size) const {
    Request r = request_for(batch, sequence);
    r.micro_batch = micro_batch;
    return plan_for(*model_, r);
  }
};

// The loss is the sum over targets divided by their number: {1, 2, 3} and {10} give 4, where a mean of means
// gives 6.
TEST_F(Step, LossIsTheMeanOverTheTargetsOfTheGlobalBatch) {
  GlobalBatch batch = random_batch(1, 2, sequence);
  ignore_sample(batch, 0);
  ignore_sample(batch, 1);
  const size_t places[] = {4, 9, 30, 33 + 17};  // three targets in the first sample, one in the second
  const int32_t targets[] = {3, 14, 59, 26};
  for (int64_t micro_batch : {1, 2}) {
    OpenTrainer trainer(model_, planned(micro_batch, 2));
    double sum = 0, of_sample[2] = {};
    for (size_t i = 0; i < 4; ++i) {
      GlobalBatch one = batch;
      one.targets[places[i]] = targets[i];
      auto result = trainer->step(one.source(), 2, 0);
      ASSERT_TRUE(result);
      EXPECT_EQ(result->targets, 1u);
      sum += result->loss;
      of_sample[i / 3] += result->loss;
    }
    GlobalBatch all = batch;
    for (size_t i = 0; i < 4; ++i) all.targets[places[i]] = targets[i];
    auto result = trainer->step(all.source(), 2, 0);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->targets, 4u);
    EXPECT_NEAR(result->loss, sum / 4, 1e-12);
    // The wrong rule would give another value.
    EXPECT_GT(std::abs(of_sample[0] / 3 / 2 + of_sample[1] / 2 - sum / 4), 1e-6);
  }
}

// Samples without targets change nothing, whether or not they fill a whole micro-batch.
TEST_F(Step, MaskedMicroBatchAddsNothing) {
  GlobalBatch few = random_batch(2, 2, sequence), many = random_batch(3, 5, sequence);
  for (int64_t sample : {0, 2, 3}) ignore_sample(many, sample);
  for (int64_t i = 0; i < sequence; ++i)
    for (int64_t sample : {0, 1}) {
      const size_t from = static_cast<size_t>(sample * sequence + i),
                   to = static_cast<size_t>((sample == 0 ? 1 : 4) * sequence + i);
      many.tokens[to] = few.tokens[from];
      many.targets[to] = few.targets[from];
    }
  OpenTrainer small(model_, planned(2, 2));
  auto expected = small->step(few.source(), 2, 1e-3);
  ASSERT_TRUE(expected);
  for (int64_t micro_batch : {1, 2, 5}) {
    OpenTrainer trainer(model_, planned(micro_batch, 5));
    auto result = trainer->step(many.source(), 5, 1e-3);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->loss, expected->loss);
    EXPECT_EQ(result->grad_norm, expected->grad_norm);
    EXPECT_EQ(differences(trainer.state(), small.state()), "");
  }
}

// A skipped step leaves no trace in the schedule, the random numbers and the bytes.
TEST(SkippedStep, LeavesEveryByte) {
  const auto model = model_of(small_gpt2("0.1"));
  for (int bits : {32, 8})
    for (Precision precision : {Precision::fp32, Precision::bf16}) {
      Request r = request_for(batch_size, sequence);
      r.state_bits = bits;
      r.precision = precision;
      r.micro_batch = 3;
      const auto planned = plan_for(*model, r);
      const GlobalBatch first = random_batch(4, batch_size, sequence),
                        second = random_batch(5, batch_size, sequence);
      GlobalBatch empty = random_batch(6, batch_size, sequence);
      for (int64_t s = 0; s < batch_size; ++s) ignore_sample(empty, s);
      bool poison = false;
      TrainerOptions options;
      options.gradient_hook = [&](const GradientView& view) {
        if (poison) view.data[view.count / 2] = std::numeric_limits<float>::quiet_NaN();
        return true;
      };
      OpenTrainer straight(model, planned), trainer(model, planned, options);
      for (auto* t : {&straight, &trainer}) ASSERT_TRUE((*t)->step(first.source(), batch_size, 1e-3));
      const State before = trainer.state();
      auto skipped = trainer->step(empty.source(), batch_size, 1e-3);
      ASSERT_TRUE(skipped);
      EXPECT_EQ(skipped->skip, kernels::skip_no_target);
      EXPECT_EQ(skipped->targets, 0u);
      EXPECT_EQ(skipped->step, 1u);
      EXPECT_EQ(differences(trainer.state(), before), "");
      poison = true;
      skipped = trainer->step(second.source(), batch_size, 1e-3);
      poison = false;
      ASSERT_TRUE(skipped);
      EXPECT_EQ(skipped->skip, kernels::skip_not_finite);
      EXPECT_EQ(differences(trainer.state(), before), "");
      EXPECT_EQ(trainer->progress().skipped, 2u);
      EXPECT_EQ(trainer->progress().step, 1u);
      EXPECT_EQ(trainer->progress().batches, 3u);
      for (auto* t : {&straight, &trainer}) ASSERT_TRUE((*t)->step(second.source(), batch_size, 1e-3));
      EXPECT_EQ(differences(trainer.state(), straight.state()), "");
    }
}

TEST_F(Step, NonFiniteWeightsSkip) {
  for (float value : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(),
                      std::numeric_limits<float>::max()}) {
    OpenTrainer trainer(model_, planned(3));
    trainer->write_parameter(2, 5, &value, 1);
    const State before = trainer.state();
    auto result = trainer->step(random_batch(7, batch_size, sequence).source(), batch_size, 1e-3);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->skip, kernels::skip_not_finite) << value;
    EXPECT_EQ(differences(trainer.state(), before), "") << value;
  }
}

// Clipping multiplies gradients by min(1, clip / (norm + 1e-6)): a norm of 4 with a clip of 1 becomes 1.
TEST_F(Step, Clip) {
  const struct {
    double clip, norm, scale;
  } cases[] = {{1, 4, 1 / (4 + 1e-6)}, {1, 0.5, 1}, {0, 4, 1}, {10, 4, 1}, {3, 4, 3 / (4 + 1e-6)}};
  for (const auto& c : cases) {
    Trainer* self = nullptr;
    TrainerOptions options;
    options.clip_norm = c.clip;
    options.weight_decay = 0;
    const size_t parameter = model_->parameters().size() - 1;  // final_norm's bias: one use
    options.gradient_hook = [&](const GradientView& view) {
      std::fill_n(view.data, view.count, 0.0f);
      // The hook sees sums over the targets: N times the gradient.
      float* g = static_cast<float*>(self->view(parameter, TensorView::gradient)->data);
      g[0] = static_cast<float>(c.norm * 0.6 * static_cast<double>(*view.target_count));
      g[3] = static_cast<float>(-c.norm * 0.8 * static_cast<double>(*view.target_count));
      return true;
    };
    OpenTrainer trainer(model_, planned(3), options);
    self = &*trainer;
    auto result = trainer->step(random_batch(8, batch_size, sequence).source(), batch_size, 1e-2);
    ASSERT_TRUE(result);
    EXPECT_NEAR(result->grad_norm, c.norm, 1e-6 * c.norm);
    const float* m = static_cast<const float*>(trainer->view(parameter, TensorView::first_moment)->data);
    const float* v = static_cast<const float*>(trainer->view(parameter, TensorView::second_moment)->data);
    const double g = c.norm * 0.6 * c.scale;
    EXPECT_NEAR(m[0], 0.1 * g, 1e-6 * g);
    EXPECT_NEAR(m[3], -0.1 * g / 0.6 * 0.8, 1e-6 * g);
    EXPECT_NEAR(v[0], 0.05 * g * g, 1e-6 * g * g);
    EXPECT_EQ(m[1], 0.0f);
    // The first step of AdamW is the rate times the sign of the gradient.
    const float* p = static_cast<const float*>(trainer->view(parameter, TensorView::parameter)->data);
    EXPECT_NEAR(p[0], -1e-2, 1e-7);
    EXPECT_NEAR(p[3], 1e-2, 1e-7);
    EXPECT_EQ(p[1], 0.0f);
  }
}

// Weight decay applies to matrices and not to vectors.
TEST_F(Step, DecayOfMatricesOnly) {
  TrainerOptions options;
  options.weight_decay = 0.5;
  options.gradient_hook = [](const GradientView& view) {
    std::fill_n(view.data, view.count, 0.0f);
    return true;
  };
  OpenTrainer trainer(model_, planned(3), options);
  const State before = trainer.state();
  ASSERT_TRUE(trainer->step(random_batch(9, batch_size, sequence).source(), batch_size, 0.1));
  const State after = trainer.state();
  for (int t : model_->parameters()) {
    const Tensor& p = model_->graph().at(t);
    const std::string &old_bytes = before.at(p.name), &new_bytes = after.at(p.name);
    if (p.shape.rank == 1) {
      EXPECT_EQ(old_bytes, new_bytes) << p.name;
      continue;
    }
    const float* from = reinterpret_cast<const float*>(old_bytes.data());
    const float* to = reinterpret_cast<const float*>(new_bytes.data());
    for (uint64_t i = 0; i < p.shape.elements(); ++i) ASSERT_NEAR(to[i], from[i] * 0.95f, 1e-7f) << p.name;
  }
}

// After a cancel, missing data or a refusal of the hook, the trainer is at the last completed step.
TEST(UnfinishedStep, LeavesTheLastCompletedStep) {
  const auto model = model_of(small_gpt2("0.1"));
  Request r = request_for(batch_size, sequence);
  r.micro_batch = 2;
  const auto planned = plan_for(*model, r);
  const GlobalBatch batch = random_batch(10, batch_size, sequence);
  bool accept = true;
  TrainerOptions options;
  options.gradient_hook = [&](const GradientView&) { return accept; };
  OpenTrainer straight(model, planned), trainer(model, planned, options);
  for (auto* t : {&straight, &trainer}) ASSERT_TRUE((*t)->step(batch.source(), batch_size, 1e-3));
  const State before = trainer.state();
  for (uint64_t at : {0, 1, 4, 6}) {
    auto cancelling = [&](uint64_t sample, const SampleRows& rows) {
      if (sample == at) trainer->cancel();
      return batch.source()(sample, rows);
    };
    auto result = trainer->step(cancelling, batch_size, 1e-3);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::cancelled);
    auto failing = [&](uint64_t sample, const SampleRows& rows) -> Status {
      if (sample == at) return Error{Code::io_error, "no data"};
      return batch.source()(sample, rows);
    };
    result = trainer->step(failing, batch_size, 1e-3);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::io_error);
  }
  accept = false;
  auto result = trainer->step(batch.source(), batch_size, 1e-3);
  accept = true;
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::callback_failed);
  EXPECT_EQ(differences(trainer.state(), before), "");
  EXPECT_EQ(trainer->progress().phase, TrainerPhase::idle);
  EXPECT_EQ(trainer->progress().batches, 1u);
  for (auto* t : {&straight, &trainer}) ASSERT_TRUE((*t)->step(batch.source(), batch_size, 1e-3));
  EXPECT_EQ(differences(trainer.state(), straight.state()), "");
}

TEST_F(Step, ReducesTheLossOfABatch) {
  for (const std::string& config : small_models())
    for (int bits : {32, 8}) {
      const auto model = model_of(config);
      Request r = request_for(batch_size, sequence, 2);
      r.state_bits = bits;
      auto trainer = trainer_for(model, plan_for(*model, r));
      const GlobalBatch batch = random_batch(11, batch_size, sequence);
      double first = 0, last = 0;
      for (int i = 0; i < 40; ++i) {
        auto result = trainer->step(batch.source(), batch_size, 1e-2);
        ASSERT_TRUE(result);
        (i == 0 ? first : last) = result->loss;
      }
      EXPECT_NEAR(first, std::log(61.0), 0.2);
      EXPECT_LT(last, 0.7 * first) << config << bits;
    }
}

TEST(Create, RefusesPlansThatDoNotFitAndArenasTooSmall) {
  const auto model = model_of(small_gpt2());
  Request r = request_for(1, sequence);
  r.memory_bytes = 1000;
  auto tight = Planned::make(*model, r);
  ASSERT_TRUE(tight);
  EXPECT_EQ(Trainer::create(best_device(), model, *tight, {}).error().code, Code::bad_state);
  r = request_for(1, sequence);
  const auto planned = plan_for(*model, r);
  alignas(256) static std::byte arena[1024];
  TrainerOptions options;
  options.arena = arena;
  options.arena_bytes = sizeof arena;
  auto small = Trainer::create(best_device(), model, planned, options);
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().code, Code::out_of_memory);
  EXPECT_EQ(small.error().bytes_needed, planned->plan.bytes.arena);
  EXPECT_EQ(small.error().bytes_available, sizeof arena);
}

TEST(Run, RefusesDataOfALargerVocabulary) {
  TemporaryDirectory folder;
  ASSERT_TRUE(write_text(folder / "text.txt", std::string(4000, 'x')));
  DatasetOptions options;
  options.path = folder / "text.txt";
  options.vocabulary = 256;
  auto dataset = Dataset::open(options);
  ASSERT_TRUE(dataset) << dataset.error().message;
  const auto model = model_of(small_gpt2());
  const auto trainer = trainer_for(model, plan_for(*model, request_for(2, sequence)));
  Schedule schedule;
  schedule.total = 1;
  EXPECT_EQ(trainer->run(*dataset, 1, 1, schedule, {}).error().code, Code::bad_state);
  EXPECT_EQ(trainer->evaluate(*dataset, 1).error().code, Code::bad_state);
}

}  // namespace
}  // namespace stw::trainer_test
