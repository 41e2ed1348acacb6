// What the operating system says of the machine, and of the part of it that this process may use: its affinity, its container.
#pragma once
#include <cstdint>
#include <string>

namespace stw {

std::string processor_name();

// That this process may use at once.
int processor_count();
// How many of `processors` a container may keep busy whose file cpu.max says this: "200000 100000", "max 100000", or nothing.
int processors_within(const std::string& quota, int processors);

struct SystemMemory { uint64_t total = 0, available = 0; };   // bytes
SystemMemory system_memory();

}  // namespace stw
