#include "planner/pack_greedy.h"

#include <algorithm>
#include <numeric>

#include "planner/occupancy.h"
#include "planner/sizes.h"

namespace stw {

namespace {

// The ranges of other orders than the first do not coalesce as well: with many more blocks they take too long.
constexpr size_t blocks_for_all_orders = 4096;

// What goes down first: the larger key, then the larger block.
using Key = __uint128_t;
Key by_life(const Block& b) { return static_cast<Key>(b.end - b.first); }
Key by_size(const Block& b) { return b.size; }
Key by_area(const Block& b) { return by_life(b) * b.size; }
Key by_start(const Block& b) { return static_cast<Key>(INT32_MAX - b.first); }
Key by_end(const Block& b) { return static_cast<Key>(b.end); }

// False, and the packing half done, as soon as it is as high as `limit`.
bool pack_in_order(const Sections& sections, const std::vector<int>& order, uint64_t limit, GreedyPacking& packing) {
  packing.offsets.assign(sections.blocks.size(), 0);
  packing.height = 0;
  Occupancy occupancy(sections.count);
  for (int index : order) {
    const Block& block = sections.blocks[static_cast<size_t>(index)];
    const uint64_t offset = occupancy.lowest_room(block);
    packing.offsets[static_cast<size_t>(index)] = offset;
    packing.height = std::max(packing.height, size_add(offset, block.size));
    if (packing.height >= limit) return false;
    occupancy.take(block, offset);
  }
  return true;
}

}  // namespace

GreedyPacking pack_greedily(const Sections& sections, uint64_t enough) {
  GreedyPacking best, trial;
  for (const auto key : {by_life, by_size, by_area, by_start, by_end}) {
    std::vector<int> order(sections.blocks.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      const Block &x = sections.blocks[static_cast<size_t>(a)], &y = sections.blocks[static_cast<size_t>(b)];
      const Key p = key(x), q = key(y);
      return p != q ? p > q : x.size > y.size;
    });
    if (pack_in_order(sections, order, best.height, trial)) std::swap(best, trial);
    if (best.height <= enough || sections.blocks.size() > blocks_for_all_orders) break;
  }
  return best;
}

}  // namespace stw
