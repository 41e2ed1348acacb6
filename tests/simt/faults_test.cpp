// Failures of the CUDA device, and its allocations and releases, on the emulated machine, in which a test can
// inject faults.
#include <cuda_runtime_api.h>

#include <functional>
#include <thread>

#include "src/base/watch.h"
#include "tests/device/cuda_device.h"
#include "tests/simt/machine.h"
#include "tests/simt/runtime.h"

namespace stw {
namespace {

using namespace testing_tools;

constexpr int64_t batch_size = device_batch, sequence = device_sequence;

TEST_F(CudaDeviceTest, FreesWhatItAllocated) {
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

TEST_F(CudaDeviceTest, TooLittleMemoryIsReportedBeforeAnyAllocation) {
  const auto planned = plan_for(*model_, request());
  const uint64_t device = simt::device_bytes_in_use(), host = simt::host_bytes_in_use();
  simt::faults.memory_bytes =
      simt::device_bytes_in_use() + simt::faults.context_bytes + planned->plan.bytes.arena - 1;
  auto trainer = Trainer::create(cuda_device(), model_, planned, {});
  simt::faults.memory_bytes = uint64_t{8} << 30;
  ASSERT_FALSE(trainer);
  EXPECT_EQ(trainer.error().code, Code::out_of_memory);
  EXPECT_EQ(trainer.error().bytes_needed, planned->plan.bytes.arena);
  EXPECT_EQ(trainer.error().bytes_available, planned->plan.bytes.arena - 1);
  EXPECT_NE(trainer.error().message.find(
                ", 1 too few; process 4242 (python3) holds 3221225472, process 17 (Xorg) holds 41943040"),
            std::string::npos)
      << trainer.error().message;
  simt::faults.fail_allocation = 1;  // Another process was faster.
  auto other = Trainer::create(cuda_device(), model_, planned, {});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::out_of_memory);
  EXPECT_EQ(simt::device_bytes_in_use(), device);
  EXPECT_EQ(simt::host_bytes_in_use(), host);
}

struct DeviceFailure {
  cudaError_t error;
  Code code;
};
constexpr DeviceFailure device_failures[] = {{cudaErrorDevicesUnavailable, Code::device_error},
                                             {cudaErrorMpsConnectionFailed, Code::device_error},
                                             {cudaErrorECCUncorrectable, Code::device_lost},
                                             {cudaErrorUnknown, Code::device_lost}};

void expect_failure(const Error& error, const DeviceFailure& failure) {
  EXPECT_EQ(error.code, failure.code) << error.message;
  EXPECT_EQ(error.native, failure.error) << error.message;
  EXPECT_NE(error.message.find(cudaGetErrorString(failure.error)), std::string::npos) << error.message;
  for (const char* words : {"refused", "are free", "too few", "gave no memory"})
    EXPECT_EQ(error.message.find(words), std::string::npos) << error.message;
}

// A device that is busy, lost or used by another process alone has its own error, wherever memory is asked
// for. A lack of memory is another error.
TEST_F(CudaDeviceTest, ADeviceThatFailsIsNotShortOfMemory) {
  const auto plain = plan_for(*model_, request());
  Decisions d = plain->plan.decisions;
  d.offload[Offloaded::weights] = plain->graph.blocks();
  const auto planned = plan_with(*model_, request(), d);
  const uint64_t device = simt::device_bytes_in_use(), host = simt::host_bytes_in_use();
  for (int simt::Faults::*place : {&simt::Faults::context_error, &simt::Faults::memory_info_error,
                                   &simt::Faults::allocation_error, &simt::Faults::host_allocation_error})
    for (const DeviceFailure& failure : device_failures) {
      simt::faults.*place = failure.error;
      const auto trainer = Trainer::create(cuda_device(), model_, planned, {});
      const auto stream = cuda_device().make_stream(0);
      const int32_t unknown = cuda_device().memory_free().failure;
      simt::faults.*place = 0;
      ASSERT_FALSE(trainer);
      expect_failure(trainer.error(), failure);
      const bool is_context = place == &simt::Faults::context_error;
      EXPECT_EQ(unknown, is_context || place == &simt::Faults::memory_info_error ? failure.error : 0);
      if (is_context || place == &simt::Faults::host_allocation_error) {
        ASSERT_FALSE(stream);
        expect_failure(stream.error(), failure);
      }
    }
  simt::faults.host_allocation_error = cudaErrorMemoryAllocation;
  const auto stream = cuda_device().make_stream(0);
  const auto trainer = Trainer::create(cuda_device(), model_, planned, {});
  simt::faults.host_allocation_error = 0;
  ASSERT_FALSE(stream || trainer);
  EXPECT_EQ(stream.error().code, Code::host_out_of_memory);
  EXPECT_EQ(stream.error().bytes_needed, uint64_t{16} << 20);
  EXPECT_EQ(trainer.error().code, Code::host_out_of_memory);
  EXPECT_EQ(trainer.error().bytes_needed, planned->plan.bytes.host);
  EXPECT_EQ(simt::device_bytes_in_use(), device);
  EXPECT_EQ(simt::host_bytes_in_use(), host);
}

TEST_F(CudaDeviceTest, ReplanningReportsADeviceThatFails) {
  Request r = request();
  const auto roomy = plan_for(*model_, r);
  r.memory_bytes = 1;
  r.memory_bytes = (*Planned::make(*model_, r))->plan.minimum_bytes;
  const auto tight = plan_for(*model_, r);
  for (const DeviceFailure& failure : {device_failures[0], device_failures[2]}) {
    const auto trainer = trainer_for(model_, tight, {}, cuda_device());
    const std::string bytes = run(*trainer, 0, 1);
    for (int simt::Faults::*place :
         {&simt::Faults::memory_info_error, &simt::Faults::host_allocation_error}) {
      simt::faults.*place = failure.error;
      const Status refused = trainer->replan(roomy);
      simt::faults.*place = 0;
      ASSERT_FALSE(refused);
      expect_failure(refused.error(), failure);
      EXPECT_TRUE(saved(*trainer) == bytes) << "nothing has changed";
    }
    for (const auto& [from, to] : {std::pair{tight, roomy}, std::pair{roomy, tight}}) {
      ASSERT_TRUE(trainer->replan(from));
      ASSERT_TRUE(trainer->save(folder_ / "kept.stw"));
      simt::faults.allocation_error = failure.error;
      const Status lost = trainer->replan(to);
      simt::faults.allocation_error = 0;
      ASSERT_FALSE(lost);
      expect_failure(lost.error(), failure);
      EXPECT_EQ(lost.error().message.find(" a restore allocates it again") == std::string::npos,
                failure.code == Code::device_lost)
          << lost.error().message;
      ASSERT_TRUE(trainer->restore(folder_ / "kept.stw"));
      EXPECT_TRUE(saved(*trainer) == bytes);
    }
  }
}

TEST_F(CudaDeviceTest, AKernelThatCannotStartIsNamed) {
  const auto planned = plan_for(*model_, request());
  simt::faults.fail_launch = 3;
  const auto failed = Trainer::create(cuda_device(), model_, planned, {});
  ASSERT_FALSE(failed) << "programs are recorded when a trainer is created";
  EXPECT_EQ(failed.error().code, Code::device_error);
  EXPECT_EQ(failed.error().native, cudaErrorLaunchOutOfResources);
  EXPECT_NE(failed.error().message.find("op "), std::string::npos) << failed.error().message;

  const auto trainer = trainer_for(model_, planned, {}, cuda_device());
  GlobalBatch batch = random_batch(0, batch_size, sequence);
  simt::faults.fail_launch = 1;
  EXPECT_TRUE(trainer->step(batch.source(), batch_size, 3e-3)) << "a step records nothing";
  EXPECT_EQ(simt::faults.fail_launch, 1);
  simt::faults.fail_launch = 0;
}

// A program that takes long: the call returns at once, and the device goes on. With positions and weights, a
// micro-step has six inputs, each in a slot of its own.
TEST_F(CudaDeviceTest, ACancelDoesNotWaitForTheDevice) {
  for (const bool many_inputs : {false, true}) {
    Request r = request();
    r.inputs.positions = r.inputs.weights = many_inputs;
    const auto planned = plan_for(*model_, r);
    OpenTrainer straight(model_, planned, {}, cuda_device()), trainer(model_, planned, {}, cuda_device());
    const std::string before = run(*trainer, 0, 1);
    const GlobalBatch batch = random_batch(1, device_batch, device_sequence);
    simt::is_stuck = true;
    std::thread host([&] {
      // Two micro-steps are launched, and the host waits for the first one.
      while (trainer->progress().micro_steps_done == 0) std::this_thread::yield();
      trainer->cancel();
    });
    const auto result = trainer->step(batch.source(), device_batch, 3e-3);
    host.join();
    simt::is_stuck = false;
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::cancelled);
    EXPECT_EQ(trainer->progress().micro_steps_done, 1u);
    EXPECT_TRUE(saved(*trainer) == before);
    EXPECT_TRUE(run(*trainer, 1, 1) == run(*straight, 0, 2));
  }
}

// Inputs of 15 MiB do not wait for a program that takes long. Larger ones do, unless the call is cancelled.
TEST_F(CudaDeviceTest, UploadsDoNotWaitForTheDevice) {
  cudaStream_t work = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking), cudaSuccess);
  DeviceOptions options;
  options.backend = Backend::cuda;
  options.stream = work;
  const auto device = Device::open(options);
  ASSERT_TRUE(device);
  const std::vector<std::byte> inputs(15 << 20, std::byte{7});
  void* const memory = (*device)->allocate(inputs.size(), 256).memory;
  {
    const auto stream = (*device)->make_stream(0);
    ASSERT_TRUE(stream);
    bool has_run = false;
    simt::enqueue(work, [&] { has_run = true; });
    simt::is_stuck = true;
    CancelFlag flag;
    flag.request();
    {
      const LongCall call({}, "cancelled", nullptr, &flag);
      EXPECT_NO_THROW((*stream)->upload(memory, inputs.data(), inputs.size())) << "only a wait throws";
      EXPECT_FALSE(has_run);
      EXPECT_THROW((*stream)->upload(memory, inputs.data(), inputs.size()), Cancelled);
    }
    EXPECT_FALSE(has_run);
    simt::is_stuck = false;
    EXPECT_TRUE((*stream)->wait());
    EXPECT_TRUE(has_run);
    EXPECT_EQ(std::memcmp(memory, inputs.data(), inputs.size()), 0);
  }
  (*device)->release(memory, inputs.size());
  cudaStreamDestroy(work);
}

