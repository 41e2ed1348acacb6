// Shared by all kernel tests: threads, guarded workspaces, deterministic random data, comparisons.
// Independent of any kernel.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <span>
#include <thread>
#include <type_traits>
#include <vector>

#include "tests/kernels/device.h"

namespace stw::kernels::test {

// A blocking pool: the caller is thread 0, the others wait on a condition variable. Threads take the next
// free index, so the assignment differs from run to run.
class Threads {
 public:
  explicit Threads(int count) : parallel_{this, count, &Threads::run_tasks} {
    for (int thread = 1; thread < count; ++thread) pool_.emplace_back([this, thread] { serve(thread); });
  }
  ~Threads() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : pool_) thread.join();
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  const Parallel* parallel() const { return &parallel_; }

 private:
  using Task = void (*)(void* context, int64_t index, int thread);
  static void run_tasks(void* self, int64_t tasks, Task task, void* context) {
    static_cast<Threads*>(self)->run_all(tasks, task, context);
  }
  void run_all(int64_t tasks, Task task, void* context) {
    {
      std::lock_guard lock(mutex_);
      tasks_ = tasks, next_ = 0, task_ = task, context_ = context, busy_ = pool_.size();
      ++generation_;
    }
    wake_.notify_all();
    work(0);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
  }
  void work(int thread) {
    for (;;) {
      int64_t index;
      {
        std::lock_guard lock(mutex_);
        if (next_ >= tasks_) return;
        index = next_++;
      }
      task_(context_, index, thread);
    }
  }
  void serve(int thread) {
    uint64_t seen = 0;
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stop_ || generation_ != seen; });
        if (stop_) return;
        seen = generation_;
      }
      work(thread);
      std::lock_guard lock(mutex_);
      if (--busy_ == 0) done_.notify_one();
    }
  }

  Parallel parallel_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  int64_t tasks_ = 0, next_ = 0;
  Task task_ = nullptr;
  void* context_ = nullptr;
  size_t busy_ = 0;
  uint64_t generation_ = 0;
  bool stop_ = false;
  std::vector<std::thread> pool_;
};

// A list of one entry.
template <class Args>
List<Args> just(const Args& args) {
  return {&args, 1};
}

// Loading a vendor's library takes time and affects the process. Only tests that ask for the library load it.
template <class Args>
bool asks_for_library([[maybe_unused]] const Args& args) {
  if constexpr (requires { args.products; }) return may_use_library(args.products);
  else return false;
}
template <class Args>
Launch launch_of(const Args& args, const Threads& pool, void* workspace, uint64_t bytes) {
  constexpr bool attends = std::is_same_v<Args, AttentionArgs>;
  const bool asks = asks_for_library(args);
  return {pool.parallel(),
          workspace,
          bytes,
          nullptr,
          asks && !attends ? product_library() : nullptr,
          asks && attends ? attention_library() : nullptr};
}

// Calls a kernel with a workspace of exactly the given size, full of NaNs, and checks that nothing after it
// has changed.
template <class Args>
void run(void (*kernel)(const Launch&, const Args&), const Args& args, int threads,
         uint64_t workspace_bytes) {
  constexpr uint64_t guard = 256;
  workspace_bytes = workspace_for(reinterpret_cast<void (*)()>(kernel), &args, workspace_bytes);
  const uint64_t total = (workspace_bytes + guard + 63) / 64 * 64;
  std::vector<unsigned char> owner(total + 64);
  unsigned char* memory = owner.data() + (64 - reinterpret_cast<uintptr_t>(owner.data()) % 64) % 64;
  std::memset(memory, 0xff, workspace_bytes);
  std::memset(memory + workspace_bytes, 0xa5, total - workspace_bytes);
  {
    Threads pool(threads);
    kernel(launch_of(args, pool, memory, workspace_bytes), args);
    finish_kernels();
  }
  if (asks_for_library(args)) { EXPECT_EQ(library_error(), ""); }
  uint64_t changed = 0;
  for (uint64_t i = workspace_bytes; i < total; ++i) changed += memory[i] != 0xa5;
  EXPECT_EQ(changed, 0u) << "the kernel wrote past the end of its workspace of " << workspace_bytes
                         << " bytes";
}
template <class Args>
void run(void (*kernel)(const Launch&, const List<Args>&), const Args& args, int threads,
         uint64_t workspace_bytes) {
  run(kernel, just(args), threads, workspace_bytes);
}

// splitmix64 and Box-Muller: the same numbers with every standard library.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int64_t between(int64_t low, int64_t high) {  // Both inclusive.
    return low + static_cast<int64_t>(bits() % static_cast<uint64_t>(high - low + 1));
  }
  double uniform() { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53; }  // In (0, 1).
  double normal() { return std::sqrt(-2 * std::log(uniform())) * std::cos(6.283185307179586 * uniform()); }

 private:
  uint64_t state_;
};

inline std::vector<float> normals(Random& random, int64_t count, double deviation = 1) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(deviation * random.normal());
  return values;
}

// bf16: to nearest, ties to even. Independent of the code under test.
inline uint16_t bf16_of(float value) {
  uint32_t u;
  std::memcpy(&u, &value, 4);
  if (value != value) return static_cast<uint16_t>((u >> 16) | 0x40u);
  const uint32_t low = u & 0xffffu, high = u >> 16;
  return static_cast<uint16_t>(high + (low > 0x8000u || (low == 0x8000u && (high & 1u)) ? 1u : 0u));
}
inline float float_of_bf16(uint16_t half) {
  const uint32_t u = static_cast<uint32_t>(half) << 16;
  float value;
  std::memcpy(&value, &u, 4);
  return value;
}

