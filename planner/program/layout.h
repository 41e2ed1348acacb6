// Where a program's buffers lie.
#pragma once
#include <cstdint>
#include <vector>

#include "planner/pack/pack.h"
#include "planner/program/program.h"

namespace stw {

struct Placement {
  std::vector<uint64_t> offsets;   // as the intervals are numbered
  uint64_t height = 0;             // largest offset + size
  uint64_t bound = 0;              // largest sum of sizes alive at once: no placement is lower
};

// The best packing that a few milliseconds find: a number of decisions, not a clock, so it is deterministic. Sizes are
// multiples of the alignment already. Where one of at most `enough` bytes is found at once it may not be the best; whether there is one
// of so many bytes does not depend on `enough`.
Placement place(const std::vector<Interval>& intervals, uint64_t enough = 0);

// Sets the offsets of a program's buffers and its end; as `place`, with `enough` counted from the start of the arena.
void lay_out(Program& program, uint64_t alignment, uint64_t enough = 0);

}  // namespace stw