// Both libraries refuse to choose an algorithm while a stream is recorded, and would leave everything to our
// own kernels.
TEST_F(CudaDeviceTest, TheLibrariesChooseWhileNothingIsRecorded) {
  Request r = request();
  r.kernels = Kernels::cublaslt;
  r.attention = Attention::cudnn;
  const auto planned = plan_for(*model_, r);
  const uint64_t products = simt::library_products, attentions = simt::library_attentions;
  const auto trainer = trainer_for(model_, planned, {}, cuda_device());
  EXPECT_GT(simt::library_products, products);
  EXPECT_GT(simt::library_attentions, attentions);
}

TEST_F(CudaDeviceTest, WithoutCublasltItsPlansAreRefused) {
  Request r = request();
  r.kernels = Kernels::cublaslt;
  const auto planned = plan_for(*model_, r);
  const uint64_t device = simt::device_bytes_in_use();
  simt::faults.has_cublaslt = false;
  const auto refused = Trainer::create(cuda_device(), model_, planned, {});
  simt::faults.has_cublaslt = true;
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unsupported);
  EXPECT_NE(refused.error().message.find("libcublasLt"), std::string::npos) << refused.error().message;
  EXPECT_EQ(simt::device_bytes_in_use(), device);

  simt::faults.fail_product = 3;
  const auto failed = Trainer::create(cuda_device(), model_, planned, {});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Code::device_error);
  EXPECT_NE(failed.error().message.find("op linear of program micro"), std::string::npos)
      << failed.error().message;
  EXPECT_NE(failed.error().message.find("CUBLAS_STATUS_EXECUTION_FAILED"), std::string::npos)
      << failed.error().message;
  const std::string bytes = run(*trainer_for(model_, planned, {}, cuda_device()), 0, 1);

  // If the choice of an algorithm fails, so does the trainer's creation. The product must not move to our
  // kernels afterwards: their bits differ.
  simt::faults.fail_choice = 2;
  const auto undecided = Trainer::create(cuda_device(), model_, planned, {});
  ASSERT_FALSE(undecided);
  EXPECT_EQ(undecided.error().code, Code::device_error);
  EXPECT_NE(undecided.error().message.find("the choice of an algorithm for a product"), std::string::npos)
      << undecided.error().message;
  EXPECT_NE(undecided.error().message.find("CUBLAS_STATUS_INTERNAL_ERROR"), std::string::npos)
      << undecided.error().message;
  EXPECT_TRUE(run(*trainer_for(model_, planned, {}, cuda_device()), 0, 1) == bytes);
}

