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

// Finds given offsets that no placement can have. Returns two buffers that overlap, or one buffer twice if
// its offset is not a multiple of its alignment. Empty if there is no such contradiction.
std::optional<std::pair<size_t, size_t>> contradiction(const std::vector<Interval>& intervals,
                                                       const std::vector<Constraint>& constraints);

// pack() for buffers with constraints. There is one element of constraints for each interval, and they must
// not contradict each other. The height is the largest offset + size of the buffers that take a byte at any
// time. Tries several greedy orders, then pack() with sizes rounded up, and then a search that is exact for a
// few dozen buffers. Without any constraint it equals pack().
Packing pack_constrained(const std::vector<Interval>& intervals, const std::vector<Constraint>& constraints,
                         const PackOptions& options);

}  // namespace stw
