// The device of gpu_probe: its own memory (cudaMalloc), which is poisoned before a kernel writes it; random
// numbers on both host and device; and timed calls of kernels.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/contract/kernels.h"
#include "tests/gpu/probe/report.h"

namespace stw::probe {

using kernels::DType;
using kernels::ProductKernels;

bool has_device();
void choose_device();      // the first device; creates its context
bool has_warpgroups();     // kernels for compute capability 9.0, unless they are forbidden
void forbid_warpgroups();  // for this process: has_warpgroups() is false from now on
void check(cudaError_t status, const char* what);  // throws an error
void finish(const char* what);                     // waits until all launched work has ended

// Device-only memory. A guard follows it, which no kernel may change.
class Memory {
 public:
  Memory() = default;
  explicit Memory(uint64_t bytes);
  explicit Memory(std::span<const std::byte> contents);
  ~Memory();
  Memory(Memory&& other) noexcept : data_(other.data_), bytes_(other.bytes_) { other.data_ = nullptr; }
  Memory& operator=(Memory&& other) noexcept {
    std::swap(data_, other.data_), std::swap(bytes_, other.bytes_);
    return *this;
  }
  template <class T>
  static Memory of(const std::vector<T>& values) {
    return Memory(std::as_bytes(std::span(values)));
  }

  std::byte* data() const { return data_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }
  uint64_t bytes() const { return bytes_; }
  // Sets every byte to 0xff: NaN in all formats, and no code or token that a kernel writes.
  void poison();
  void fill(const Memory& from, uint64_t begin);  // copies `from` repeatedly into the memory from `begin` on
  template <class T>
  std::vector<T> values(uint64_t count, uint64_t first = 0) const {
    std::vector<T> result(count);
    copy_to_host(result.data(), count * sizeof(T), first * sizeof(T));
    return result;
  }
  bool is_guard_whole() const;

 private:
  void copy_to_host(void* to, uint64_t bytes, uint64_t first) const;
  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
};

// Normal numbers in bf16, the same on host and device. Operands are slices of them.
class Noise {
 public:
  explicit Noise(uint64_t count);
  const uint16_t* device(uint64_t first, uint64_t count) const;  // throws if there are not that many
  const uint16_t* host(uint64_t first) const { return host_.data() + first; }
  const Memory& memory() const { return device_; }

 private:
  std::vector<uint16_t> host_;
  Memory device_;
};

inline float float_of(uint16_t bf16) { return __builtin_bit_cast(float, static_cast<uint32_t>(bf16) << 16); }
uint16_t bf16_of(float value);  // rounds to nearest, ties to even
uint64_t random_bits(uint64_t& state);

// Calls kernels. Their scratch memory has exactly the bytes that they ask for. It is poisoned, and a guard
// follows it.
class Calls {
 public:
  const kernels::ProductLibrary* products = nullptr;
  const kernels::AttentionLibrary* attention = nullptr;
  const kernels::Table& table = *kernels::cuda_table();

  template <class Args>
  void run(void (*kernel)(const kernels::Launch&, const Args&), const Args& args, uint64_t workspace,
           const char* what) {
    prepare(workspace);
    kernel({nullptr, workspace_.data(), workspace, nullptr, products, attention}, args);
    finish(what);
    if (!workspace_.is_guard_whole()) throw_overrun(what);
  }
  // Seconds of one call. The memory keeps the results of the last call.
  template <class Args>
  double seconds(void (*kernel)(const kernels::Launch&, const Args&), const Args& args, uint64_t workspace,
                 const char* what, bool small) {
    prepare(workspace);
    return seconds_of(
        [&] {
          kernel({nullptr, workspace_.data(), workspace, nullptr, products, attention}, args);
        },
        what, small);
  }
  // Times the work that `call` launches into the default stream: one warm-up, then repetitions for about 10
  // ms.
  static double seconds_of(const std::function<void()>& call, const char* what, bool small);

 private:
  void prepare(uint64_t workspace);
  [[noreturn]] static void throw_overrun(const char* what);
  Memory workspace_;
};

// Error of values against a reference: the largest difference, relative to the largest reference, and whether
// each value is within its limit.
struct Error {
  double largest = 0, scale = 0;
  bool within = true;
  void add(double value, double reference, double limit);  // limit: for the difference
  double relative() const { return scale > 0 ? largest / scale : largest; }
};
// Limit for the error of a bf16 result: rounding to bf16, plus the error of `depth` products in sums up to
// `scale`, which tensor cores truncate.
inline double bf16_limit(double reference, double scale, int64_t depth) {
  const double sums = 3e-9 * static_cast<double>(depth);
  return (reference < 0 ? -reference : reference) * 0x1p-8 + (sums > 2e-5 ? sums : 2e-5) * scale;
}

// Number of elements that should have been written but are still poisoned.
uint64_t poisoned(std::span<const uint16_t> values);
uint64_t poisoned(std::span<const float> values);

// TFLOP/s, or TB/s, compared with the card's own peak.
std::string rate_of_product(double flops, double seconds, const Peaks& peaks);
std::string rate_of_bytes(double bytes, double seconds, const Peaks& peaks, double expected_share);

}  // namespace stw::probe