// f16: rounds to a multiple of the distance between numbers of the same binade (2^-24 below 2^-14), ties to
// even. From 65520 on the result is infinite.
inline uint16_t f16_of(float value) {
  uint32_t u;
  std::memcpy(&u, &value, 4);
  const uint32_t sign = u >> 16 & 0x8000u;
  if (value != value) return static_cast<uint16_t>(sign | 0x7e00u | (u >> 13 & 0x3ffu));
  const double size = std::fabs(static_cast<double>(value));
  if (size >= 65520) return static_cast<uint16_t>(sign | 0x7c00u);
  const int exponent = size < 0x1p-14 ? -14 : std::ilogb(size);
  const auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  return static_cast<uint16_t>(sign | ((static_cast<uint32_t>(exponent + 14) << 10) + units));
}
inline float float_of_f16(uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  const float size = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                     : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                     : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return half & 0x8000 ? -size : size;
}

inline constexpr DType all_dtypes[] = {DType::f32, DType::bf16, DType::f16};
inline DType dtype_of(int64_t round) { return all_dtypes[round % 3]; }
inline const char* name_of(DType dtype) {
  return dtype == DType::f32 ? "f32" : dtype == DType::bf16 ? "bf16" : "f16";
}

// 1e-5, relative to the largest value, or the precision of a 16-bit output.
inline double tolerance(DType dtype) {
  return dtype == DType::f32 ? 1e-5 : dtype == DType::bf16 ? 1e-2 : 1e-3;
}

// Storage of any type for the `void*` of the kernels' arguments.
class Buffer {
 public:
  Buffer() = default;
  Buffer(DType dtype, int64_t count) : dtype_(dtype), bytes_(static_cast<size_t>(count * size())) {}
  Buffer(DType dtype, std::span<const float> values) : Buffer(dtype, static_cast<int64_t>(values.size())) {
    for (size_t i = 0; i < values.size(); ++i) set(static_cast<int64_t>(i), values[i]);
  }
  static Buffer normal(DType dtype, Random& random, int64_t count, double deviation = 1) {
    return Buffer(dtype, normals(random, count, deviation));
  }
  DType dtype() const { return dtype_; }
  int64_t count() const { return static_cast<int64_t>(bytes_.size()) / size(); }
  void* data() { return bytes_.data(); }
  const void* data() const { return bytes_.data(); }
  Matrix matrix() { return {data(), dtype_}; }
  ConstMatrix const_matrix() const { return {data(), dtype_}; }
  const std::vector<unsigned char>& bytes() const { return bytes_; }
  float get(int64_t i) const {
    if (dtype_ != DType::f32) {
      uint16_t half;
      std::memcpy(&half, bytes_.data() + 2 * i, 2);
      return dtype_ == DType::bf16 ? float_of_bf16(half) : float_of_f16(half);
    }
    float value;
    std::memcpy(&value, bytes_.data() + 4 * i, 4);
    return value;
  }
  void set(int64_t i, float value) {  // Rounds to the storage type.
    if (dtype_ == DType::f32) {
      std::memcpy(bytes_.data() + 4 * i, &value, 4);
    } else {
      const uint16_t half = dtype_ == DType::bf16 ? bf16_of(value) : f16_of(value);
      std::memcpy(bytes_.data() + 2 * i, &half, 2);
    }
  }
  std::vector<float> floats() const {
    std::vector<float> values(static_cast<size_t>(count()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = get(static_cast<int64_t>(i));
    return values;
  }

 private:
  int64_t size() const { return dtype_ == DType::f32 ? 4 : 2; }
  DType dtype_ = DType::f32;
  std::vector<unsigned char> bytes_;
};

// spread() moves rows further apart and puts past(column) into the gap after each row. columns_of() collects
// columns [first, end) of such rows.
template <class Past>
Buffer spread(const Buffer& rows, int64_t columns, int64_t stride, const Past& past) {
  Buffer apart(rows.dtype(), rows.count() / columns * stride);
  for (int64_t i = 0; i < apart.count(); ++i)
    apart.set(i, i % stride < columns ? rows.get(i / stride * columns + i % stride) : past(i % stride));
  return apart;
}
inline Buffer columns_of(const Buffer& apart, int64_t first, int64_t end, int64_t stride) {
  Buffer rows(apart.dtype(), apart.count() / stride * (end - first));
  for (int64_t i = 0; i < rows.count(); ++i)
    rows.set(i, apart.get(i / (end - first) * stride + first + i % (end - first)));
  return rows;
}

// max|value - reference| / max|reference|; infinite if a value is not finite.
template <class Value>
double relative_error(std::span<const Value> values, std::span<const double> reference) {
  if (values.size() != reference.size()) return INFINITY;
  double difference = 0, scale = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(static_cast<double>(values[i]))) return INFINITY;
    difference = std::fmax(difference, std::fabs(static_cast<double>(values[i]) - reference[i]));
    scale = std::fmax(scale, std::fabs(reference[i]));
  }
  return difference == 0 ? 0 : difference / scale;
}
inline double relative_error(const std::vector<float>& values, const std::vector<double>& reference) {
  return relative_error(std::span<const float>(values), std::span<const double>(reference));
}
inline double relative_error(const std::vector<double>& values, const std::vector<double>& reference) {
  return relative_error(std::span<const double>(values), std::span<const double>(reference));
}

template <class T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return same_bits(std::span<const T>(a), std::span<const T>(b));
}
inline bool same_bits(const Buffer& a, const Buffer& b) { return same_bits(a.bytes(), b.bytes()); }

inline std::vector<double> doubles(const Buffer& buffer) {
  const std::vector<float> values = buffer.floats();
  return {values.begin(), values.end()};
}

}  // namespace stw::kernels::test
