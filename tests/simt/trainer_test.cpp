// Whole training runs on the emulated CUDA device against the CPU's, to the bit: losses, norms, parameters, masters and
// optimizer states, evaluation, generated tokens; checkpoints go from one to the other. And the ways of the CUDA device:
// programs as graphs, offload with copies beside the ops, memory that is given back, errors.
#include <gtest/gtest.h>

#include <bit>
#include <fstream>
#include <iterator>

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

class EmulatedCheckpoints : public EmulatedTraining {};

TEST_P(EmulatedCheckpoints, GoFromOneDeviceToTheOther) {
  const auto on_cpu = plan_for(*model_, request("cpu")), on_gpu = plan_for(*model_, request("rtx4090"));
  train(cuda_device(), on_gpu, "", folder_ / "gpu.stw");
  train(best_device(), on_cpu, "", folder_ / "cpu.stw");
  expect_same(train(best_device(), on_cpu, folder_ / "gpu.stw"), train(cuda_device(), on_gpu, folder_ / "cpu.stw"));
}

INSTANTIATE_TEST_SUITE_P(Models, EmulatedCheckpoints,
                         testing::Values(Case{"gpt2_dropout", small_gpt2("0.1"), Precision::bf16, 8}, Case{"llama", small_llama(), Precision::fp16, 32}),
                         case_name);

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


// ---- the ways of the device ---------------------------------------------------------------------------------------