// A caller that asks for a vendor's library gets a message about everything that the library does not
// support.
TEST_F(CudaDeviceTest, ReportsWhatTheLibrariesDecline) {
  Request r = request();
  r.kernels = Kernels::cublaslt;
  r.attention = Attention::cudnn;
  const auto planned = plan_for(*model_, r);
  const auto messages = [&] {
    DeviceOptions options;
    options.backend = Backend::cuda;
    const auto device = Device::open(options);
    trainer_for(model_, planned, {}, **device);
    std::string all;
    for (LogMessage m = (*device)->next_log(0); m.number > 0; m = (*device)->next_log(m.number))
      all += std::string(m.text) + "\n";
    return all;
  };
  EXPECT_EQ(messages(), "");
  simt::faults.declines_products = simt::faults.declines_attention = true;
  const std::string declined = messages();
  simt::faults.declines_products = simt::faults.declines_attention = false;
  EXPECT_NE(declined.find("cuBLASLt has no algorithm for products ("), std::string::npos) << declined;
  EXPECT_NE(declined.find("cuDNN has no engine for attention ("), std::string::npos) << declined;
  EXPECT_NE(declined.find("cuDNN has no engine for the gradient of attention ("), std::string::npos)
      << declined;
}

TEST_F(CudaDeviceTest, WithoutCudnnItsPlansAreRefused) {
  Request r = request();
  r.attention = Attention::cudnn;
  const auto planned = plan_for(*model_, r);
  const uint64_t device = simt::device_bytes_in_use();
  const int64_t descriptors = simt::cudnn_descriptors;
  simt::faults.has_cudnn = false;
  const auto refused = Trainer::create(cuda_device(), model_, planned, {});
  simt::faults.has_cudnn = true;
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unsupported);
  EXPECT_NE(refused.error().message.find("libcudnn"), std::string::npos) << refused.error().message;
  EXPECT_EQ(simt::device_bytes_in_use(), device);
  simt::faults.cudnn_version = 91500;
  const auto old = Trainer::create(cuda_device(), model_, planned, {});
  simt::faults.cudnn_version = 92000;
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().code, Code::unsupported);
  EXPECT_NE(old.error().message.find("cuDNN: found 9.15.0, need 9.15.1: older"), std::string::npos)
      << old.error().message;

  simt::faults.fail_attention = 2;
  const auto failed = Trainer::create(cuda_device(), model_, planned, {});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Code::device_error);
  EXPECT_NE(failed.error().message.find("op attention of program micro"), std::string::npos)
      << failed.error().message;
  EXPECT_NE(failed.error().message.find("CUDNN_STATUS_EXECUTION_FAILED"), std::string::npos)
      << failed.error().message;
  const std::string bytes = run(*trainer_for(model_, planned, {}, cuda_device()), 0, 1);
  // A temporary lack of memory must not lead to another engine or to our own kernels: their bits differ.
  for (int n = 1; n <= 4; ++n) {
    simt::faults.fail_engine = n;
    const auto undecided = Trainer::create(cuda_device(), model_, planned, {});
    ASSERT_FALSE(undecided) << n;
    EXPECT_EQ(undecided.error().code, Code::device_error);
    EXPECT_NE(undecided.error().message.find("DEVICE_ALLOCATION_FAILED"), std::string::npos)
        << undecided.error().message;
    EXPECT_EQ(simt::faults.fail_engine, 0);
  }
  EXPECT_TRUE(run(*trainer_for(model_, planned, {}, cuda_device()), 0, 1) == bytes);
  EXPECT_EQ(simt::cudnn_descriptors, descriptors) << "a trainer that is gone leaves none";
}

