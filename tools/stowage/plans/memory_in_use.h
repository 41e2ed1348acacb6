// Memory that is taken now, to hold against the plan.
#pragma once
#include <stowage.h>

namespace command {

// Bytes: of a GPU all that anyone has of it, else the physical memory of this process; 0 where the system does not say.
uint64_t memory_in_use(const stw_device* device);

}  // namespace command
