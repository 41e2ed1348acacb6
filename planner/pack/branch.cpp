// Chooses the section to branch on, and the order in which candidates are tried.
#include <algorithm>

#include "planner/pack/search.h"

namespace stw {

namespace {

constexpr uint64_t variation = 32;  // restarts lower a candidate's rank by up to variation / 256 at random

}  // namespace

// Finds the first valley of a part at `from` or after it: sections with the same floor that are not shut,
// between neighbours that are higher or shut.
bool PackSearch::next_valley(const Part& part, int from, Valley& valley) const {
  for (int begin = from, end; begin < part.end; begin = end) {
    end = begin + 1;
    if (flags_[at(begin)] & shut) continue;
    const uint64_t floor = floor_[at(begin)];
    while (end < part.end && floor_[at(end)] == floor && !(flags_[at(end)] & shut)) ++end;
    valley = {begin, end, begin > part.begin ? floor_[at(begin - 1)] : no_wall,
              end < part.end ? floor_[at(end)] : no_wall};
    if (valley.left >= floor && valley.right >= floor) return true;
  }
  return false;
}

// Updates the best branch with the sections of a valley. False if a section has no choice left.
bool PackSearch::weigh(const Valley& valley, Branch& best) {
  const uint64_t floor = floor_[at(valley.begin)];
  resting_[at(valley.begin)] = 0;
  for (int s = valley.begin; s < valley.end; ++s) {
    resting_[at(s + 1)] = resting_[at(s)] + !(flags_[at(s)] & hanging);
    fitting_[at(s)] = 0;
    fitting_size_[at(s)] = 0;
  }
  uint64_t smallest = no_wall;
  for (int s = valley.begin; s < valley.end; ++s) {
    for (int block : starting_[at(s)]) {
      const Block& b = blocks_[at(block)];
      if (placed_[at(block)] || b.end > valley.end) continue;
      const int now = rests(b);
      if (now) smallest = std::min(smallest, b.size);
      fitting_[at(s)] += now;
      fitting_size_[at(s)] += b.size;
      if (b.end == valley.end) continue;
      fitting_[at(b.end)] -= now;
      fitting_size_[at(b.end)] -= b.size;
    }
  }
  const uint64_t wall = std::min(valley.left, valley.right);
  // The fewest bytes that are wasted if a section is shut: its floor rises at least to a wall, or to the top
  // of a block that is placed in the same valley.
  const uint64_t least_waste = std::min(smallest, std::max<uint64_t>(wall - floor, 1));
  int fitting = 0;
  uint64_t fitting_size = 0;
  for (int s = valley.begin; s < valley.end; ++s) {
    fitting += fitting_[at(s)];
    fitting_size += fitting_size_[at(s)];
    // Blocks that do not fit between the walls must lie above the lower wall, within the capacity.
    const bool exceeds_capacity =
        wall != no_wall && wall + (unplaced_size_[at(s)] - fitting_size) > capacity_;
    const bool may_shut = slack(at(s)) >= least_waste;
    const uint64_t choices = static_cast<uint64_t>(fitting) + may_shut;
    if (exceeds_capacity || choices == 0) {
      ++weight_[at(s)];
      return false;
    }
    const uint64_t tie = style_.least_slack ? slack(at(s)) : floor;
    const uint64_t mine = choices * best.weight, others = best.choices * weight_[at(s)];
    if (best.section < 0 || mine < others || (mine == others && tie < best.tie))
      best = {s, valley, may_shut, choices, weight_[at(s)], tie};
  }
  return true;
}

// Appends the blocks that may lie on the floor of the branch's section, the most promising first.
void PackSearch::list_candidates(const Branch& branch) {
  const Valley& v = branch.valley;
  const uint64_t floor = floor_[at(branch.section)];
  auto rank = [&](const Block& b) -> __uint128_t {
    const __uint128_t life = static_cast<__uint128_t>(b.end - b.first), area = life * b.size;
    const int at_left = b.first == v.begin, at_right = b.end == v.end;
    int fit = 0;
    switch (style_.candidate) {
      case Prefer::size: return static_cast<__uint128_t>(b.size) << 32 | life;
      case Prefer::life: return life << 64 | b.size;
      case Prefer::walls_then_area: fit = at_left + at_right; break;
      case Prefer::fit_then_area:  // the top is level with a wall, or the block reaches from wall to wall
        fit = (at_left && floor + b.size == v.left) + (at_right && floor + b.size == v.right) +
              (at_left && at_right);
        break;
    }
    return static_cast<__uint128_t>(fit) << 100 | area;
  };
  resting_[at(v.begin)] = 0;
  for (int s = v.begin; s < v.end; ++s) resting_[at(s + 1)] = resting_[at(s)] + !(flags_[at(s)] & hanging);
  ranked_.clear();
  for (int s = v.begin; s <= branch.section; ++s) {
    for (int block : starting_[at(s)]) {
      const Block& b = blocks_[at(block)];
      if (placed_[at(block)] || b.end > v.end || b.end <= branch.section || !rests(b)) continue;
      const bool twin = std::any_of(ranked_.begin(), ranked_.end(), [&](const auto& other) {
        const Block& o = blocks_[at(other.second)];
        return o.first == b.first && o.end == b.end && o.size == b.size;
      });
      if (twin) continue;
      __uint128_t key = rank(b);
      if (varied_) key -= key / 256 * (mixed(nodes_ << 20 ^ static_cast<uint64_t>(block)) % variation);
      ranked_.push_back({key, block});
    }
  }
  std::stable_sort(ranked_.begin(), ranked_.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [key, block] : ranked_) candidates_.push_back(block);
}

}  // namespace stw
