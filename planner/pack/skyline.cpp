#include "planner/pack/skyline.h"

#include <algorithm>

#include "kernels/contract/sizes.h"
#include "planner/base/check_in.h"

namespace stw {

namespace {

constexpr int candidates = 5;  // blocks that a valley considers, in each window
constexpr size_t placements_between_check_ins = 256;
constexpr uint64_t no_wall = UINT64_MAX;

}  // namespace

Skyline::Skyline(const Sections& sections)
    : sections_(sections),
      totals_(section_totals(sections)),
      unplaced_(sections.blocks),
      reach_(sections.count) {}

void Skyline::push(int valley) {
  lowest_.push_back({valleys_[valley].floor, valleys_[valley].begin, valley});
  std::push_heap(lowest_.begin(), lowest_.end());
}

// Joins a valley with the neighbours that have its floor.
void Skyline::join_neighbours(int valley) {
  Valley& v = valleys_[valley];
  for (const Side& side : {left_side, right_side}) {
    if (v.*side.neighbour < 0 || valleys_[v.*side.neighbour].floor != v.floor) continue;
    Valley& other = valleys_[v.*side.neighbour];
    other.is_gone = true;
    v.*side.edge = other.*side.edge;
    v.*side.neighbour = other.*side.neighbour;
    if (v.*side.neighbour >= 0) valleys_[v.*side.neighbour].*side.back = valley;
  }
  push(valley);
}

// Makes the sections [begin, end) at one side of a valley a valley of their own.
void Skyline::split_off(int valley, int begin, int end, const Side& side) {
  if (begin == end) return;
  const int part = static_cast<int>(valleys_.size()), beyond = valleys_[valley].*side.neighbour;
  valleys_.push_back({begin, end, valleys_[valley].floor, -1, -1, false});
  valleys_[part].*side.neighbour = beyond;
  valleys_[part].*side.back = valley;
  valleys_[valley].*side.neighbour = part;
  if (beyond >= 0) valleys_[beyond].*side.back = part;
  push(part);
}

void Skyline::put(int valley, const Block& block) {
  split_off(valley, valleys_[valley].begin, block.first, left_side);
  split_off(valley, block.end, valleys_[valley].end, right_side);
  Valley& v = valleys_[valley];
  v.begin = block.first;
  v.end = block.end;
  v.floor = size_add(v.floor, block.size);
  join_neighbours(valley);
}

// The height of a wall above a floor.
uint64_t Skyline::wall(int neighbour, uint64_t floor) const {
  return neighbour < 0 ? no_wall : valleys_[neighbour].floor - floor;
}

// Raises a valley to its lower wall. False if it has none.
bool Skyline::rise(int valley) {
  Valley& v = valleys_[valley];
  const uint64_t by = std::min(wall(v.before, v.floor), wall(v.after, v.floor));
  if (by == no_wall) return false;
  reach_.raise(v.begin, v.end, by);
  v.floor += by;
  join_neighbours(valley);
  return true;
}

// If a block leaves a part of the valley beside it that takes no other block, this part will rise. Returns
// the largest reach after that.
uint64_t Skyline::reach_beside(const Valley& v, const Block& block) const {
  uint64_t reach = 0;
  const auto side = [&](int begin, int end, int neighbour) {
    if (begin == end || unplaced_.highest({begin, end - 1, begin + 1, end}) >= 0) return;
    reach = std::max(reach, reach_.top(begin, end).reach + std::min(block.size, wall(neighbour, v.floor)));
  };
  side(v.begin, block.first, v.before);
  side(block.end, v.end, v.after);
  return reach;
}

// The block of the highest rank that fits as required, or else the one of the highest rank in the window.
int Skyline::fitting(const Window& w, const Valley& v, SkylineRules::Fit fit) const {
  using Fit = SkylineRules::Fit;
  const bool left = fit != Fit::any && w.first_low == v.begin, right = fit != Fit::any && w.end_high == v.end;
  const Window at_left{v.begin, v.begin, w.end_low, w.end_high};
  const Window at_right{w.first_low, w.first_high, v.end, v.end};
  const auto as_high_as = [&](Window window, int neighbour) {
    window.size_low = window.size_high = wall(neighbour, v.floor);
    return window.size_low == no_wall ? -1 : unplaced_.highest(window);
  };
  int block = -1;
  if (left && right) {
    const Window both{v.begin, v.begin, v.end, v.end};
    if (fit == Fit::level && (block = as_high_as(both, v.before)) >= 0) return block;
    if (fit == Fit::level && (block = as_high_as(both, v.after)) >= 0) return block;
    if ((block = unplaced_.highest(both)) >= 0) return block;
  }
  if (fit == Fit::level) {
    if (left && (block = as_high_as(at_left, v.before)) >= 0) return block;
    if (right && (block = as_high_as(at_right, v.after)) >= 0) return block;
  } else {
    const int a = left ? unplaced_.highest(at_left) : -1, b = right ? unplaced_.highest(at_right) : -1;
    if (a >= 0 && b >= 0) return unplaced_.is_higher(a, b) ? a : b;
    if (a >= 0 || b >= 0) return std::max(a, b);
  }
  return unplaced_.highest(w);
}

// The first candidate that leaves no hole above `goal`, or else the one with the lowest hole, or -1.
int Skyline::choose(const Valley& v, SkylineRules rules, uint64_t goal) const {
  int best = -1;
  uint64_t least = UINT64_MAX;
  const auto is_good = [&](int block) {
    const uint64_t reach = reach_beside(v, sections_.blocks[block]);
    if (reach < least) {
      least = reach;
      best = block;
    }
    return reach <= goal;
  };
  const auto has_good = [&](const Window& window) {
    const int fit = fitting(window, v, rules.fit);
    if (fit < 0) return false;
    if (is_good(fit)) return true;
    int block = -1;
    for (int k = 1; k < candidates && (block = unplaced_.highest(window, block)) >= 0; ++k)
      if (block != fit && is_good(block)) return true;
    return false;
  };
  if (rules.over_top) {
    const int top = reach_.top(v.begin, v.end).section;
    if (has_good({v.begin, top, top + 1, v.end})) return best;
  }
  has_good({v.begin, v.end - 1, v.begin + 1, v.end});
  return best;
}

bool Skyline::pack(const std::vector<int>& order, SkylineRules rules, uint64_t goal, uint64_t limit,
                   GreedyPacking& packing) {
  packing.offsets.assign(order.size(), 0);
  packing.height = 0;
  unplaced_.reset(order);
  reach_.reset(totals_);
  valleys_.assign(1, {0, sections_.count, 0, -1, -1, false});
  lowest_.clear();
  push(0);
  for (placed_ = 0; placed_ < order.size();) {
    const Lowest low = lowest_.front();
    std::pop_heap(lowest_.begin(), lowest_.end());
    lowest_.pop_back();
    const Valley& v = valleys_[low.valley];
    if (v.is_gone || v.floor != low.floor || v.begin != low.begin) continue;
    const int index = choose(v, rules, goal);
    if (index < 0) {
      if (!rise(low.valley) || reach_.top().reach >= limit) return false;
      continue;
    }
    if (placed_++ % placements_between_check_ins == 0) check_in();
    const Block& block = sections_.blocks[index];
    packing.offsets[index] = v.floor;
    packing.height = std::max(packing.height, size_add(v.floor, block.size));
    unplaced_.remove(index);
    put(low.valley, block);
  }
  return packing.height < limit;
}

}  // namespace stw