TEST_F(CudaDeviceTest, NamesTheReasonForAMissingDevice) {
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

TEST_F(CudaDeviceTest, ProductsByWarpgroupsAreRefusedOnOtherCards) {
  const simt::Faults before = simt::faults;
  Request r = request();
  r.device = "h100";
  r.kernels = Kernels::wgmma;
  const auto planned = plan_for(*model_, r);
  simt::faults.capability = 100;
  const auto refused = Trainer::create(cuda_device(), model_, planned, {});
  simt::faults = before;
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unsupported);
  EXPECT_NE(refused.error().message.find("wgmma need compute capability 9.0, device 0 has 10.0"),
            std::string::npos)
      << refused.error().message;
}

// Another thread of the host records a graph in the default mode, which forbids most calls that a trainer
// makes.
TEST_F(CudaDeviceTest, WorksDuringACaptureOfTheHost) {
  const auto planned = plan_for(*model_, request());
  const std::string bytes = run(*trainer_for(model_, planned, {}, cuda_device()), 0, 1);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  std::thread([&] {
    EXPECT_TRUE(run(*trainer_for(model_, planned, {}, cuda_device()), 0, 1) == bytes);
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, 1), cudaErrorStreamCaptureUnsupported) << "the thread's own mode is back";
  }).join();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated) << "by that";
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  std::thread([&] { run(*trainer_for(model_, planned, {}, cuda_device()), 0, 1); }).join();
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  static_cast<void>(cudaGetLastError());
}

