// The machine as the operating system reports it, and the part of it that affinity and control groups leave
// to this process.
#pragma once
#include <cstdint>
#include <string>

namespace stw {

std::string processor_name();

// Processors that this process may use at once.
int processor_count();

struct SystemMemory {
  uint64_t total = 0, available = 0;
};  // bytes
SystemMemory system_memory();

}  // namespace stw
