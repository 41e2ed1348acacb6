// A fiber: a stack and a place to continue. Known to the address and thread sanitizers.
#pragma once
#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMT_ADDRESS 1
#endif
#if __has_feature(thread_sanitizer)
#define SIMT_THREAD 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SIMT_ADDRESS 1
#endif
#if defined(__SANITIZE_THREAD__)
#define SIMT_THREAD 1
#endif

// The scheduler itself is not part of the program that is checked for races.
#if defined(SIMT_THREAD)
#define SIMT_UNSEEN __attribute__((no_sanitize("thread"), noinline))
#else
#define SIMT_UNSEEN
#endif

namespace simt {

struct Fiber {
  char* stack = nullptr;  // Its lowest byte.
  size_t stack_bytes = 0;
  void* top = nullptr;           // The saved stack pointer.
  void* fake_stack = nullptr;    // For the address sanitizer.
  void* race_context = nullptr;  // For the thread sanitizer.
};

// A new fiber that calls entry(), which never returns.
Fiber* make_fiber(void (*entry)());
// The fiber that stands for the calling thread of the process.
void adopt_thread(Fiber& fiber);
void switch_fiber(Fiber& from, Fiber& to);
// The first call of a fiber.
void arrived_first_time();

}  // namespace simt
