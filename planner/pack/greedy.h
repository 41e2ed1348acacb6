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

// The lowest of several orders. With very many blocks only one order is tried, longest lives first. Stops at
// the first packing that is no higher than `enough`.
GreedyPacking pack_greedily(const Sections& sections, uint64_t enough);

// Packs again and again, until the height is at most `enough`. Blocks that reached above the bound in more
// rounds are placed earlier. This comes near to the bound where a search would have to be lucky. A program of
// offloaded blocks: 3 % above the bound before, at the bound after 18 ms. A packing of more than a thousand
// blocks is repacked only if it is already near the bound. 6,000 blocks of a model with quantized weights,
// 0.03 % above it, reach the bound after 9 rounds, 20 ms. Programs with copies, 3 % and more above it, seldom
// come down in 32 rounds.
void repack_greedily(const Sections& sections, uint64_t bound, uint64_t enough, GreedyPacking& best);

}  // namespace stw