// An error that the host left in the runtime is not ours. An error of a copy is returned by the call that
// waits for it, on any thread.
TEST_F(CudaDeviceTest, FailedCopiesAreReportedOnce) {
  const auto planned = plan_for(*model_, request());
  const auto trainer = trainer_for(model_, planned, {}, cuda_device());
  GlobalBatch batch = random_batch(0, batch_size, sequence);
  EXPECT_NE(cudaSetDevice(99), cudaSuccess);
  EXPECT_TRUE(trainer->step(batch.source(), batch_size, 3e-3));
  EXPECT_TRUE(trainer_for(model_, planned, {}, cuda_device()))
      << "an error of the host must not stop recording either";
  // A stream's copies requested on one thread, waited for on another.
  auto stream = cuda_device().make_stream(0);
  ASSERT_TRUE(stream);
  std::vector<std::byte> numbers(4096);
  void* const memory = cuda_device().allocate(numbers.size(), 256).memory;
  simt::faults.fail_copy = 1;
  std::thread([&] { (*stream)->upload(memory, numbers.data(), numbers.size()); }).join();
  EXPECT_EQ(simt::faults.fail_copy, 0);
  const Status failed = (*stream)->wait();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Code::device_error);
  EXPECT_EQ(failed.error().native, cudaErrorInvalidValue);
  EXPECT_NE(failed.error().message.find("a copy to the device"), std::string::npos) << failed.error().message;
  EXPECT_TRUE((*stream)->wait()) << "once";
  cuda_device().release(memory, numbers.size());
  simt::faults.fail_copy = 1;  // And a copy of a step.
  EXPECT_FALSE(trainer->step(batch.source(), batch_size, 3e-3));
  EXPECT_TRUE(trainer->step(batch.source(), batch_size, 3e-3));
}

// Runs the test on a new thread without a context, with two GPUs of which neither has a context.
void on_two_cards(const std::function<void()>& test) {
  simt::faults.devices = 2;
  simt::forget_contexts();
  std::thread(test).join();
  simt::faults.devices = 1;
}
std::unique_ptr<Device> card(int ordinal) {
  DeviceOptions options;
  options.backend = Backend::cuda;
  options.ordinal = ordinal;
  auto device = Device::open(options);
  EXPECT_TRUE(device);
  return std::move(*device);
}

