// Shared by tests of the CUDA device, on the emulated machine and on a real one.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/src/small_models.h"
#include "tests/src/small_trainer.h"

namespace stw::testing_tools {

inline constexpr int64_t device_batch = 5, device_sequence = 33;

inline const Device& cuda_device() {
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

class CudaDeviceTest : public testing::Test {
 protected:
  std::shared_ptr<const Model> model_ = model_of(small_llama());
  TemporaryDirectory folder_;
  Request request() const {
    Request r = request_for(device_batch, device_sequence, 1);
    r.device = "rtx4090";
    r.reserve_bytes = 0;
    r.micro_batch = 2;
    r.precision = Precision::bf16;
    return r;
  }
  // The checkpoint's bytes after `steps` steps.
  std::string run(Trainer& trainer, uint64_t first, uint64_t steps) {
    for (uint64_t step = first; step < first + steps; ++step) {
      GlobalBatch batch = random_batch(step, device_batch, device_sequence);
      auto result = trainer.step(batch.source(), device_batch, 3e-3);
      EXPECT_TRUE(result) << (result ? "" : result.error().message);
    }
    return saved(trainer);
  }
  // The tensors after `steps` steps. Unlike a checkpoint, they do not name the kernels.
  State state_after(const std::shared_ptr<const Planned>& planned, uint64_t steps) {
    OpenTrainer trainer(model_, planned, {}, cuda_device());
    run(*trainer, 0, steps);
    return trainer.state();
  }
  std::string saved(Trainer& trainer) {
    EXPECT_TRUE(trainer.save(folder_ / "now.stw"));
    return file_bytes(folder_ / "now.stw");
  }
};

}  // namespace stw::testing_tools
