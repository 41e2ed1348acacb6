// Places the buffers of a program.
#pragma once
#include <cstdint>
#include <vector>

#include "planner/pack/pack.h"
#include "planner/program/program.h"

namespace stw {

struct Placement {
  std::vector<uint64_t> offsets;  // in the order of the intervals
  uint64_t height = 0;            // largest offset + size
  uint64_t bound = 0;             // no placement is lower; at least the largest sum of sizes alive at once
};

// Packs the intervals. This takes a few milliseconds, or up to about 0.2 s if there are thousands and no
// greedy order comes near the bound. The search is limited by a number of decisions, not by a clock, so it is
// deterministic. Sizes must be multiples of the alignment. If the greedy orders find a packing of at most
// `enough` bytes, the search ends, although a better one may exist. `enough` does not change whether the
// result fits a limit of at least `enough` bytes.
Placement place(const std::vector<Interval>& intervals, uint64_t enough = 0);

// Sets the offsets of a program's buffers, and its end, by `place`. `enough` is counted from the start of the
// arena.
void lay_out(Program& program, uint64_t alignment, uint64_t enough = 0);

// An upper bound of the end that lay_out() sets, whatever `enough`. Much quicker.
uint64_t most_end(const Program& program, uint64_t alignment);

}  // namespace stw
