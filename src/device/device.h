// A device that a host opened: its allocator, threads, instruction set and log. Kinds of devices are
// implementations of this class and of Stream (src/cpu/cpu_device.cpp, src/cuda/).
#pragma once
#include <array>
#include <cstddef>
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

// The value of STW_LOG_WARNING. src/api/device.cpp does not compile if the two differ.
inline constexpr int32_t log_warning = 2;

struct DeviceInfo {
  Backend backend = Backend::cpu;
  std::string name;
  uint64_t memory_total = 0;  // bytes
  int threads = 1;
  kernels::Isa isa = kernels::Isa::scalar;
  int compute_major = 0, compute_minor = 0;  // CUDA
};

struct DeviceOptions {
  Backend backend = Backend::cpu;
  int ordinal = 0;              // index among several CUDA devices
  void* stream = nullptr;       // CUDA: the host's stream, or null
  std::string cublaslt, cudnn;  // CUDA: paths of these libraries; empty: the system's search path
  int threads = 0;              // 0: one for each processor
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

// A process, and the bytes of a device's memory that it holds.
struct MemoryHolder {
  uint64_t process, bytes;
  std::string name;
};  // name: the program's; may be empty

struct LogMessage {
  uint64_t number = 0;  // from 1; 0: no message
  int32_t level = 0;
  char component[32] = {}, text[224] = {};
};

// `failure`: the device's error number (a cudaError_t), which Device::error_of() turns into an error. 0:
// none, so that a null pointer means too little memory. Numbers, because the message of an Error allocates.
struct Allocation {
  void* memory = nullptr;
  int32_t failure = 0;
};
struct FreeMemory {
  uint64_t bytes = 0;  // 0: unknown
  int32_t failure = 0;
};
struct Resized {
  bool has_new_size = false;
  int32_t failure = 0;
};

class Device {
 public:
  static Result<std::unique_ptr<Device>> open(const DeviceOptions& options);
  virtual ~Device() = default;
  virtual DeviceInfo info() const = 0;
  // The error with this number of the device. `what`: the failed action.
  virtual Error error_of(const std::string& what, int32_t failure) const;
  // The query makes a context on a CUDA device where this process has none.
  virtual FreeMemory memory_free() const = 0;
  // The growth in bytes of the card's memory use since just before the library made this process's context.
  // The argument, the bytes of an arena, is subtracted. The rest is the context, kernels and graphs, and
  // memory that other processes took meanwhile. 0: unknown. It is always unknown where the host made the
  // context.
  virtual uint64_t memory_outside(uint64_t) const { return 0; }
  // Processes that hold the card's memory, the largest first; only those that the driver reports.
  virtual std::vector<MemoryHolder> memory_holders() const { return {}; }
  int ordinal() const { return options_.ordinal; }
  int threads() const { return options_.threads; }  // the number asked for
  bool is_cuda() const { return options_.backend == Backend::cuda; }
  // False in a child after fork(): threads and context belong to the parent.
  bool is_of_this_process() const { return process_ == this_process(); }
  // Uses at most `threads` threads of the device, if it has threads.
  virtual Result<std::unique_ptr<Stream>> make_stream(int threads) const = 0;

  bool has_allocator() const { return options_.allocate != nullptr; }
  // Memory for one arena.
  virtual Allocation allocate(size_t bytes, size_t alignment) const = 0;
  virtual void release(void* memory, size_t bytes) const = 0;
  // Changes the size of the memory and keeps its first `kept` bytes. `kept` is at most the smaller size.
  // Without the new size, `memory` has the old one and still holds these bytes, but may have moved; it is
  // null if the device lost it. Without a host's allocator, the device never holds more than the
  // larger of both sizes. A host's allocator must give the new memory before the old is released.
  virtual Resized resize(void*& memory, size_t old_bytes, size_t bytes, size_t kept,
                         size_t alignment) const = 0;
  // Host memory that the device can copy from and to. host_memory_free(): bytes, 0 if unknown.
  virtual Allocation allocate_host(size_t bytes, size_t alignment) const = 0;
  virtual void release_host(void* memory, size_t bytes) const = 0;
  virtual uint64_t host_memory_free() const = 0;

  // A pool on the host's executor if the device has one, otherwise on new threads. With a GPU, the pool runs
  // the work that stays on the CPU, such as drawing initial weights.
  Result<std::unique_ptr<ThreadPool>> make_pool(int threads) const;

  void log(int32_t level, const char* component, const char* message) const;
  // The oldest message in the log with a number above `after`. Any thread.
  LogMessage next_log(uint64_t after) const;

 protected:
  explicit Device(const DeviceOptions& options) : options_(options), process_(this_process()) {}
  static int64_t this_process();
  DeviceOptions options_;

 private:
  const int64_t process_;  // the process that opened it
  mutable std::mutex log_mutex_;
  mutable std::array<LogMessage, 64> kept_;  // message n is at n % 64
  mutable uint64_t logged_ = 0;
};

Result<std::unique_ptr<Device>> open_cpu(const DeviceOptions& options);
// Errors: unsupported, with the reason: the build, the driver or the card.
Result<std::unique_ptr<Device>> open_cuda(const DeviceOptions& options);
// The devices that the driver offers; 0 without a driver.
int cuda_device_count();
// text: the devices, or the reason that there are none, for a message
struct CudaPresence {
  bool is_built;
  std::string text;
};
CudaPresence cuda_presence();

}  // namespace stw
