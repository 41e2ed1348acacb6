// Offset allocation: buffers with lifetimes get offsets so that those alive at the same time do not overlap.
#pragma once
#include <cstdint>
#include <vector>

#include "planner/program.h"

namespace stw {

// Half-open lifetime [lower, upper) and size; sizes are multiples of the alignment already.
struct Interval { int64_t lower, upper; uint64_t size; };

struct Placement {
  std::vector<uint64_t> offsets;   // as the intervals are numbered
  uint64_t height = 0;             // largest offset + size
  uint64_t bound = 0;              // largest sum of sizes alive at once: no placement is lower
};

// Best of a portfolio of greedy orders; stops at the first that meets the bound. Deterministic.
Placement place(const std::vector<Interval>& intervals);

// Sets the offsets of a program's buffers and its end.
void lay_out(Program& program, uint64_t alignment);

}  // namespace stw
