#include "planner/pack/greedy.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "kernels/contract/sizes.h"
#include "planner/base/check_in.h"
#include "planner/pack/occupancy.h"

namespace stw {

namespace {

// With more blocks, only orders by life and by size are tried: ranges (occupancy.h) coalesce less in the
// others, which then take too long.
constexpr size_t blocks_for_all_orders = 4096;
// An order of so many blocks is given up if it takes more steps (occupancy.h) for a block than this: a pass
// of skyline.h is then faster and packs lower. In programs of plans, the order by size takes about 60 steps
// for a block.
constexpr uint64_t most_steps_by_life = 4096, most_steps_by_size = 512;
// pack_by_begin passes or moves at most so many free ranges for a block, on average.
constexpr size_t most_ranges_of_a_block = 64;
constexpr size_t blocks_for_a_list = 1024;
constexpr int repacking_rounds = 32;
constexpr int fullest_rounds = 6;
// For more than blocks_for_a_list blocks: rounds without a lower packing, after which no more are tried.
constexpr int rounds_in_vain = 8;
constexpr int blocks_between_check_ins = 256;
// For more than blocks_for_a_list blocks: all rounds together pack at most blocks_to_repack blocks, and only
// if the height exceeds the bound by at most bound / near_miss.
constexpr size_t blocks_to_repack = 1 << 18;
constexpr uint64_t near_miss = 32;

// Sorts blocks: the larger key first, then the larger block.
using Key = __uint128_t;
Key by_life(const Block& b) { return static_cast<Key>(b.end - b.first); }
Key by_size(const Block& b) { return b.size; }
Key by_area(const Block& b) { return by_life(b) * b.size; }
Key by_start(const Block& b) { return static_cast<Key>(INT32_MAX - b.first); }
Key by_end(const Block& b) { return static_cast<Key>(b.end); }
// By powers of two of the size, then by start.
Key by_class(const Block& b) { return static_cast<Key>(std::bit_width(b.size)) << 64 | by_start(b); }
Key by_size_and_end(const Block& b) { return by_size(b) << 64 | by_end(b); }
Key by_size_and_life(const Block& b) {
  return static_cast<Key>(std::sqrt(static_cast<double>(b.end - b.first)) * 0x1p16) * b.size;
}

// Has the same functions as Occupancy, but scans all blocks placed so far. This is faster if they are few.
class PlacedList {
 public:
  explicit PlacedList(size_t blocks) { placed_.reserve(blocks); }

  uint64_t lowest_room(const Block& block) const {
    uint64_t offset = 0;
    for (const Placed& other : placed_) {
      if (other.end <= block.first || block.end <= other.first) continue;
      if (other.offset >= size_add(offset, block.size)) break;
      offset = std::max(offset, other.top);
    }
    return offset;
  }

  void take(const Block& block, uint64_t offset) {
    const auto after = std::partition_point(placed_.begin(), placed_.end(),
                                            [&](const Placed& p) { return p.offset <= offset; });
    placed_.insert(after, {block.first, block.end, offset, size_add(offset, block.size)});
  }
  uint64_t steps() const { return 0; }

