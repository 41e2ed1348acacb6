// Where a program's buffers lie.
#pragma once
#include <cstdint>
#include <vector>

#include "planner/pack/pack.h"
#include "planner/program.h"

namespace stw {

struct Placement {
  std::vector<uint64_t> offsets;   // as the intervals are numbered
  uint64_t height = 0;             // largest offset + size
  uint64_t bound = 0;              // largest sum of sizes alive at once: no placement is lower
};

// The best packing that a few milliseconds find: a number of decisions, not a clock, so it is deterministic. Sizes are
// multiples of the alignment already.
Placement place(const std::vector<Interval>& intervals);

// Sets the offsets of a program's buffers and its end.
void lay_out(Program& program, uint64_t alignment);

}  // namespace stw
