#include "src/device/device.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "planner/base/utf8.h"
#include "src/base/float_mode.h"

namespace stw {

namespace {

// Copies as much of a text as fits, in whole characters, and fills the rest with 0.
template <size_t n>
void put(char (&to)[n], std::string_view text) {
  std::fill(std::copy_n(text.begin(), utf8_fitting(text, n - 1), to), to + n, '\0');
}

}  // namespace

Error Device::error_of(const std::string& what, int32_t failure) const {
  return {Code::device_error, what, failure};
}

int64_t Device::this_process() { return ::getpid(); }

Result<std::unique_ptr<Device>> Device::open(const DeviceOptions& options) {
  if (options.threads < 0 || options.threads > ThreadPool::max_threads)
    return Error{Code::bad_argument,
                 "device: expected at most " + std::to_string(ThreadPool::max_threads) + " threads"};
  if ((options.allocate == nullptr) != (options.release == nullptr))
    return Error{Code::bad_argument, "device: allocate and release must be given together"};
  DeviceOptions chosen = options;
  if (chosen.backend == Backend::automatic) {
    chosen.backend = Backend::cuda;
    // If the card is too old, use the CPU.
    if (cuda_device_count() > 0) {
      auto device = open_cuda(chosen);
      if (device || device.error().code != Code::unsupported) return device;
    }
    chosen.backend = Backend::cpu;
  }
  return chosen.backend == Backend::cuda ? open_cuda(chosen) : open_cpu(chosen);
}

Result<std::unique_ptr<ThreadPool>> Device::make_pool(int threads) const {
  return options_.run ? ThreadPool::create(threads, options_.run, options_.run_user)
                      : ThreadPool::create(threads);
}

void Device::log(int32_t level, const char* component, const char* message) const {
  if (level > options_.log_level) return;
  {
    std::lock_guard lock(log_mutex_);
    LogMessage& kept = kept_[++logged_ % kept_.size()];
    kept.number = logged_;
    kept.level = level;
    put(kept.component, component);
    put(kept.text, message);
  }
  const FloatMode mode;  // restores the mode after the callback
  if (options_.log) options_.log(options_.log_user, level, component, message);
}

LogMessage Device::next_log(uint64_t after) const {
  std::lock_guard lock(log_mutex_);
  if (after >= logged_) return {};
  const uint64_t oldest = logged_ > kept_.size() ? logged_ - kept_.size() + 1 : 1;
  return kept_[std::max(after + 1, oldest) % kept_.size()];
}

}  // namespace stw
