#include "src/trainer/trainer_memory.h"

#include <cassert>
#include <utility>
#include <vector>

#include "kernels/contract/sizes.h"

namespace stw {
namespace {

constexpr uint64_t alignment = 256;

bool is_aligned(const void* memory) { return reinterpret_cast<uintptr_t>(memory) % alignment == 0; }

// The reason for a refusal: too little memory is free, or the allocation failed although enough is free.
std::string refusal(bool enough_free, bool by_host, uint64_t wanted, uint64_t available) {
  if (by_host) return ", which the host's allocator refused";
  const std::string free = std::to_string(available) + " are free";
  return enough_free ? ", which the system refused, although " + free + ": a limit of the process?"
                     : ", " + free + ", " + std::to_string(wanted - available) + " too few";
}

Error not_aligned() {
  return {Code::bad_argument, "trainer: the host's allocator gave memory that is not aligned to 256 bytes"};
}

}  // namespace

TrainerMemory::~TrainerMemory() {
  if (owns_arena_) device_.release(arena_, arena_bytes_);
}

Error TrainerMemory::out_of_memory(const std::string& what, uint64_t needed, uint64_t available) {
  Error e{Code::out_of_memory, "trainer: " + what};
  e.bytes_needed = needed;
  e.bytes_available = available;
  return e;
}

// Names the processes that hold the card's memory, at most as many as a message has room for.
std::string TrainerMemory::holders() const {
  constexpr size_t most_named = 3;
  std::string text;
  const std::vector<MemoryHolder> all = device_.memory_holders();
  for (size_t i = 0; i < all.size() && i < most_named; ++i)
    text += (i == 0 ? "; process " : ", process ") + std::to_string(all[i].process) +
            (all[i].name.empty() ? "" : " (" + all[i].name.substr(0, 40) + ")") + " holds " +
            std::to_string(all[i].bytes);
  return text;
}

// Without this check the system may promise more memory than it has, and end the process later.
bool TrainerMemory::has_room(uint64_t wanted, uint64_t available) const {
  return device_.has_allocator() || available == 0 || wanted <= available;
}

Result<std::byte*> TrainerMemory::allocate_arena(uint64_t bytes, uint64_t wanted) const {
  const auto [available, unknown] = device_.memory_free();
  if (unknown) return device_.error_of("the device's free memory", unknown);
  const bool enough_free = has_room(wanted, available);
  const auto [memory, failure] = enough_free ? device_.allocate(bytes, alignment) : Allocation{};
  if (failure) return device_.error_of("the arena of " + std::to_string(bytes) + " bytes", failure);
  if (!memory)
    return out_of_memory(
        "the arena needs " + std::to_string(bytes) + " bytes" +
            (wanted > bytes
                 ? ", and offloaded tensors " + std::to_string(wanted - bytes) + " of the same memory"
                 : "") +
            refusal(enough_free, device_.has_allocator(), wanted, available) + (enough_free ? "" : holders()),
        wanted, available);
  if (is_aligned(memory)) return static_cast<std::byte*>(memory);
  device_.release(memory, bytes);
  return not_aligned();
}

Result<HostMemory> TrainerMemory::allocate_host_memory(uint64_t bytes, uint64_t wanted) const {
  const uint64_t available = device_.host_memory_free();
  const bool by_host = device_.has_allocator() && !device_.is_cuda();
  const bool enough_free = by_host || available == 0 || wanted <= available;
  const auto [given, failure] = enough_free ? device_.allocate_host(bytes, alignment) : Allocation{};
  if (failure)
    return device_.error_of("host memory of " + std::to_string(bytes) + " bytes for offloaded tensors",
                            failure);
  HostMemory memory(static_cast<std::byte*>(given), HostRelease{&device_, bytes});
  if (!memory) {
    Error e = out_of_memory("offloaded tensors need " + std::to_string(bytes) + " bytes of host memory" +
                                refusal(enough_free, by_host, wanted, available),
                            wanted, available);
    if (device_.is_cuda()) e.code = Code::host_out_of_memory;
    return e;
  }
  if (!is_aligned(memory.get())) return not_aligned();
  return memory;
}

Status TrainerMemory::take(uint64_t arena_bytes, uint64_t host_bytes, void* brought, uint64_t brought_bytes) {
  if (brought) {
    arena_bytes_ = brought_bytes;
    STW_TRY(check_size(arena_bytes));
    if (!is_aligned(brought))
      return Error{Code::bad_argument, "trainer: the host's arena must be aligned to 256 bytes"};
    arena_ = static_cast<std::byte*>(brought);
  }
  // On a CPU both are the same memory.
  const bool shared = !device_.is_cuda();
  const uint64_t both = size_add(brought ? 0 : arena_bytes, host_bytes);
  if (!brought) {
    STW_ASSIGN(arena, allocate_arena(arena_bytes, shared ? both : arena_bytes));
    arena_ = arena;
    arena_bytes_ = arena_bytes;
    owns_arena_ = true;
  }
  if (host_bytes > 0) {
    STW_ASSIGN(host, allocate_host_memory(host_bytes, shared ? both : host_bytes));
    host_ = std::move(host);
  }
  return ok();
}

Status TrainerMemory::reallocate_arena(uint64_t bytes) {
  STW_ASSIGN(arena, allocate_arena(bytes, bytes));
  arena_ = arena, arena_bytes_ = bytes, owns_arena_ = true;
  return ok();
}

Result<HostMemory> TrainerMemory::take_host(uint64_t bytes, uint64_t arena_bytes) const {
  if (bytes == 0) return HostMemory();
  const uint64_t more = owns_arena_ && arena_bytes > arena_bytes_ ? arena_bytes - arena_bytes_ : 0;
  return allocate_host_memory(bytes, size_add(bytes, device_.is_cuda() ? 0 : more));
}

Status TrainerMemory::check_size(uint64_t bytes) const {
  if (owns_arena_ || bytes <= arena_bytes_) return ok();
  return out_of_memory("the host's arena has " + std::to_string(arena_bytes_) + " bytes, the plan needs " +
                           std::to_string(bytes),
                       bytes, arena_bytes_);
}

Resized TrainerMemory::resize(uint64_t bytes, uint64_t kept) {
  void* memory = arena_;
  const Resized resized = device_.resize(memory, arena_bytes_, bytes, kept, alignment);
  if (resized.has_new_size) arena_bytes_ = bytes;
  arena_ = static_cast<std::byte*>(memory);
  owns_arena_ = arena_ != nullptr;
  return resized;
}

std::optional<Shortage> TrainerMemory::grow(uint64_t bytes, uint64_t kept) {
  if (bytes <= arena_bytes_) return std::nullopt;
  assert(owns_arena_ && "what check_size says");
  const auto [available, unknown] = device_.memory_free();
  const uint64_t more = bytes - arena_bytes_;
  const bool enough_free = has_room(more, available);
  if (unknown || !enough_free) return Shortage{enough_free, more, available, unknown};
  const Resized resized = resize(bytes, kept);
  if (resized.has_new_size) return std::nullopt;
  return Shortage{enough_free, more, available, resized.failure};
}

Error TrainerMemory::shortage_error(const Shortage& s) const {
  const std::string lost =
      arena_ ? "" : "; it could not get its old memory back either: a restore allocates it again";
  if (s.failure) {
    Error e = device_.error_of("an arena larger by " + std::to_string(s.wanted) + " bytes", s.failure);
    if (e.code != Code::device_lost) e.message += lost;
    return e;
  }
  return out_of_memory("the arena needs " + std::to_string(s.wanted) + " bytes more" +
                           refusal(s.enough_free, device_.has_allocator(), s.wanted, s.available) +
                           (s.enough_free ? "" : holders()) + lost,
                       s.wanted, s.available);
}

int32_t TrainerMemory::shrink(uint64_t bytes, uint64_t kept) {
  return owns_arena_ && bytes < arena_bytes_ ? resize(bytes, kept).failure : 0;
}

}  // namespace stw
