// Sections: the moments that matter to a packing. Two buffers conflict if they are alive together. So only
// those moments count at which the set of live buffers is maximal. These are the sections, and a buffer is
// alive in a run of them. There are fewer sections than moments, and each is as full as possible, which makes
// bounds and inferences stronger.
#pragma once
#include <cstdint>
#include <vector>

#include "planner/pack/pack.h"

namespace stw {

// A buffer that is alive in the sections [first, end).
struct Block {
  int first, end;
  uint64_t size;
};

struct Sections {
  int count = 0;
  std::vector<Block> blocks;
  std::vector<int> source;  // block -> its interval
};

// Intervals that take no space have no block.
Sections sections_of(const std::vector<Interval>& intervals);

// Sums of the sizes of the blocks that are alive in each section. Saturated.
std::vector<uint64_t> section_totals(const Sections& sections);

// Parts that share no buffer: cut where no buffer is alive on both sides. `source` is then the block's index
// in `sections`.
std::vector<Sections> components_of(const Sections& sections);

}  // namespace stw
