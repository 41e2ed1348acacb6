// Greedy packing: places blocks one after the other, each at the lowest offset that is free through its whole
// life.
#pragma once
#include <cstdint>
#include <vector>

#include "planner/pack/sections.h"

namespace stw {

struct GreedyPacking {
  std::vector<uint64_t> offsets;  // of the blocks
  uint64_t height = UINT64_MAX;   // saturated at `size_limit`
};

// The lowest packing of several orders. Stops at the first packing that is no higher than `enough`. With more
// than 4,096 blocks only two orders are tried: longest lives first, then largest first. An order that takes
// too long is given up. If both are, the height is UINT64_MAX.
GreedyPacking pack_greedily(const Sections& sections, uint64_t enough);

// Packs the blocks in the order in which they begin, each at the lowest offset that is free then. Much
// quicker than pack_greedily, because only the free ranges of the current section matter, and good enough
// where there is much room. Gives up, with the height UINT64_MAX, if there are so many free ranges that it
// takes long.
GreedyPacking pack_by_begin(const Sections& sections);

// Packs in rounds until the height is at most `enough`, or a limit of rounds is reached. Blocks that reached
// above the bound in more rounds are placed earlier. Often this comes nearer to the bound than the exact
// search does within its node limit. A packing of more than a thousand blocks is repacked only if it is
// already near the bound. Measurements: a program of offloaded blocks began 3 % above the bound and reached
// it after 18 ms. 6,000 blocks of a model with quantized weights began 0.03 % above it and reached it after 9
// rounds (20 ms). Large programs with copies that begin 3 % or more above the bound seldom improve in 32
// rounds.
void repack_greedily(const Sections& sections, uint64_t bound, uint64_t enough, GreedyPacking& best);

}  // namespace stw
