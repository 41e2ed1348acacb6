// The memory that is in use now, for comparison with the plan.
#pragma once
#include <stowage.h>

namespace command {

// Bytes in use: on a GPU those of all processes, else the physical memory of this process. 0 if the system
// does not report it.
uint64_t memory_in_use(const stw_device* device);

}  // namespace command
