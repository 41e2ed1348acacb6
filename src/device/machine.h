// What the operating system says of the machine, and of the part of it that this process may use: its affinity, its control groups.
#pragma once
#include <cstdint>
#include <string>

namespace stw {

std::string processor_name();

// That this process may use at once.
int processor_count();

struct SystemMemory { uint64_t total = 0, available = 0; };   // bytes
SystemMemory system_memory();

}  // namespace stw
