// The memory of a trainer: its arena, and host memory for offloaded tensors. It counts bytes and does not
// know their contents. A caller that grows or shrinks the arena must look up afterwards where it is.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "planner/base/result.h"
#include "src/device/device.h"

namespace stw {

// Host memory that a device allocates for transfers. The pointer gives it back.
struct HostRelease {
  const Device* device = nullptr;
  uint64_t bytes = 0;
  void operator()(std::byte* memory) const { device->release_host(memory, bytes); }
};
using HostMemory = std::unique_ptr<std::byte, HostRelease>;

// The reason that an arena did not grow: the device failed, too little memory is free, or the allocation
// failed although enough is free.
struct Shortage {
  bool enough_free;
  uint64_t wanted, available;  // bytes; wanted: in addition to the arena
  int32_t failure;             // for Device::error_of(); 0: none
};

class TrainerMemory {
 public:
  explicit TrainerMemory(const Device& device) : device_(device) {}
  // Gives everything back. The caller ensures that nothing uses the memory any more.
  ~TrainerMemory();
  TrainerMemory(const TrainerMemory&) = delete;

  std::byte* arena() const { return arena_; }  // aligned to 256 bytes; null before take(), and after a loss
  std::byte* host() const { return host_.get(); }  // aligned to 256 bytes; null where nothing is offloaded
  uint64_t arena_bytes() const { return arena_bytes_; }

  // Call once. `brought`: an arena that the host owns, or null. Errors: out_of_memory, host_out_of_memory,
  // bad_argument, those of the device.
  Status take(uint64_t arena_bytes, uint64_t host_bytes, void* brought, uint64_t brought_bytes);
  // Takes an arena after the last one was lost. Errors: the same.
  Status reallocate_arena(uint64_t bytes);
  // Allocates new host memory; the caller copies into it, then calls replace_host(). Null for 0 bytes.
  // `arena_bytes`: the size that the arena will have. Errors: the same.
  Result<HostMemory> take_host(uint64_t bytes, uint64_t arena_bytes) const;
  void replace_host(HostMemory host) { host_ = std::move(host); }

  // Errors: out_of_memory where the host owns the arena and it is smaller than `bytes`.
  Status check_size(uint64_t bytes) const;
  // Grows the arena and keeps its first `kept` bytes. After a failure it has its old size, but may have moved
  // or be lost. Allocates nothing else: no exception can keep the caller from learning that the arena moved.
  std::optional<Shortage> grow(uint64_t bytes, uint64_t kept);
  Error shortage_error(const Shortage& shortage) const;
  // Gives back the memory past `bytes`, unless the host owns the arena. If the device refuses, the arena
  // keeps its size, or is lost. Returns the failure of the device, for Device::error_of(), or 0.
  int32_t shrink(uint64_t bytes, uint64_t kept);

  static Error out_of_memory(const std::string& what, uint64_t needed, uint64_t available);

 private:
  // `wanted`: all bytes that the caller is about to take from the same memory, these included.
  Result<std::byte*> allocate_arena(uint64_t bytes, uint64_t wanted) const;
  Result<HostMemory> allocate_host_memory(uint64_t bytes, uint64_t wanted) const;
  bool has_room(uint64_t wanted, uint64_t available) const;
  Resized resize(uint64_t bytes, uint64_t kept);
  std::string holders() const;

  const Device& device_;
  HostMemory host_;
  std::byte* arena_ = nullptr;
  uint64_t arena_bytes_ = 0;  // at least the plan's
  bool owns_arena_ = false;
};

}  // namespace stw
