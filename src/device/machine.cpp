#include "src/device/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "src/device/control_group.h"
#include "src/files/file.h"

namespace stw {

namespace {

// The value of a line "Key: value kB" of /proc/meminfo, in bytes; 0 where there is no such line.
uint64_t meminfo(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return 0;
  return std::strtoull(text.data() + at + key.size(), nullptr, 10) * 1024;
}

ControlGroups control_groups() { return {kernel_text("/proc/self/cgroup"), "/sys/fs/cgroup"}; }

}  // namespace

std::string processor_name() {
  const std::string text = kernel_text("/proc/cpuinfo");
  const size_t at = text.find("model name");
  const size_t colon = at == std::string::npos ? at : text.find(": ", at);
  return colon == std::string::npos ? "CPU" : text.substr(colon + 2, text.find('\n', colon) - colon - 2);
}

SystemMemory system_memory() {
  SystemMemory m;
  const std::string text = kernel_text("/proc/meminfo");
  m.total = meminfo(text, "MemTotal:");
  m.available = meminfo(text, "MemAvailable:");
  if (m.total == 0) {
    m.total = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    m.available = m.total;
  }
  return control_groups().memory_within(m);
}

int processor_count() {
  int processors = static_cast<int>(std::thread::hardware_concurrency());  // of the machine
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) processors = CPU_COUNT(&allowed);
  return control_groups().processors_within(std::clamp(processors, 1, CPU_SETSIZE));
}

}  // namespace stw
