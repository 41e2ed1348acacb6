// Checks whether a packing's status agrees with its height and bound.
#pragma once
#include <cstdint>
#include <string>

#include "planner/pack/pack.h"

namespace stw {

// Returns the disagreement, or an empty text. `height`: computed from the offsets.
inline std::string wrong_status(const Packing& p, uint64_t height, uint64_t capacity) {
  const bool within = capacity == 0 || height <= capacity;
  switch (p.status) {
    case PackStatus::optimal: return within && p.bound == height ? "" : "not optimal";
    case PackStatus::fits: return within && p.bound < height ? "" : "does not fit";
    case PackStatus::infeasible:
      return capacity && p.bound > capacity && height > capacity ? "" : "not infeasible";
    case PackStatus::unknown: return capacity && !within && p.bound <= capacity ? "" : "not unknown";
  }
  return "no status";
}

}  // namespace stw
