#include "src/machine.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
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

}  // namespace

std::string processor_name() {
  const std::string text = proc_text("/proc/cpuinfo");
  const size_t at = text.find("model name");
  const size_t colon = at == std::string::npos ? at : text.find(": ", at);
  return colon == std::string::npos ? "CPU" : text.substr(colon + 2, text.find('\n', colon) - colon - 2);
}

SystemMemory system_memory() {
  SystemMemory m;
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
  return processors_within(proc_text("/sys/fs/cgroup/cpu.max"), std::clamp(processors, 1, CPU_SETSIZE));
}

}  // namespace stw
