// Buffers whose place is not free: aligned offsets, offsets that are given, and gaps in which a buffer takes none of its bytes, or some of them.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "planner/pack/pack.h"

namespace stw {

// Within [lower, upper) a buffer takes its bytes [first, end) alone.
struct Gap { int64_t lower, upper; uint64_t first, end; };

struct Constraint {
  uint64_t alignment = 1;           // the offset is a multiple of it; 1 or more
  std::optional<uint64_t> offset;   // given
  std::vector<Gap> gaps;            // inside of the lifetime, each with first <= end <= size
};

// Two buffers (or one, twice) whose given offsets no placement can hold: they overlap, or one is no multiple of its alignment.
std::optional<std::pair<size_t, size_t>> contradiction(const std::vector<Interval>& intervals, const std::vector<Constraint>& constraints);

// Like pack(), for buffers with constraints, of which there are as many, and which do not contradict each other. A buffer
// that takes a byte at any time ends at offset + size, at most the height; one that takes none has no part in the height.
// Orders that place blocks one after the other, what pack() makes of the sizes rounded up, and a search that is exact
// for a few dozen buffers. Without any constraint it is pack().
Packing pack_constrained(const std::vector<Interval>& intervals, const std::vector<Constraint>& constraints, const PackOptions& options);

}  // namespace stw
