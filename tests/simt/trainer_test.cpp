// Whole training runs on the emulated CUDA device against the CPU's, to the bit: losses, norms, parameters, masters and
// optimizer states, evaluation, generated tokens; checkpoints go from one to the other. And the ways of the CUDA device:
// programs as graphs, offload with copies beside the ops, memory that is given back, errors.
#include <gtest/gtest.h>

#include <bit>

#include "tests/simt/machine.h"
#include "tests/simt/runtime.h"
#include "tests/src/small_models.h"

namespace stw {
namespace {

using namespace testing_tools;

constexpr int64_t batch_size = 5, sequence = 33;

const Device& cuda_device() {
  static std::unique_ptr<Device> device = [] {
    DeviceOptions options;
    options.backend = Backend::cuda;
    auto opened = Device::open(options);
    if (!opened) {
      ADD_FAILURE() << opened.error().message;
      std::abort();
    }
    return std::move(*opened);
  }();
  return *device;
}

struct Outcome {
  State state;
  std::vector<double> figures;   // loss and gradient norm of every step, loss of an evaluation
  std::vector<int32_t> generated;
};

void expect_same(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(differences(a.state, b.state), "");
  ASSERT_EQ(a.figures.size(), b.figures.size());
  for (size_t i = 0; i < a.figures.size(); ++i)
    EXPECT_EQ(std::bit_cast<uint64_t>(a.figures[i]), std::bit_cast<uint64_t>(b.figures[i]))
        << "figure " << i << ": " << a.figures[i] << " and " << b.figures[i];
  EXPECT_EQ(a.generated, b.generated);
}

struct Case {
  const char* name;
  std::string config;
  Precision precision;
  int state_bits;
  Optimizer optimizer = Optimizer::adamw;
  std::vector<ParameterGroup> groups = {};
  Master master = Master::exact;
};

std::string case_name(const testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  return std::string(c.name) + "_" + name_of(c.precision) + "_" + std::to_string(c.state_bits) + "_" + name_of(c.optimizer);
}

class EmulatedTraining : public testing::TestWithParam<Case> {
 protected:
  Request request(const char* device) const {
    Request r = request_for(batch_size, sequence, 1);
    r.device = device;
    r.reserve_bytes = 0;
    r.micro_batch = 2;
    r.precision = GetParam().precision;
    r.state_bits = GetParam().state_bits;
    r.optimizer = GetParam().optimizer;
    r.groups = GetParam().groups;
    r.master = GetParam().master;
    r.tensor_cores = false;
    return r;
  }
  std::shared_ptr<const Model> model_ = model_of(GetParam().config);
  TemporaryDirectory folder_;

  Outcome train(const Device& device, std::shared_ptr<const Planned> planned, const std::string& restored = {}, const std::string& saved = {}) {
    Outcome outcome;
    OpenTrainer trainer(model_, std::move(planned), {}, device);
    if (!restored.empty()) {
      const Status status = trainer->restore(restored);
      EXPECT_TRUE(status) << (status ? "" : status.error().message);
    }
    for (uint64_t step = 0; step < 2; ++step) {
      GlobalBatch batch = random_batch(100 + step, batch_size, sequence);
      auto result = trainer->step(batch.source(), step == 1 ? 4 : 5, 3e-3);
      if (!result) {
        ADD_FAILURE() << result.error().message;
        return outcome;
      }
      outcome.figures.insert(outcome.figures.end(), {result->loss, result->grad_norm});
    }
    const Dataset dataset = open_tokens(folder_, 5, 4000);
    auto loss = trainer->evaluate(dataset, 1);
    EXPECT_TRUE(loss);
    if (loss) outcome.figures.push_back(*loss);
    outcome.generated.resize(6);
    const int32_t prompt[] = {3, 14, 15};
    GenerateOptions generate;
    generate.prompt = prompt;
    generate.prompt_count = 3;
    generate.out = outcome.generated.data();
    generate.out_capacity = 6;
    generate.temperature = 0.8;
    EXPECT_TRUE(trainer->generate(generate));
    if (!saved.empty()) {
      EXPECT_TRUE(trainer->save(saved));
    }
    outcome.state = trainer.state();
    return outcome;
  }
};

TEST_P(EmulatedTraining, GivesTheBitsOfTheCpu) {
  expect_same(train(best_device(), plan_for(*model_, request("cpu"))), train(cuda_device(), plan_for(*model_, request("rtx4090"))));
}

TEST_P(EmulatedTraining, CheckpointsGoFromOneDeviceToTheOther) {
  const auto on_cpu = plan_for(*model_, request("cpu")), on_gpu = plan_for(*model_, request("rtx4090"));
  train(cuda_device(), on_gpu, "", folder_ / "gpu.stw");
  train(best_device(), on_cpu, "", folder_ / "cpu.stw");
  expect_same(train(best_device(), on_cpu, folder_ / "gpu.stw"), train(cuda_device(), on_gpu, folder_ / "cpu.stw"));
}

INSTANTIATE_TEST_SUITE_P(Models, EmulatedTraining,
                         testing::Values(Case{"gpt2", small_gpt2(), Precision::fp32, 32},
                                         Case{"gpt2_dropout", small_gpt2("0.1"), Precision::bf16, 8},
                                         Case{"llama", small_llama(), Precision::fp32, 8},
                                         Case{"qwen2", small_qwen2(), Precision::bf16, 32},
                                         Case{"llama", small_llama(), Precision::fp16, 32, Optimizer::adafactor},
                                         Case{"gpt2", small_gpt2(), Precision::bf16, 8, Optimizer::lion},
                                         Case{"llama", small_llama(), Precision::bf16, 32, Optimizer::muon},
                                         Case{"qwen2", small_qwen2(), Precision::fp32, 32, Optimizer::sgd},
                                         Case{"llama_split8", small_llama(), Precision::bf16, 8, Optimizer::adamw, {}, Master::short_remainder},
                                         Case{"qwen2_stochastic", small_qwen2(), Precision::bf16, 32, Optimizer::adamw, {}, Master::stochastic},
                                         Case{"gpt2_frozen", small_gpt2("0.1"), Precision::fp32, 32, Optimizer::adamw,
                                              {{"embeddings", true, {}, {}, {}}, {"blocks.0-1", true, {}, {}, {}}}}),
                         case_name);

}  // namespace
}  // namespace stw
