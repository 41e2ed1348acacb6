// Constraints on the places of buffers: aligned offsets, given offsets, and gaps. In a gap a buffer takes
// none of its bytes, or only some of them.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "planner/pack/pack.h"

namespace stw {

// Within the times [lower, upper) a buffer takes only its bytes [first, end).
struct Gap {
  int64_t lower, upper;
  uint64_t first, end;
};

struct Constraint {
  uint64_t alignment = 1;          // the offset is a multiple of it; at least 1
  std::optional<uint64_t> offset;  // a given offset
  std::vector<Gap> gaps;           // within the lifetime; first <= end <= size
};

// Two buffers (or one, twice) whose given offsets no placement can have: they overlap, or an offset is not a
// multiple of its alignment. Empty if there are none.
std::optional<std::pair<size_t, size_t>> contradiction(const std::vector<Interval>& intervals,
                                                       const std::vector<Constraint>& constraints);

// pack() for buffers with constraints. There is one element of constraints for each interval, and they must
// not contradict each other. A buffer that takes a byte at any time ends at offset + size, which is at most
// the height. A buffer that takes none does not count. Tries orders that place blocks one after the other,
// then pack() with sizes rounded up, and then a search that is exact for a few dozen buffers. Without any
// constraint it is pack().
Packing pack_constrained(const std::vector<Interval>& intervals, const std::vector<Constraint>& constraints,
                         const PackOptions& options);

}  // namespace stw
