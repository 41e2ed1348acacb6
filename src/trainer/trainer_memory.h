// The memory that a trainer lies in: its arena, and memory of the host for what is offloaded. It counts bytes and knows nothing of
// what is in them: whoever lets it grow or shrink looks afterwards where the arena is.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "planner/base/result.h"
#include "src/device/device.h"

namespace stw {

// Of a device for its host, and given back with the pointer.
struct HostRelease {
  const Device* device = nullptr;
  uint64_t bytes = 0;
  void operator()(std::byte* memory) const { device->release_host(memory, bytes); }
};
using HostMemory = std::unique_ptr<std::byte, HostRelease>;

// Why an arena did not grow: too little is free, or it was refused all the same.
struct Shortage {
  bool enough_free;
  uint64_t wanted, available;   // bytes; wanted: more than the arena has
};

class TrainerMemory {
 public:
  explicit TrainerMemory(const Device& device) : device_(device) {}
  // Gives everything back: by then nothing uses it any more.
  ~TrainerMemory();
  TrainerMemory(const TrainerMemory&) = delete;

  std::byte* arena() const { return arena_; }   // at a multiple of 256; null: not taken yet, or lost
  std::byte* host() const { return host_.get(); }   // the same; null where nothing is offloaded
  uint64_t arena_bytes() const { return arena_bytes_; }

  // Once. `brought`: the host's arena, which stays the host's, or null. Errors: out_of_memory, host_out_of_memory, bad_argument.
  Status take(uint64_t arena_bytes, uint64_t host_bytes, void* brought, uint64_t brought_bytes);
  // The arena after it was lost. Errors: the same.
  Status take_arena_again(uint64_t bytes);
  // In the place of what is there, when that has been copied; none of 0 bytes. `arena_bytes`: what the arena is about to have. Errors: the same.
  Result<HostMemory> take_host(uint64_t bytes, uint64_t arena_bytes) const;
  void replace_host(HostMemory host) { host_ = std::move(host); }

  // Errors: out_of_memory where the arena is the host's, and smaller than that.
  Status check_size(uint64_t bytes) const;
  // The arena becomes larger and keeps so many of its first bytes. Where it does not, it has its old size and may lie elsewhere, or
  // nowhere. Takes no memory of its own, so that nothing is thrown between the move and its being seen.
  std::optional<Shortage> grow(uint64_t bytes, uint64_t kept);
  Error told(const Shortage& shortage) const;
  // Gives back what is too much of its own; where that is refused, it stays, or nothing does.
  void shrink(uint64_t bytes, uint64_t kept);

  static Error out_of_memory(const std::string& what, uint64_t needed, uint64_t available);

 private:
  // `wanted`: all that is about to be taken of the same memory.
  Result<std::byte*> ask_arena(uint64_t bytes, uint64_t wanted) const;
  Result<HostMemory> ask_host(uint64_t bytes, uint64_t wanted) const;
  bool has_room(uint64_t wanted, uint64_t available) const;
  bool resize(uint64_t bytes, uint64_t kept);
  std::string holders() const;

  const Device& device_;
  HostMemory host_;
  std::byte* arena_ = nullptr;
  uint64_t arena_bytes_ = 0;   // at least the plan's
  bool owns_arena_ = false;
};

}  // namespace stw