TEST_F(CudaDeviceTest, OtherCardsGetNoContext) {
  on_two_cards([&] {
    const auto device = card(1);
    EXPECT_EQ(device->info().memory_total, simt::faults.memory_bytes);
    EXPECT_FALSE(simt::has_context(0) || simt::has_context(1)) << "to be listed is not to be used";
    {
      const auto trainer = trainer_for(model_, plan_for(*model_, request()), {}, *device);
      run(*trainer, 0, 1);
    }
    EXPECT_TRUE(simt::has_context(1));
    EXPECT_FALSE(simt::has_context(0));
    EXPECT_EQ(simt::current_context(), nullptr);
  });
}

TEST_F(CudaDeviceTest, TheHostsContextComesBack) {
  on_two_cards([&] {
    for (const int ordinal : {0, 1}) {
      CUctx_st* const own = simt::make_context(0);
      simt::make_current(own);
      const auto device = card(ordinal);
      device->memory_free();
      EXPECT_EQ(simt::current_context(), own);
      run(*trainer_for(model_, plan_for(*model_, request()), {}, *device), 0, 1);
      EXPECT_EQ(simt::current_context(), own);
    }
    // A thread that has chosen no card works with the first one, which has its context by now.
    simt::make_current(nullptr);
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    simt::make_current(nullptr);
    card(1)->memory_free();
    int now = -1;
    ASSERT_EQ(cudaGetDevice(&now), cudaSuccess);
    EXPECT_EQ(now, 0);
  });
}

// Orders of threads that a device may use.
TEST_F(CudaDeviceTest, NoOrderOfThreadsChangesABit) {
  const auto planned = plan_for(*model_, request());
  const std::string bytes = run(*trainer_for(model_, planned, {}, cuda_device()), 0, 1);
  for (const simt::Order order : {simt::Order::reverse, simt::Order::random}) {
    simt::options.order = order;
    EXPECT_TRUE(run(*trainer_for(model_, planned, {}, cuda_device()), 0, 1) == bytes);
  }
  simt::options.order = simt::Order::forward;
}

// Copies in parallel with the ops of a stage: as early as they may run, as late as they may run.
TEST_F(CudaDeviceTest, NoOrderOfCopiesChangesABit) {
  const auto plain = plan_for(*model_, request());
  const std::string bytes = run(*trainer_for(model_, plain, {}, cuda_device()), 0, 2);
  const int blocks = plain->graph.blocks();
  Decisions d = plain->plan.decisions;
  d.offload.parts = {blocks + 1, blocks + 1, blocks, blocks, blocks};
  d.offload.overlap = true;
  d.offload.slice = 1024;
  const auto planned = plan_with(*model_, request(), d);
  for (const simt::Order order : {simt::Order::forward, simt::Order::reverse}) {
    simt::options.order = order;
    EXPECT_TRUE(run(*trainer_for(model_, planned, {}, cuda_device()), 0, 2) == bytes);
  }
  simt::options.order = simt::Order::forward;
}

// If small ops were launched one by one, their times would be those of the host.
TEST_F(CudaDeviceTest, OpsAreTimedInGraphs) {
  const auto trainer = trainer_for(model_, plan_for(*model_, request()), {}, cuda_device());
  const uint64_t before = simt::single_launches;
  const auto profile = trainer->calibrate();
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(simt::single_launches, before);
}

// The reserve is the context's bytes in whole MiB, whatever is in the arena and in other processes. Two
// cases keep the profile's figure: a context that the host created before, which is not ours, and a machine
// without a library that tells which memory is in use.
TEST_F(CudaDeviceTest, CalibrationMeasuresMemoryOutsideOfTheArena) {
  const uint64_t assumed = find_device("rtx4090")->reserve_bytes;
  Request small = request();
  small.global_batch = 1, small.sequence = 8, small.micro_batch = 1;
  const auto measured = [&](bool by_host) {
    uint64_t reserve = 0;
    on_two_cards([&] {
      if (by_host) cudaSetDevice(0);
      const auto other = card(0), device = card(0);
      EXPECT_GT(other->memory_free().bytes, 0u);
      const auto profile = trainer_for(model_, plan_for(*model_, small), {}, *device)->calibrate();
      ASSERT_TRUE(profile) << profile.error().message;
      reserve = profile->reserve_bytes;
    });
    return reserve;
  };
  simt::faults.tells_memory = false;
  EXPECT_EQ(measured(false), assumed);
  simt::faults.tells_memory = true;
  EXPECT_EQ(measured(true), assumed);
  EXPECT_EQ(measured(false), uint64_t{124} << 20);
}

