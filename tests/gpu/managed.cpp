// Tests of kernels on a real device keep the bodies that they have for the CPU: all memory of the process, the stack of the
// thread that runs the tests included, is memory that both the host and the device can reach.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>

#include "tests/kernels/device.h"

namespace {

constexpr size_t pool_bytes = size_t{8} << 30, stack_bytes = size_t{64} << 20, alignment = 256;

struct Free { Free* next; };
char *pool = nullptr, *pool_end = nullptr, *pool_begin = nullptr;
Free* free_lists[64];
std::mutex pool_mutex;

// Sizes are powers of two; what is given back waits for the next one of its size.
void* take(size_t bytes) {
  const int size_class = std::bit_width((bytes < alignment ? alignment : bytes) - 1);
  std::lock_guard lock(pool_mutex);
  if (Free* f = free_lists[size_class]) {
    free_lists[size_class] = f->next;
    return f;
  }
  const size_t size = size_t{1} << size_class;
  if (!pool || static_cast<size_t>(pool_end - pool) < size) return nullptr;
  char* memory = pool;
  pool += size;
  return memory;
}

}  // namespace

// Memory from before the pool, and too large pieces, are the host's alone. A word before the memory says its size class.
void* operator new(size_t bytes) {
  constexpr size_t head = alignment;   // keeps the alignment
  void* memory = take(bytes + head);
  if (!memory) memory = std::aligned_alloc(alignment, (bytes + head + alignment - 1) / alignment * alignment);
  if (!memory) throw std::bad_alloc();
  *static_cast<size_t*>(memory) = bytes + head;
  return static_cast<char*>(memory) + head;
}
void operator delete(void* p) noexcept {
  if (!p) return;
  char* memory = static_cast<char*>(p) - alignment;
  if (memory < pool_begin || memory >= pool_end) return std::free(memory);
  const size_t bytes = *reinterpret_cast<size_t*>(memory);
  const int size_class = std::bit_width((bytes < alignment ? alignment : bytes) - 1);
  std::lock_guard lock(pool_mutex);
  auto* f = reinterpret_cast<Free*>(memory);
  f->next = free_lists[size_class];
  free_lists[size_class] = f;
}
void operator delete(void* p, size_t) noexcept { operator delete(p); }

// The machine of tests/kernels/cuda_device.cpp.
bool stw::kernels::test::emulated() { return false; }

int main(int count, char** words) {
  testing::InitGoogleTest(&count, words);
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("no CUDA device: these tests need one");
    return 77;   // skipped
  }
  int reaches_together = 0;
  cudaDeviceGetAttribute(&reaches_together, cudaDevAttrConcurrentManagedAccess, 0);
  if (!reaches_together) {   // as under Windows: the host may not touch managed memory while a kernel runs
    std::puts("the host and this device cannot use managed memory at the same time: these tests need that");
    return 77;
  }
  void *stack = nullptr, *memory = nullptr;
  if (cudaMallocManaged(&memory, pool_bytes, cudaMemAttachGlobal) != cudaSuccess ||
      cudaMallocManaged(&stack, stack_bytes, cudaMemAttachGlobal) != cudaSuccess) {
    std::puts("no managed memory");
    return 1;
  }
  {
    std::lock_guard lock(pool_mutex);
    pool_begin = static_cast<char*>(memory);
    pool_end = pool_begin + pool_bytes;
    pool = pool_begin;
  }
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, stack_bytes);
  pthread_t thread;
  static int result = 1;
  if (pthread_create(&thread, &attributes, [](void*) -> void* { result = RUN_ALL_TESTS(); return nullptr; }, nullptr) != 0) return 1;
  pthread_join(thread, nullptr);
  return result;
}