 private:
  struct Placed {
    int first, end;
    uint64_t offset, top;
  };
  std::vector<Placed> placed_;  // sorted by offset
};

// False as soon as the packing reaches `limit`, or takes more than `most_steps`; it is then incomplete.
template <class Occupied>
bool pack_in_order(const Sections& sections, const std::vector<int>& order, uint64_t limit, Occupied occupied,
                   GreedyPacking& packing, uint64_t most_steps = UINT64_MAX) {
  packing.offsets.assign(sections.blocks.size(), 0);
  packing.height = 0;
  int until_check_in = 0;
  for (int index : order) {
    if (until_check_in-- == 0) {
      check_in();
      until_check_in = blocks_between_check_ins;
    }
    const Block& block = sections.blocks[index];
    const uint64_t offset = occupied.lowest_room(block);
    packing.offsets[index] = offset;
    packing.height = std::max(packing.height, size_add(offset, block.size));
    if (packing.height >= limit || occupied.steps() > most_steps) return false;
    occupied.take(block, offset);
  }
  return true;
}

std::vector<int> sorted_sections(const Sections& sections, Key key(const Block&)) {
  std::vector<int> order(sections.blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    const Block &x = sections.blocks[a], &y = sections.blocks[b];
    const Key p = key(x), q = key(y);
    return p != q ? p > q : x.size > y.size;
  });
  return order;
}

// Packs the blocks of the fullest section first, by life, so that they leave no hole there. The others follow
// by area. Each further round also packs another section first: of the sections of the block that reached
// highest in the round before, the fullest.
void pack_fullest_first(const Sections& sections, uint64_t enough, GreedyPacking& best) {
  const std::vector<uint64_t> totals = section_totals(sections);
  const auto fullest = [&](int first, int end) {
    return static_cast<int>(std::max_element(totals.begin() + first, totals.begin() + end) - totals.begin());
  };
  const std::vector<int> by_areas = sorted_sections(sections, by_area);
  std::vector<int> first_sections{fullest(0, sections.count)};
  GreedyPacking trial;
  for (int round = 0; round < fullest_rounds && best.height > enough; ++round) {
    const auto is_first = [&](int i) {
      const Block& b = sections.blocks[i];
      return std::any_of(first_sections.begin(), first_sections.end(),
                         [&](int section) { return b.first <= section && section < b.end; });
    };
    std::vector<int> order = by_areas;
    const auto others = std::stable_partition(order.begin(), order.end(), is_first);
    std::stable_sort(order.begin(), others,
                     [&](int a, int b) { return by_life(sections.blocks[a]) > by_life(sections.blocks[b]); });
    pack_in_order(sections, order, UINT64_MAX, Occupancy(sections.count), trial);
    if (trial.height < best.height) best = trial;
    size_t highest = 0;
    for (size_t i = 0; i < sections.blocks.size(); ++i)
      if (size_add(trial.offsets[i], sections.blocks[i].size) == trial.height) highest = i;
    const int section = fullest(sections.blocks[highest].first, sections.blocks[highest].end);
    if (std::find(first_sections.begin(), first_sections.end(), section) != first_sections.end()) break;
    first_sections.push_back(section);
  }
}

}  // namespace

GreedyPacking pack_by_begin(const Sections& sections) {
  struct Range {
    uint64_t begin, end;
  };
  GreedyPacking packing;
  packing.offsets.assign(sections.blocks.size(), 0);
  std::vector<int> begins(sections.blocks.size());
  std::iota(begins.begin(), begins.end(), 0);
  std::vector<int> ends = begins;
  std::stable_sort(begins.begin(), begins.end(), [&](int a, int b) {
    const Block &x = sections.blocks[a], &y = sections.blocks[b];
    return x.first != y.first ? x.first < y.first : x.end - x.first > y.end - y.first;
  });
  std::stable_sort(ends.begin(), ends.end(),
                   [&](int a, int b) { return sections.blocks[a].end < sections.blocks[b].end; });
  std::vector<Range> free{{0, UINT64_MAX}};  // sorted; neither overlapping nor adjacent
  const auto release = [&](Range range) {
    const auto after =
        std::partition_point(free.begin(), free.end(), [&](const Range& r) { return r.begin < range.begin; });
    const bool joins_before = after != free.begin() && (after - 1)->end == range.begin;
    const bool joins_after = after != free.end() && after->begin == range.end;
    if (joins_before && joins_after) {
      (after - 1)->end = after->end;
      free.erase(after);
    } else if (joins_before) {
      (after - 1)->end = range.end;
    } else if (joins_after) {
      after->begin = range.begin;
    } else {
      free.insert(after, range);
    }
  };
  packing.height = 0;
  size_t released = 0, ranges = 0;
  for (size_t n = 0; n < begins.size(); ++n) {
    if (n % blocks_between_check_ins == 0) check_in();
    const Block& block = sections.blocks[begins[n]];
    for (; sections.blocks[ends[released]].end <= block.first; ++released) {
      const uint64_t offset = packing.offsets[ends[released]];
      release({offset, offset + sections.blocks[ends[released]].size});
    }
    const auto room =
        std::find_if(free.begin(), free.end(), [&](const Range& r) { return r.end - r.begin >= block.size; });
    ranges += free.size();
    if (room == free.end() || ranges > most_ranges_of_a_block * begins.size()) {
      packing.height = UINT64_MAX;
      return packing;
    }
    packing.offsets[begins[n]] = room->begin;
    packing.height = std::max(packing.height, size_add(room->begin, block.size));
    room->begin += block.size;
    if (room->begin == room->end) free.erase(room);
  }
  return packing;
}

