// Replaces operator new, and without sanitizers also malloc, in the whole process, including the library. The
// executable's definitions take precedence over the C and C++ runtime's.
#include "tests/api/counting_allocator.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace stw::api_test {

std::atomic<uint64_t> allocations{0};
std::atomic<int64_t> live_objects{0};

namespace {
std::atomic<int64_t> until_failure{-1};  // negative: no failure
std::atomic<bool> fails_for_good{false}, has_failed{false};
}  // namespace

void fail_after(int64_t others, bool for_good) {
  has_failed = false;
  fails_for_good = for_good;
  until_failure = others;
}

bool end_of_failures() {
  until_failure = -1;
  fails_for_good = false;
  return has_failed;
}

}  // namespace stw::api_test

using namespace stw::api_test;

namespace {

void* allocate(size_t bytes, size_t alignment) {
  if (has_failed && fails_for_good) return nullptr;
  if (until_failure.load(std::memory_order_relaxed) >= 0 && until_failure.fetch_sub(1) == 0) {
    has_failed = true;
    return nullptr;
  }
  void* memory = alignment <= alignof(std::max_align_t)
                     ? std::malloc(bytes ? bytes : 1)
                     : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory) {
    ++live_objects;
#ifndef STW_COUNT_MALLOC
    ++allocations;
#endif
  }
  return memory;
}

void* allocate_or_throw(size_t bytes, size_t alignment) {
  if (void* memory = allocate(bytes, alignment)) return memory;
  throw std::bad_alloc();
}

void release(void* memory) {
  if (memory) --live_objects;
  std::free(memory);
}

size_t to_size(std::align_val_t alignment) { return static_cast<size_t>(alignment); }

}  // namespace

void* operator new(size_t n) { return allocate_or_throw(n, 1); }
void* operator new[](size_t n) { return allocate_or_throw(n, 1); }
void* operator new(size_t n, std::align_val_t a) { return allocate_or_throw(n, to_size(a)); }
void* operator new[](size_t n, std::align_val_t a) { return allocate_or_throw(n, to_size(a)); }
void* operator new(size_t n, const std::nothrow_t&) noexcept { return allocate(n, 1); }
void* operator new[](size_t n, const std::nothrow_t&) noexcept { return allocate(n, 1); }
void* operator new(size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(n, to_size(a));
}
void* operator new[](size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(n, to_size(a));
}
void operator delete(void* p) noexcept { release(p); }
void operator delete[](void* p) noexcept { release(p); }
void operator delete(void* p, size_t) noexcept { release(p); }
void operator delete[](void* p, size_t) noexcept { release(p); }
void operator delete(void* p, std::align_val_t) noexcept { release(p); }
void operator delete[](void* p, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { release(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { release(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { release(p); }

#ifdef STW_COUNT_MALLOC
// glibc's names of its own functions, for programs that replace them.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t n) { return ++allocations, __libc_malloc(n); }
void* calloc(size_t n, size_t m) { return ++allocations, __libc_calloc(n, m); }
void* realloc(void* p, size_t n) { return ++allocations, __libc_realloc(p, n); }
void* aligned_alloc(size_t a, size_t n) { return ++allocations, __libc_memalign(a, n); }
void* memalign(size_t a, size_t n) { return ++allocations, __libc_memalign(a, n); }
int posix_memalign(void** out, size_t a, size_t n) {
  ++allocations;
  *out = __libc_memalign(a, n);
  return *out ? 0 : 12;  // ENOMEM
}
}
#endif
