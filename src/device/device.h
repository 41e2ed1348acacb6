// A device that a host opened: whose memory, which threads, which instruction set, who is told. What differs between kinds
// of devices is behind this and Stream (src/cpu/cpu_device.cpp, src/cuda/).
#pragma once
#include <cstddef>
#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/contract/kernels.h"
#include "planner/base/result.h"
#include "src/device/stream.h"
#include "src/device/thread_pool.h"

namespace stw {

enum class Backend : uint8_t { automatic, cpu, cuda };

inline constexpr int32_t log_warning = 2;   // STW_LOG_WARNING: src/api asserts that both agree

struct DeviceInfo {
  Backend backend = Backend::cpu;
  std::string name;
  uint64_t memory_total = 0;                    // bytes
  int threads = 1;
  kernels::Isa isa = kernels::Isa::scalar;
  int compute_major = 0, compute_minor = 0;     // CUDA
};

struct DeviceOptions {
  Backend backend = Backend::cpu;
  int ordinal = 0;                              // of several CUDA devices
  void* stream = nullptr;                       // CUDA: the host's, or null
  std::string cublaslt, cudnn;                  // CUDA: paths of these libraries; empty: what the system finds
  int threads = 0;                              // 0: one for each processor
  bool choose_isa = true;
  kernels::Isa isa = kernels::Isa::scalar;
  void (*log)(void* user, int32_t level, const char* component, const char* message) = nullptr;
  void* log_user = nullptr;
  int32_t log_level = log_warning;
  void* (*allocate)(void* user, size_t bytes, size_t alignment, void* stream) = nullptr;
  void (*release)(void* user, void* memory, size_t bytes, void* stream) = nullptr;
  void* memory_user = nullptr;
  host_run run = nullptr;
  void* run_user = nullptr;
};

// A process, and what it holds of a device's memory.
struct MemoryHolder { uint64_t process, bytes; std::string name; };   // name: of the program, or nothing

struct LogMessage {
  uint64_t number = 0;   // from 1; 0: none
  int32_t level = 0;
  char component[32] = {}, text[224] = {};
};

class Device {
 public:
  static Result<std::unique_ptr<Device>> open(const DeviceOptions& options);
  virtual ~Device() = default;
  virtual DeviceInfo info() const = 0;
  // In bytes; 0 where that is unknown. A CUDA device that nobody uses yet gets a context to be asked.
  virtual uint64_t memory_free() const = 0;
  // Of a card's memory what has come into use beside an arena of so many bytes since the library made this process's context of
  // it: that, kernels, graphs (and whatever others took meanwhile). 0: unknown, also where the host made the context.
  virtual uint64_t memory_outside(uint64_t) const { return 0; }
  // Of a card's memory, the largest first, as far as the driver tells.
  virtual std::vector<MemoryHolder> memory_holders() const { return {}; }
  int ordinal() const { return options_.ordinal; }
  int threads() const { return options_.threads; }   // as they were asked for
  bool is_cuda() const { return options_.backend == Backend::cuda; }
  // False in a child that fork() made: its threads and its context are the parent's.
  bool is_of_this_process() const { return process_ == this_process(); }
  // At most this many threads of the device, where it has any.
  virtual Result<std::unique_ptr<Stream>> make_stream(int threads) const = 0;

  bool has_allocator() const { return options_.allocate != nullptr; }
  // Memory for one arena, or null.
  virtual void* allocate(size_t bytes, size_t alignment) const = 0;
  virtual void release(void* memory, size_t bytes) const = 0;
  // Gives the memory another size; of its contents so many bytes are kept, which both sizes have. False: it has its old size and
  // those, but may lie elsewhere; null where the device lost it. The device's own never takes more than the larger of both; a host's
  // allocator is asked for the new before the old goes.
  virtual bool resize(void*& memory, size_t old_bytes, size_t bytes, size_t kept, size_t alignment) const = 0;
  // Memory of the host that the device can copy from and to, or null; and what is there of it, 0 where that is unknown.
  virtual void* allocate_host(size_t bytes, size_t alignment) const = 0;
  virtual void release_host(void* memory, size_t bytes) const = 0;
  virtual uint64_t host_memory_free() const = 0;

  // The host's executor, or threads of its own; of a GPU for what the host's side computes.
  Result<std::unique_ptr<ThreadPool>> make_pool(int threads) const;

  void log(int32_t level, const char* component, const char* message) const;
  // The oldest message kept with a larger number. Any thread.
  LogMessage next_log(uint64_t after) const;

 protected:
  explicit Device(const DeviceOptions& options) : options_(options), process_(this_process()) {}
  static int64_t this_process();
  DeviceOptions options_;

 private:
  const int64_t process_;   // that opened it
  mutable std::mutex log_mutex_;
  mutable std::array<LogMessage, 64> kept_;   // message n at n % 64
  mutable uint64_t logged_ = 0;
};

Result<std::unique_ptr<Device>> open_cpu(const DeviceOptions& options);
// Errors: unsupported, which says why there is none: the build, the driver, the card.
Result<std::unique_ptr<Device>> open_cuda(const DeviceOptions& options);
// Those that can train here; none without a driver.
int cuda_device_count();
struct CudaPresence { bool is_built; std::string text; };   // text: what is there, or why nothing is, for people
CudaPresence cuda_presence();

}  // namespace stw
