// Pinned host memory for copies to and from the device: a ring of slots, each free again once the device has
// read it. The caller may change its memory at once, and a copy runs while the next slot is filled.
#pragma once
#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "planner/base/result.h"

namespace stw::cuda {

class Staging {
 public:
  static constexpr uint64_t slot_bytes = 1 << 20;
  static constexpr size_t slots = 4;

  Staging() = default;
  ~Staging();
  Staging(const Staging&) = delete;
  Status create();
  Status upload(void* to, const void* from, uint64_t bytes, cudaStream_t stream);
  Status download(void* to, const void* from, uint64_t bytes, cudaStream_t stream);

 private:
  std::byte* slot(size_t k) const { return memory_ + k * slot_bytes; }
  std::byte* memory_ = nullptr;
  std::array<cudaEvent_t, slots> free_{};
  size_t next_ = 0;
};

}  // namespace stw::cuda
