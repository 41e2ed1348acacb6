// Pinned host memory for copies to and from the device: a ring of slots. A slot is free again once the device
// has finished its copy. upload() returns when all bytes are in slots, so that the caller may overwrite its
// memory at once. The device copies one slot while the host fills or empties the next. Copies wait for the
// programs before them. So a micro-step's inputs wait for no program as long as they fit into the ring: two
// inputs of 2 million tokens, or five of 800,000. A cancel ends the waits.
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
  static constexpr size_t slots = 16;

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
