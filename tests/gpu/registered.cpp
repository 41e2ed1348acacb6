// Lets kernel tests for the CPU run unchanged on a real device: both host and device can access all memory of
// the process, including the stack of the thread that runs the tests. It is host memory that is locked and
// registered with the device (cudaHostRegister). Managed memory would not work, because its pages move. They
// could move in the middle of a system call that uses them, and a sandbox may not know about them.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>

#include "tests/kernels/device.h"

namespace {

constexpr size_t most_pool_bytes = size_t{1} << 30, least_pool_bytes = size_t{256} << 20,
                 stack_bytes = size_t{64} << 20, alignment = 256;

struct Free {
  Free* next;
};
char *pool = nullptr, *pool_end = nullptr, *pool_begin = nullptr;
Free* free_lists[64];
std::mutex pool_mutex;

int size_class_of(size_t bytes) { return std::bit_width((bytes < alignment ? alignment : bytes) - 1); }

// Sizes are powers of two. Freed memory is reused for the next request of its size. Before the pool exists,
// memory is the host's alone. When the pool is exhausted, allocation fails: a kernel with host-only memory
// would break the device for all later tests.
void* take(size_t bytes) {
  const size_t size = size_t{1} << size_class_of(bytes);
  std::lock_guard lock(pool_mutex);
  if (!pool_begin) return std::aligned_alloc(alignment, size);
  if (Free* f = free_lists[size_class_of(bytes)]) {
    free_lists[size_class_of(bytes)] = f->next;
    return f;
  }
  if (static_cast<size_t>(pool_end - pool) < size) return nullptr;
  char* memory = pool;
  pool += size;
  return memory;
}

// Memory for both host and device, or null.
char* registered(size_t bytes) {
  void* memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (cudaHostRegister(memory, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped) == cudaSuccess)
    return static_cast<char*>(memory);
  static_cast<void>(cudaGetLastError());
  munmap(memory, bytes);
  return nullptr;
}

// If STW_GUARDED is set, as under compute-sanitizer, buffers end at a page boundary, and the memory after
// them is not accessible to the device. A host-only page before the buffer holds its size.
bool guards = false;
constexpr size_t page = 4096, least_guarded = 256, most_guarded = size_t{64} << 20, guarded_alignment = 16;
// reserved address range for guarded pages
constexpr uintptr_t guarded_begin = uintptr_t{1} << 44, guarded_room = uintptr_t{1} << 40;
std::atomic<uintptr_t> guarded_end = guarded_begin;

size_t pages_of(size_t bytes) { return (bytes + page - 1) / page * page; }
void* take_guarded(size_t bytes) {
  const size_t rounded = (bytes + guarded_alignment - 1) / guarded_alignment * guarded_alignment,
               inside = pages_of(rounded);
  // Takes no lock because registering memory may allocate.
  // addresses are never reused, so a use after free is found too
  void* const wanted = reinterpret_cast<void*>(guarded_end.fetch_add(inside + 2 * page));
  void* const all = mmap(wanted, inside + 2 * page, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  char* const memory = static_cast<char*>(all) + page;
  if (all != wanted ||
      cudaHostRegister(memory, inside, cudaHostRegisterPortable | cudaHostRegisterMapped) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    munmap(all, inside + 2 * page);
    return nullptr;
  }
  *static_cast<size_t*>(all) = inside;
  mprotect(all, page, PROT_READ);  // some devices can access all host memory
  mprotect(memory + inside, page, PROT_NONE);
  return memory + (inside - rounded);
}
bool is_guarded(const void* p) { return reinterpret_cast<uintptr_t>(p) - guarded_begin < guarded_room; }
void give_back_guarded(void* p) {
  if (!guards) return;  // the process is ending, and the runtime has ended before
  char* all = reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(p) / page * page - page);
  const size_t inside = *reinterpret_cast<size_t*>(all);
  cudaHostUnregister(all + page);
  munmap(all, inside + 2 * page);
}

}  // namespace

static void* allocated(size_t bytes, bool guarded) {
  if (guarded && bytes >= least_guarded && bytes <= most_guarded) {
    if (void* memory = take_guarded(bytes)) return memory;
    throw std::bad_alloc();
  }
  // A word before the memory holds its size.
  constexpr size_t head = alignment;  // preserves the alignment
  void* memory = take(bytes + head);
  if (!memory) throw std::bad_alloc();
  *static_cast<size_t*>(memory) = bytes + head;
  return static_cast<char*>(memory) + head;
}

void* operator new(size_t bytes) { return allocated(bytes, guards); }
void operator delete(void* p) noexcept {
  if (!p) return;
  if (is_guarded(p)) return give_back_guarded(p);
  char* memory = static_cast<char*>(p) - alignment;
  std::lock_guard lock(pool_mutex);
  if (memory < pool_begin || memory >= pool_end) return std::free(memory);
  const int size_class = size_class_of(*reinterpret_cast<size_t*>(memory));
  auto* f = reinterpret_cast<Free*>(memory);
  f->next = free_lists[size_class];
  free_lists[size_class] = f;
}
void operator delete(void* p, size_t) noexcept { operator delete(p); }
void* operator new(size_t bytes, std::align_val_t wanted) {
  if (static_cast<size_t>(wanted) > alignment) throw std::bad_alloc();
  return allocated(bytes, guards && static_cast<size_t>(wanted) <= guarded_alignment);
}
void operator delete(void* p, std::align_val_t) noexcept { operator delete(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { operator delete(p); }

// The hooks of tests/kernels/cuda_device.cpp.
bool stw::kernels::test::emulated() { return false; }

int main(int count, char** words) {
  testing::InitGoogleTest(&count, words);
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("no CUDA device: these tests need one");
    return 77;  // skipped
  }
  int same_pointers = 0;
  cudaDeviceGetAttribute(&same_pointers, cudaDevAttrCanUseHostPointerForRegisteredMem, 0);
  if (!same_pointers) {
    std::puts(
        "this device has other addresses than the host for the host's memory: these tests need the same");
    return 77;
  }
  char *memory = nullptr, *const stack = registered(stack_bytes);
  size_t pool_bytes = most_pool_bytes;
  for (; stack && pool_bytes >= least_pool_bytes; pool_bytes /= 2)
    if ((memory = registered(pool_bytes))) break;
  if (!memory) {
    std::puts("the host's memory cannot be locked for the device");
    return 1;
  }
  {
    std::lock_guard lock(pool_mutex);
    pool = pool_begin = memory;
    pool_end = memory + pool_bytes;
  }
  guards = std::getenv("STW_GUARDED") != nullptr;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, stack_bytes);
  pthread_t thread;
  static int result = 1;
  if (pthread_create(
          &thread, &attributes,
          [](void*) -> void* {
            result = RUN_ALL_TESTS();
            return nullptr;
          },
          nullptr) != 0)
    return 1;
  pthread_join(thread, nullptr);
  guards = false;
  return result;
}