class EmulatedDevice : public testing::Test {
 protected:
  std::shared_ptr<const Model> model_ = model_of(small_llama());
  TemporaryDirectory folder_;
  Request request() const {
    Request r = request_for(batch_size, sequence, 1);
    r.device = "rtx4090";
    r.reserve_bytes = 0;
    r.micro_batch = 2;
    r.precision = Precision::bf16;
    return r;
  }
  // What `steps` steps leave behind, as a checkpoint's bytes.
  std::string run(Trainer& trainer, uint64_t first, uint64_t steps) {
    for (uint64_t step = first; step < first + steps; ++step) {
      GlobalBatch batch = random_batch(step, batch_size, sequence);
      auto result = trainer.step(batch.source(), batch_size, 3e-3);
      EXPECT_TRUE(result) << (result ? "" : result.error().message);
    }
    return saved(trainer);
  }
  std::string saved(Trainer& trainer) {
    EXPECT_TRUE(trainer.save(folder_ / "now.stw"));
    std::ifstream file(folder_ / "now.stw", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

// The order of additions is the tensor cores' own, the split into micro-batches still leaves no trace.
TEST_F(EmulatedDevice, TensorCoresKeepTheBitsAtEverySplit) {
  Request r = request();
  const auto whole = trainer_for(model_, plan_for(*model_, r), {}, cuda_device());
  ASSERT_TRUE(whole->plan().numerics.tensor_cores);
  const std::string bytes = run(*whole, 0, 2);
  for (const int64_t micro_batch : {1, 5}) {
    r.micro_batch = micro_batch;
    r.recompute = micro_batch == 1 ? Recompute::full : Recompute::none;
    EXPECT_TRUE(run(*trainer_for(model_, plan_for(*model_, r), {}, cuda_device()), 0, 2) == bytes) << micro_batch;
  }
  r.micro_batch = 2;
  r.tensor_cores = false;
  EXPECT_FALSE(run(*trainer_for(model_, plan_for(*model_, r), {}, cuda_device()), 0, 2) == bytes) << "the tensor cores were not used";
}

TEST_F(EmulatedDevice, OffloadAndReplanningLeaveNoTrace) {
  Request r = request();
  const auto roomy = plan_for(*model_, r);
  const auto straight = trainer_for(model_, roomy, {}, cuda_device()), trainer = trainer_for(model_, roomy, {}, cuda_device());
  run(*straight, 0, 1);
  const std::string bytes = run(*straight, 1, 2);
  run(*trainer, 0, 1);
  r.host_bytes = uint64_t{64} << 20;
  r.memory_bytes = 1;
  r.memory_bytes = (*Planned::make(*model_, r))->plan.minimum_bytes;
  const auto tight = plan_for(*model_, r);
  ASSERT_TRUE(tight->plan.decisions.offload.any());
  ASSERT_LT(tight->plan.bytes.arena, roomy->plan.bytes.arena);
  const uint64_t before = simt::device_bytes_in_use();
  ASSERT_TRUE(trainer->replan(tight));
  EXPECT_EQ(before - simt::device_bytes_in_use(), roomy->plan.bytes.arena - tight->plan.bytes.arena);
  run(*trainer, 1, 1);
  ASSERT_TRUE(trainer->replan(roomy));
  EXPECT_TRUE(run(*trainer, 2, 1) == bytes);
}

TEST_F(EmulatedDevice, GivesBackWhatItTook) {
  const uint64_t device = simt::device_bytes_in_use(), host = simt::host_bytes_in_use();
  {
    const auto planned = plan_for(*model_, request());
    const auto trainer = trainer_for(model_, planned, {}, cuda_device());
    EXPECT_EQ(simt::device_bytes_in_use() - device, planned->plan.bytes.arena);
    run(*trainer, 0, 1);
    EXPECT_EQ(simt::device_bytes_in_use() - device, planned->plan.bytes.arena);
  }
  EXPECT_EQ(simt::device_bytes_in_use(), device);
  EXPECT_EQ(simt::host_bytes_in_use(), host);
}

TEST_F(EmulatedDevice, TooLittleMemoryIsToldBeforeAnythingIsTaken) {
  const auto planned = plan_for(*model_, request());
  const uint64_t device = simt::device_bytes_in_use(), host = simt::host_bytes_in_use();
  simt::faults.memory_bytes = simt::device_bytes_in_use() + planned->plan.bytes.arena - 1;
  auto trainer = Trainer::create(cuda_device(), model_, planned, {});
  simt::faults.memory_bytes = uint64_t{8} << 30;
  ASSERT_FALSE(trainer);
  EXPECT_EQ(trainer.error().code, Code::out_of_memory);
  EXPECT_EQ(trainer.error().bytes_needed, planned->plan.bytes.arena);
  EXPECT_EQ(trainer.error().bytes_available, planned->plan.bytes.arena - 1);
  simt::faults.fail_allocation = 1;   // somebody else was faster
  auto other = Trainer::create(cuda_device(), model_, planned, {});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::out_of_memory);
  EXPECT_EQ(simt::device_bytes_in_use(), device);
  EXPECT_EQ(simt::host_bytes_in_use(), host);
}

TEST_F(EmulatedDevice, AKernelThatCannotStartIsNamed) {
  const auto trainer = trainer_for(model_, plan_for(*model_, request()), {}, cuda_device());
  GlobalBatch batch = random_batch(0, batch_size, sequence);
  simt::faults.fail_launch = 3;
  auto result = trainer->step(batch.source(), batch_size, 3e-3);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::device_error);
  EXPECT_EQ(result.error().native, cudaErrorLaunchOutOfResources);
  EXPECT_NE(result.error().message.find("op "), std::string::npos) << result.error().message;
  EXPECT_TRUE(trainer->step(batch.source(), batch_size, 3e-3)) << "the device is usable";
}

TEST_F(EmulatedDevice, SaysWhyThereIsNone) {
  const auto why = [] {
    DeviceOptions options;
    options.backend = Backend::cuda;
    auto device = Device::open(options);
    return device ? std::string() : device.error().message;
  };
  const simt::Faults before = simt::faults;
  simt::faults.driver = 0;
  EXPECT_NE(why().find("no NVIDIA driver"), std::string::npos) << why();
  EXPECT_EQ(cuda_device_count(), 0);
  simt::faults = before;
  simt::faults.devices = 0;
  EXPECT_NE(why().find("finds no device"), std::string::npos) << why();
  simt::faults = before;
  simt::faults.capability = 75;
  EXPECT_NE(why().find("compute capability 7.5"), std::string::npos) << why();
  simt::faults = before;
  EXPECT_EQ(why(), "");
  DeviceOptions second;
  second.backend = Backend::cuda;
  second.ordinal = 1;
  EXPECT_FALSE(Device::open(second));
}

// Orders of threads that a device may take.
TEST_F(EmulatedDevice, NoOrderOfThreadsChangesABit) {
  const auto planned = plan_for(*model_, request());
  const std::string bytes = run(*trainer_for(model_, planned, {}, cuda_device()), 0, 1);
  for (const simt::Order order : {simt::Order::reverse, simt::Order::random}) {
    simt::options.order = order;
    EXPECT_TRUE(run(*trainer_for(model_, planned, {}, cuda_device()), 0, 1) == bytes);
  }
  simt::options.order = simt::Order::forward;
}

}  // namespace
}  // namespace stw
