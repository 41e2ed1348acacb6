#include "src/cuda/staging.h"

#include <algorithm>
#include <cstring>

#include "src/cuda/error.h"
#include "src/cuda/wait.h"

namespace stw::cuda {

namespace {

// The driver's own wait ends some microseconds earlier. It serves calls that no cancel ends.
cudaError_t reach(cudaEvent_t event) {
  return supervisor && !supervisor->is_committed() ? wait_for(event) : cudaEventSynchronize(event);
}

}  // namespace

Staging::~Staging() {
  for (cudaEvent_t e : free_)
    if (e) cudaEventDestroy(e);
  cudaFreeHost(memory_);
}

Status Staging::create() {
  void* memory = nullptr;
  const cudaError_t status = cudaHostAlloc(&memory, slots * slot_bytes, cudaHostAllocPortable);
  if (status != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    Error e =
        error_of("pinned host memory for copies, " + std::to_string(slots * slot_bytes) + " bytes", status);
    if (e.code == Code::out_of_memory) e.code = Code::host_out_of_memory, e.bytes_needed = slots * slot_bytes;
    return e;
  }
  memory_ = static_cast<std::byte*>(memory);
  for (cudaEvent_t& e : free_) STW_CUDA_TRY("an event", cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
  return ok();
}

Status Staging::upload(void* to, const void* from, uint64_t bytes, cudaStream_t stream) {
  for (uint64_t done = 0; done < bytes; done += slot_bytes) {
    const size_t k = next_++ % slots;
    const uint64_t n = std::min(slot_bytes, bytes - done);
    STW_CUDA_TRY("a copy to the device", reach(free_[k]));
    std::memcpy(slot(k), static_cast<const std::byte*>(from) + done, n);
    STW_CUDA_TRY("a copy to the device",
                 cudaMemcpyAsync(static_cast<std::byte*>(to) + done, slot(k), n, cudaMemcpyDefault, stream));
    STW_CUDA_TRY("a copy to the device", cudaEventRecord(free_[k], stream));
  }
  return ok();
}

// While one piece is copied out, the next one is on its way.
Status Staging::download(void* to, const void* from, uint64_t bytes, cudaStream_t stream) {
  const auto* source = static_cast<const std::byte*>(from);
  const auto ask = [&](uint64_t at, size_t k) -> Status {
    STW_CUDA_TRY("a copy to the host", reach(free_[k]));
    STW_CUDA_TRY("a copy to the host", cudaMemcpyAsync(slot(k), source + at, std::min(slot_bytes, bytes - at),
                                                       cudaMemcpyDefault, stream));
    STW_CUDA_TRY("a copy to the host", cudaEventRecord(free_[k], stream));
    return ok();
  };
  size_t k = next_;
  if (bytes > 0) STW_TRY(ask(0, k % slots));
  for (uint64_t done = 0; done < bytes; done += slot_bytes, ++k) {
    if (done + slot_bytes < bytes) STW_TRY(ask(done + slot_bytes, (k + 1) % slots));
    STW_CUDA_TRY("a copy to the host", reach(free_[k % slots]));
    std::memcpy(static_cast<std::byte*>(to) + done, slot(k % slots), std::min(slot_bytes, bytes - done));
  }
  next_ = k;
  return ok();
}

}  // namespace stw::cuda
