// Greedy packing: blocks go down one after the other, each at the lowest offset that is free through its whole life.
#pragma once
#include <cstdint>
#include <vector>

#include "planner/pack/sections.h"

namespace stw {

struct GreedyPacking {
  std::vector<uint64_t> offsets;  // of the blocks
  uint64_t height = UINT64_MAX;   // saturated at `size_limit`
};

// The lowest of several orders (of one, longest lives first, where there are very many blocks); stops at the first that
// is no higher than `enough`.
GreedyPacking pack_greedily(const Sections& sections, uint64_t enough);

}  // namespace stw
