// The CPU as a device: its memory is the host's, and whatever it was asked is done when the call returns.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "src/device.h"
#include "src/execute.h"
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

struct Memory { uint64_t total = 0, available = 0; };

Memory system_memory() {
  Memory m;
  const std::string text = proc_text("/proc/meminfo");
  m.total = meminfo(text, "MemTotal:");
  m.available = meminfo(text, "MemAvailable:");
  // A container may have less than its machine (control groups, version 2).
  const uint64_t limit = number_in("/sys/fs/cgroup/memory.max"), used = number_in("/sys/fs/cgroup/memory.current");
  if (limit > 0 && limit < m.total) {
    m.total = limit;
    m.available = std::min(m.available, limit > used ? limit - used : 0);
  }
  if (m.total == 0) {
    m.total = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    m.available = m.total;
  }
  return m;
}

class CpuStream : public Stream {
 public:
  CpuStream(const kernels::Table& table, std::unique_ptr<ThreadPool> pool) : table_(table), pool_(std::move(pool)) {}
  void bind(Execution& execution) const override {
    execution.table = &table_;
    execution.parallel = pool_->parallel();
  }
  std::byte* on_host(std::byte* memory) const override { return memory; }
  void upload(void* to, const void* from, uint64_t bytes) override { std::memcpy(to, from, bytes); }
  Status download(void* to, const void* from, uint64_t bytes) override {
    std::memcpy(to, from, bytes);
    return ok();
  }
  void zero(void* to, uint64_t bytes) override { std::memset(to, 0, bytes); }
  void move(void* to, const void* from, uint64_t bytes) override { std::memmove(to, from, bytes); }
  Status prepare(const Execution&, const Program&) override { return ok(); }
  Status run(const Execution& execution, const Program& program) override {
    execute(execution, program);
    return ok();
  }
  Status run_timed(const Execution& execution, const Program& program, float* seconds) override {
    execute_timed(execution, program, seconds);
    return ok();
  }
  void forget() override {}
  Status wait() override { return ok(); }

 private:
  const kernels::Table& table_;
  std::unique_ptr<ThreadPool> pool_;
};

class CpuDevice : public Device {
 public:
  CpuDevice(const DeviceOptions& options, const kernels::Table& table) : Device(options), table_(table) {}

  DeviceInfo info() const override {
    DeviceInfo info;
    const Memory memory = system_memory();
    info.name = processor_name();
    info.memory_total = memory.total;
    info.memory_free = memory.available;
    info.threads = options_.threads;
    info.isa = options_.isa;
    return info;
  }

  Result<std::unique_ptr<Stream>> make_stream(int threads) const override {
    threads = std::min(threads, options_.threads);
    auto pool = options_.run ? ThreadPool::create(threads, options_.run, options_.run_user) : ThreadPool::create(threads);
    if (!pool) return std::move(pool.error());
    return std::unique_ptr<Stream>(std::make_unique<CpuStream>(table_, std::move(*pool)));
  }

  // Own memory comes in pages of the system, which can change their number without a copy.
  void* allocate(size_t bytes, size_t alignment) const override {
    if (options_.allocate) return options_.allocate(options_.memory_user, bytes, alignment, nullptr);
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : memory;
  }
  void release(void* memory, size_t bytes) const override {
    if (!memory) return;
    if (options_.release) options_.release(options_.memory_user, memory, bytes, nullptr);
    else ::munmap(memory, bytes);
  }
  bool resize(void*& memory, size_t old_bytes, size_t bytes, size_t alignment) const override {
#ifdef __linux__
    if (!options_.allocate) {
      void* moved = ::mremap(memory, old_bytes, bytes, MREMAP_MAYMOVE);
      if (moved == MAP_FAILED) return false;
      memory = moved;
      return true;
    }
#endif
    void* other = allocate(bytes, alignment);
    if (!other) return false;
    if (reinterpret_cast<uintptr_t>(other) % alignment != 0) {
      release(other, bytes);
      return false;
    }
    std::memcpy(other, memory, std::min(old_bytes, bytes));
    release(memory, old_bytes);
    memory = other;
    return true;
  }
  void* allocate_host(size_t bytes, size_t alignment) const override { return allocate(bytes, alignment); }
  void release_host(void* memory, size_t bytes) const override { release(memory, bytes); }
  uint64_t host_memory_free() const override { return system_memory().available; }

 private:
  const kernels::Table& table_;
};

}  // namespace

int processors_within(const std::string& quota, int processors) {
  char* period_text = nullptr;
  const uint64_t time = std::strtoull(quota.c_str(), &period_text, 10), period = std::strtoull(period_text, nullptr, 10);
  if (time == 0 || period == 0) return processors;
  return static_cast<int>(std::clamp<uint64_t>((time + period / 2) / period, 1, static_cast<uint64_t>(processors)));
}

int processor_count() {
  int processors = static_cast<int>(std::thread::hardware_concurrency());   // of the machine
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) processors = CPU_COUNT(&allowed);
  return processors_within(proc_text("/sys/fs/cgroup/cpu.max"), std::clamp(processors, 1, ThreadPool::max_threads));
}

uint64_t system_memory_free() { return system_memory().available; }

Result<std::unique_ptr<Device>> open_cpu(const DeviceOptions& options) {
  DeviceOptions chosen = options;
  if (options.threads == 0) chosen.threads = processor_count();
  if (options.choose_isa) chosen.isa = kernels::best_isa();
  const kernels::Table* table = kernels::cpu_table(chosen.isa);
  if (!table) return Error{Code::unsupported, "device: this build or processor lacks the instruction set asked for"};
  return std::unique_ptr<Device>(std::make_unique<CpuDevice>(chosen, *table));
}

}  // namespace stw

