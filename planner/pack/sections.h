// Sections: the moments at which the set of live buffers is maximal. Two buffers conflict exactly if they are
// alive in a common section, so a packing needs to consider no other moments. A buffer is alive in a run of
// sections. There are fewer sections than moments, and each is as full as possible, which makes bounds
// stronger.
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

// Cuts the sections into parts where no buffer is alive on both sides. `source` of a part is the block's
// index in `sections`.
std::vector<Sections> components_of(const Sections& sections);

}  // namespace stw