GreedyPacking pack_greedily(const Sections& sections, uint64_t enough) {
  GreedyPacking best, trial;
  const bool has_many = sections.blocks.size() > blocks_for_all_orders,
             is_small = sections.blocks.size() <= blocks_for_a_list;
  struct Order {
    Key (*key)(const Block&);
    uint64_t most_steps = UINT64_MAX;  // for a block
  };
  // Measured on programs of random requests. Of 211 with many blocks that missed their limit by life, 153 met
  // it by size. Of 463 with fewer, 282 met it by life, size, area, start, end or in pack_fullest_first; the
  // orders below take three quarters of the time, and 301 met it.
  const std::vector<Order> orders =
      has_many   ? std::vector<Order>{{by_life, most_steps_by_life}, {by_size, most_steps_by_size}}
      : is_small ? std::vector<Order>{{by_life}, {by_size}, {by_area}, {by_start}, {by_end}}
                 : std::vector<Order>{{by_class}, {by_size_and_life}, {by_area}, {by_size_and_end}};
  for (const auto& [key, most_steps] : orders) {
    const std::vector<int> order = sorted_sections(sections, key);
    const bool lower = is_small ? pack_in_order(sections, order, best.height, PlacedList(order.size()), trial)
                                : pack_in_order(sections, order, best.height, Occupancy(sections.count),
                                                trial, size_mul(most_steps, order.size()));
    if (lower) std::swap(best, trial);
    if (best.height <= enough) return best;
  }
  if (!is_small && !has_many) pack_fullest_first(sections, enough, best);
  return best;
}

namespace {

// Packs in rounds by `try_order`, which may improve `best`, leaves offsets in `trial`, and says whether to go
// on.
template <class TryOrder>
void learn(const Sections& sections, Key key(const Block&), int rounds, uint64_t bound, uint64_t enough,
           const GreedyPacking& best, const GreedyPacking& trial, const TryOrder& try_order) {
  const std::vector<int> first = sorted_sections(sections, key);
  std::vector<int> order = first, reached(first.size());
  for (int round = 0; round < rounds && best.height > enough; ++round) {
    if (!try_order(order)) break;
    for (size_t i = 0; i < reached.size(); ++i)
      reached[i] += size_add(trial.offsets[i], sections.blocks[i].size) > bound;
    order = first;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return reached[a] > reached[b]; });
  }
}

}  // namespace

void repack_greedily(const Sections& sections, uint64_t bound, uint64_t enough, GreedyPacking& best) {
  GreedyPacking trial;
  if (sections.blocks.size() <= blocks_for_a_list) {
    for (const auto key : {by_area, by_start, by_size})
      learn(sections, key, repacking_rounds, bound, enough, best, trial, [&](const std::vector<int>& order) {
        if (pack_in_order(sections, order, best.height, PlacedList(order.size()), trial)) best = trial;
        return true;
      });
    return;
  }
  // Packs all blocks, without stopping at the best height so far: all blocks that reach above the bound must
  // be known.
  if (best.height - bound > bound / near_miss) return;
  const auto rounds =
      static_cast<int>(std::min<size_t>(repacking_rounds, blocks_to_repack / sections.blocks.size()));
  int in_vain = 0;
  learn(sections, by_life, rounds, bound, enough, best, trial, [&](const std::vector<int>& order) {
    pack_in_order(sections, order, UINT64_MAX, Occupancy(sections.count), trial);
    const bool is_lower = trial.height < best.height;
    if (is_lower) best = trial;
    in_vain = is_lower ? 0 : in_vain + 1;
    return in_vain < rounds_in_vain;
  });
}

}  // namespace stw
