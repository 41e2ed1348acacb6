// What a packing's height and bound say, of buffers with constraints or without.
#pragma once
#include "planner/pack/pack.h"

namespace stw {

// Within `capacity` bytes; 0: without a limit.
PackStatus status_of(const Packing& packing, uint64_t capacity);

}  // namespace stw
