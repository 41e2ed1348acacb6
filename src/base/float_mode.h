// The floating-point mode of a thread. The host's mode may differ from ours: a library built with -ffast-math
// flushes denormals to zero, and a host may choose another rounding mode. Results would then have other bits.
#pragma once
#include <cstdint>

namespace stw {

// While it lives, the calling thread rounds to nearest, keeps denormals and traps no exception. Afterwards
// its mode is restored. On processors other than x86-64 and AArch64 it does nothing.
class FloatMode {
 public:
  FloatMode(const FloatMode&) = delete;

#if defined(__x86_64__)
  FloatMode() {
    asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(vector_), "=m"(x87_) : : "memory");
    set(0x1f80, 0x037f);
  }
  ~FloatMode() { set(vector_, x87_); }

 private:
  // x87: C libraries take the rounding mode from there when they read and write numbers.
  static void set(uint32_t vector, uint16_t x87) {
    asm volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(vector), "m"(x87) : "memory");
  }
  uint32_t vector_;
  uint16_t x87_;
#elif defined(__aarch64__)
  FloatMode() {
    asm volatile("mrs %0, fpcr" : "=r"(control_) : : "memory");
    set(0);
  }
  ~FloatMode() { set(control_); }

 private:
  static void set(uint64_t control) { asm volatile("msr fpcr, %0" : : "r"(control) : "memory"); }
  uint64_t control_;
#else
  FloatMode() {}
  ~FloatMode() {}
#endif
};

}  // namespace stw
