// The status of a packing, from its height and bound, with or without constraints.
#pragma once
#include "planner/pack/pack.h"

namespace stw {

// `capacity`: bytes to fit into; 0: no limit.
PackStatus status_of(const Packing& packing, uint64_t capacity);

}  // namespace stw
