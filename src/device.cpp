#include "src/device.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "src/file.h"

namespace stw {

namespace {

// The start of a file of the kernel's, which says that it has no bytes; empty where there is none.
std::string proc_text(const char* path) {
  std::string text(16384, 0);
  const Descriptor file(::open(path, O_RDONLY | O_CLOEXEC));
  const ssize_t n = file.get() < 0 ? 0 : ::read(file.get(), text.data(), text.size());
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

// A line "Key: value kB" of /proc/meminfo, in bytes; 0 where there is none.
uint64_t meminfo(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return 0;
  return std::strtoull(text.data() + at + key.size(), nullptr, 10) * 1024;
}

// The number that a file holds; 0 where it holds none ("max").
uint64_t number_in(const char* path) { return std::strtoull(proc_text(path).c_str(), nullptr, 10); }

std::string processor_name() {
  const std::string text = proc_text("/proc/cpuinfo");
  const size_t at = text.find("model name");
  const size_t colon = at == std::string::npos ? at : text.find(": ", at);
  return colon == std::string::npos ? "CPU" : text.substr(colon + 2, text.find('\n', colon) - colon - 2);
}

}  // namespace

int processor_count() { return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, ThreadPool::max_threads); }

Result<std::unique_ptr<Device>> Device::open(const DeviceOptions& options) {
  auto device = std::make_unique<Device>();
  device->options_ = options;
  if (options.threads == 0) device->options_.threads = processor_count();
  if (options.threads < 0 || options.threads > ThreadPool::max_threads)
    return Error{Code::bad_argument, "device: expected at most " + std::to_string(ThreadPool::max_threads) + " threads"};
  if ((options.allocate == nullptr) != (options.release == nullptr))
    return Error{Code::bad_argument, "device: allocate and release must be given together"};
  if (options.choose_isa) device->options_.isa = kernels::best_isa();
  device->table_ = kernels::cpu_table(device->options_.isa);
  if (!device->table_) return Error{Code::unsupported, "device: this build or processor lacks the instruction set asked for"};
  return device;
}

DeviceInfo Device::info() const {
  DeviceInfo info;
  info.name = processor_name();
  info.threads = options_.threads;
  info.isa = options_.isa;
  const std::string text = proc_text("/proc/meminfo");
  info.memory_total = meminfo(text, "MemTotal:");
  info.memory_free = meminfo(text, "MemAvailable:");
  // A container may have less than its machine (control groups, version 2).
  const uint64_t limit = number_in("/sys/fs/cgroup/memory.max"), used = number_in("/sys/fs/cgroup/memory.current");
  if (limit > 0 && limit < info.memory_total) {
    info.memory_total = limit;
    info.memory_free = std::min(info.memory_free, limit > used ? limit - used : 0);
  }
  if (info.memory_total == 0) {
    info.memory_total = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    info.memory_free = info.memory_total;
  }
  return info;
}

Result<std::unique_ptr<ThreadPool>> Device::make_pool(int threads) const {
  threads = std::min(threads, options_.threads);
  if (options_.run) return ThreadPool::create(threads, options_.run, options_.run_user);
  return ThreadPool::create(threads);
}

// Own memory comes in pages of the system, which can change their number without a copy.
void* Device::allocate(size_t bytes, size_t alignment) const {
  if (options_.allocate) return options_.allocate(options_.memory_user, bytes, alignment, nullptr);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void Device::release(void* memory, size_t bytes) const {
  if (!memory) return;
  if (options_.release) options_.release(options_.memory_user, memory, bytes, nullptr);
  else ::munmap(memory, bytes);
}

void* Device::resize(void* memory, size_t old_bytes, size_t bytes, size_t alignment) const {
#ifdef __linux__
  if (!options_.allocate) {
    void* moved = ::mremap(memory, old_bytes, bytes, MREMAP_MAYMOVE);
    return moved == MAP_FAILED ? nullptr : moved;
  }
#endif
  void* other = allocate(bytes, alignment);
  if (!other) return nullptr;
  if (reinterpret_cast<uintptr_t>(other) % alignment != 0) {
    release(other, bytes);
    return nullptr;
  }
  std::memcpy(other, memory, std::min(old_bytes, bytes));
  release(memory, old_bytes);
  return other;
}

void Device::log(int32_t level, const char* component, const char* message) const {
  if (level > options_.log_level) return;
  {
    std::lock_guard lock(log_mutex_);
    LogMessage& kept = kept_[++logged_ % kept_.size()];
    kept.number = logged_;
    kept.level = level;
    std::snprintf(kept.component, sizeof kept.component, "%s", component);
    std::snprintf(kept.text, sizeof kept.text, "%s", message);
  }
  if (options_.log) options_.log(options_.log_user, level, component, message);
}

LogMessage Device::next_log(uint64_t after) const {
  std::lock_guard lock(log_mutex_);
  if (after >= logged_) return {};
  const uint64_t oldest = logged_ > kept_.size() ? logged_ - kept_.size() + 1 : 1;
  return kept_[std::max(after + 1, oldest) % kept_.size()];
}

}  // namespace stw
