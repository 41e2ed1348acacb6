// Time without what does not matter to a packing. Two buffers conflict where they are alive together, so moments count
// only where the set of the living is maximal: these are the sections, and a buffer is alive in a run of them. There
// are fewer of them than moments, and each is as full as can be, which is what bounds and inferences feed on.
#pragma once
#include <cstdint>
#include <vector>

#include "planner/pack/pack.h"

namespace stw {

// A buffer, alive in the sections [first, end).
struct Block { int first, end; uint64_t size; };

struct Sections {
  int count = 0;
  std::vector<Block> blocks;
  std::vector<int> source;  // the interval that a block is
};

// Of intervals that take space; the others have no block.
Sections sections_of(const std::vector<Interval>& intervals);

// Sum of the sizes of the blocks alive in each section, saturated.
std::vector<uint64_t> section_totals(const Sections& sections);

// Parts that share no buffer: cut where none is alive on both sides. Their `source` is the block's index in `sections`.
std::vector<Sections> components_of(const Sections& sections);

}  // namespace stw
