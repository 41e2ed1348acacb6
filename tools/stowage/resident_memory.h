// What the operating system says about the memory of this process, to hold against the plan.
#pragma once
#include <cstdint>

namespace command {

// Bytes of physical memory that are this process's now; 0 where the system does not say.
uint64_t resident_bytes();

}  // namespace command
