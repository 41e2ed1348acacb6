// A device that a host opened: whose memory, which threads, which instruction set, who is told.
#pragma once
#include <cstddef>
#include <array>
#include <memory>
#include <mutex>
#include <string>

#include "kernels/kernels.h"
#include "planner/result.h"
#include "src/thread_pool.h"

namespace stw {

struct DeviceInfo {
  std::string name;
  uint64_t memory_total = 0, memory_free = 0;   // bytes
  int threads = 1;
  kernels::Isa isa = kernels::Isa::scalar;
};

struct DeviceOptions {
  int threads = 0;                              // 0: one for each processor
  bool choose_isa = true;
  kernels::Isa isa = kernels::Isa::scalar;
  void (*log)(void* user, int32_t level, const char* component, const char* message) = nullptr;
  void* log_user = nullptr;
  int32_t log_level = 2;
  void* (*allocate)(void* user, size_t bytes, size_t alignment, void* stream) = nullptr;
  void (*release)(void* user, void* memory, size_t bytes, void* stream) = nullptr;
  void* memory_user = nullptr;
  host_run run = nullptr;
  void* run_user = nullptr;
};

struct LogMessage {
  uint64_t number = 0;   // from 1; 0: none
  int32_t level = 0;
  char component[32] = {}, text[224] = {};
};

int processor_count();

class Device {
 public:
  static Result<std::unique_ptr<Device>> open(const DeviceOptions& options);
  DeviceInfo info() const;
  int threads() const { return options_.threads; }
  const kernels::Table& table() const { return *table_; }
  // At most this many threads of the device: its own, or the host's.
  Result<std::unique_ptr<ThreadPool>> make_pool(int threads) const;
  bool has_allocator() const { return options_.allocate != nullptr; }
  // Memory for one arena, or null.
  void* allocate(size_t bytes, size_t alignment) const;
  void release(void* memory, size_t bytes) const;
  // The same memory with another size, its contents kept as far as they fit; or null, and nothing has changed. The
  // device's own never takes more than the larger of both; a host's allocator is asked for the new before the old goes.
  void* resize(void* memory, size_t old_bytes, size_t bytes, size_t alignment) const;
  void log(int32_t level, const char* component, const char* message) const;
  // The oldest message kept with a larger number. Any thread.
  LogMessage next_log(uint64_t after) const;

 private:
  DeviceOptions options_;
  const kernels::Table* table_ = nullptr;
  mutable std::mutex log_mutex_;
  mutable std::array<LogMessage, 64> kept_;   // message n at n % 64
  mutable uint64_t logged_ = 0;
};

}  // namespace stw