TEST_F(CudaDeviceTest, ReplanningGivesMemoryBack) {
  Request r = request();
  const auto roomy = plan_for(*model_, r);
  const auto trainer = trainer_for(model_, roomy, {}, cuda_device());
  r.memory_bytes = 1;
  r.memory_bytes = (*Planned::make(*model_, r))->plan.minimum_bytes;
  const auto tight = plan_for(*model_, r);
  const uint64_t before = simt::device_bytes_in_use();
  ASSERT_TRUE(trainer->replan(tight));
  EXPECT_EQ(before - simt::device_bytes_in_use(), roomy->plan.bytes.arena - tight->plan.bytes.arena);
  const std::string bytes = saved(*trainer);
  simt::faults.fail_allocation = 1;  // Growing fails, and the old arena comes back.
  const Status refused = trainer->replan(roomy);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::out_of_memory);
  EXPECT_TRUE(saved(*trainer) == bytes);
  run(*trainer, 0, 1);
}

// While the arena changes its size, the device holds none of it, and others may take the memory.
TEST_F(CudaDeviceTest, ReplanningThatLosesTheArenaCanBeRestored) {
  Request r = request();
  const auto roomy = plan_for(*model_, r);
  r.memory_bytes = 1;
  r.memory_bytes = (*Planned::make(*model_, r))->plan.minimum_bytes;
  const auto tight = plan_for(*model_, r);
  for (const bool grows : {true, false}) {
    const uint64_t before = simt::device_bytes_in_use();
    {
      const auto trainer = trainer_for(model_, grows ? tight : roomy, {}, cuda_device());
      const std::string bytes = run(*trainer, 0, 1);
      ASSERT_TRUE(trainer->save(folder_ / "kept.stw"));
      simt::faults.fail_allocations = 2;
      const Status lost = trainer->replan(grows ? roomy : tight);
      EXPECT_EQ(simt::faults.fail_allocations, 0);
      ASSERT_FALSE(lost);
      EXPECT_EQ(lost.error().code, Code::out_of_memory);
      EXPECT_NE(lost.error().message.find("a restore allocates it again"), std::string::npos)
          << lost.error().message;
      EXPECT_EQ(simt::device_bytes_in_use(), before);
      GlobalBatch batch = random_batch(1, batch_size, sequence);
      const auto code = [](auto result) { return result ? Code::ok : result.error().code; };
      EXPECT_EQ(code(trainer->step(batch.source(), batch_size, 3e-3)), Code::bad_state);
      EXPECT_EQ(code(trainer->save(folder_ / "now.stw")), Code::bad_state);
      EXPECT_EQ(code(trainer->view(0, TensorView::parameter)), Code::bad_state);
      EXPECT_EQ(code(trainer->replan(tight)), Code::bad_state);
      simt::faults.fail_allocations = 1;  // Still in use by others.
      EXPECT_EQ(code(trainer->restore(folder_ / "kept.stw")), Code::out_of_memory);
      const Status restored = trainer->restore(folder_ / "kept.stw");
      ASSERT_TRUE(restored) << restored.error().message;
      EXPECT_TRUE(saved(*trainer) == bytes);
      EXPECT_TRUE(run(*trainer, 1, 1) == run(
                                             *[&] {
                                               auto other = trainer_for(model_, roomy, {}, cuda_device());
                                               run(*other, 0, 1);
                                               return other;
                                             }(),
                                             1, 1));
    }
    EXPECT_EQ(simt::device_bytes_in_use(), before);
  }
}

}  // namespace
}  // namespace stw
