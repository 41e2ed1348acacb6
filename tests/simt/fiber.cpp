#include "tests/simt/fiber.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#if defined(SIMT_ADDRESS)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(SIMT_THREAD)
#include <sanitizer/tsan_interface.h>
#endif

namespace simt {

namespace {

constexpr size_t stack_bytes = 256 * 1024, page = 4096;

#if defined(__x86_64__)
// Saves the registers that a call must preserve, changes the stack, and continues there.
asm(R"(
.text
.local simt_change_stack
.type simt_change_stack, @function
simt_change_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size simt_change_stack, . - simt_change_stack
)");
extern "C" void simt_change_stack(void** from, void* to);
#endif

}  // namespace

SIMT_UNSEEN Fiber* make_fiber(void (*entry)()) {
  static size_t count = 0;
  // Shifts the top of the stack, so that the tops of all stacks do not fall on the same cache lines.
  const size_t shift = count++ % 16 * 256;
  void* memory = mmap(nullptr, stack_bytes + 2 * page, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::fprintf(stderr, "simt: no memory for a stack\n");
    std::abort();
  }
  mprotect(memory, page, PROT_NONE);
  Fiber* f = new Fiber;
  f->stack = static_cast<char*>(memory) + page;
  f->stack_bytes = stack_bytes;
#if defined(SIMT_THREAD)
  f->race_context = __tsan_create_fiber(0);
#endif
#if defined(__x86_64__)
  auto** top = reinterpret_cast<void**>(f->stack + stack_bytes - shift - 64);
  *--top = nullptr;  // Where entry() would return to. The stack is then aligned as after a call.
  *--top = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  f->top = top;
#else
  auto* context = new ucontext_t;
  getcontext(context);
  context->uc_stack.ss_sp = f->stack;
  context->uc_stack.ss_size = stack_bytes - shift;
  context->uc_link = nullptr;
  makecontext(context, entry, 0);
  f->top = context;
#endif
  return f;
}

#if defined(SIMT_ADDRESS)
namespace {
struct Stack {
  void* begin;
  size_t bytes;
};
Stack stack_of_thread() {
  pthread_attr_t attributes;
  Stack stack{};
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &stack.begin, &stack.bytes);
  pthread_attr_destroy(&attributes);
  return stack;
}
}  // namespace
#endif

void adopt_thread([[maybe_unused]] Fiber& fiber) {
#if defined(SIMT_ADDRESS)
  // Queried once: the system reads a file for it, which took as long as the kernels.
  static thread_local const Stack stack = stack_of_thread();
  fiber.stack = static_cast<char*>(stack.begin);
  fiber.stack_bytes = stack.bytes;
#endif
#if defined(SIMT_THREAD)
  fiber.race_context = __tsan_get_current_fiber();
#endif
#if !defined(__x86_64__)
  if (!fiber.top) fiber.top = new ucontext_t;
#endif
}

SIMT_UNSEEN void switch_fiber(Fiber& from, Fiber& to) {
#if defined(SIMT_ADDRESS)
  __sanitizer_start_switch_fiber(&from.fake_stack, to.stack, to.stack_bytes);
#endif
#if defined(SIMT_THREAD)
  __tsan_switch_to_fiber(to.race_context, 1 /* without an order between them */);
#endif
#if defined(__x86_64__)
  simt_change_stack(&from.top, to.top);
#else
  swapcontext(static_cast<ucontext_t*>(from.top), static_cast<ucontext_t*>(to.top));
#endif
#if defined(SIMT_ADDRESS)
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

void arrived_first_time() {
#if defined(SIMT_ADDRESS)
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
}

}  // namespace simt
