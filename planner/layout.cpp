#include "planner/layout.h"

#include <algorithm>
#include <numeric>

namespace stw {

namespace {

uint64_t live_maximum(const std::vector<Interval>& intervals) {
  std::vector<std::pair<int64_t, int64_t>> changes;  // ends sort before starts at the same time: half-open
  changes.reserve(intervals.size() * 2);
  for (const Interval& i : intervals) {
    if (i.lower >= i.upper) continue;
    changes.push_back({i.lower, static_cast<int64_t>(i.size)});
    changes.push_back({i.upper, -static_cast<int64_t>(i.size)});
  }
  std::sort(changes.begin(), changes.end());
  __int128 live = 0, most = 0;
  for (const auto& [time, change] : changes) most = std::max(most, live += change);
  return static_cast<uint64_t>(std::min<__int128>(most, size_limit));
}

// Puts the buffers down one after the other, each at the lowest offset that is free through its whole life. Gives up
// (returns false) once the height passes `limit`.
bool place_in_order(const std::vector<Interval>& intervals, const std::vector<int>& order, uint64_t limit,
                    Placement& result) {
  std::vector<int> placed;  // sorted by offset
  placed.reserve(order.size());
  result.offsets.assign(intervals.size(), 0);
  result.height = 0;
  for (int index : order) {
    const Interval& me = intervals[static_cast<size_t>(index)];
    uint64_t offset = 0;
    for (int other : placed) {
      const Interval& it = intervals[static_cast<size_t>(other)];
      if (it.upper <= me.lower || me.upper <= it.lower) continue;
      const uint64_t at = result.offsets[static_cast<size_t>(other)];
      if (at >= size_add(offset, me.size)) break;  // the gap below is wide enough
      offset = std::max(offset, size_add(at, it.size));
    }
    result.offsets[static_cast<size_t>(index)] = offset;
    result.height = std::max(result.height, size_add(offset, me.size));
    if (result.height >= limit) return false;
    auto after = std::upper_bound(placed.begin(), placed.end(), offset, [&](uint64_t o, int other) {
      return o < result.offsets[static_cast<size_t>(other)];
    });
    placed.insert(after, index);
  }
  return true;
}

}  // namespace

Placement place(const std::vector<Interval>& intervals) {
  const uint64_t bound = live_maximum(intervals);
  Placement best;
  best.bound = bound;
  best.height = UINT64_MAX;
  auto key = [&](int kind, int index) -> __uint128_t {
    const Interval& i = intervals[static_cast<size_t>(index)];
    const __uint128_t life = static_cast<__uint128_t>(i.upper - i.lower);
    if (kind == 0) return life;
    if (kind == 1) return i.size;
    if (kind == 2) return life * i.size;
    return static_cast<__uint128_t>(INT64_MAX - i.lower);
  };
  for (int kind = 0; kind < 4 && best.height > bound; ++kind) {
    std::vector<int> order(intervals.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      const __uint128_t x = key(kind, a), y = key(kind, b);
      if (x != y) return x > y;
      return intervals[static_cast<size_t>(a)].size > intervals[static_cast<size_t>(b)].size;
    });
    Placement trial;
    if (!place_in_order(intervals, order, best.height, trial)) continue;
    best.offsets = std::move(trial.offsets);
    best.height = trial.height;
  }
  if (intervals.empty()) best.height = 0;
  return best;
}

void lay_out(Program& program, uint64_t alignment) {
  // Caches come first, in the same order in every program that shares them, and lie below everything else.
  uint64_t base = program.base;
  std::vector<bool> is_cache(program.buffers.size());
  for (int c : program.caches) {
    Buffer& b = program.buffers[static_cast<size_t>(c)];
    b.offset = base;
    base = size_add(base, round_up(b.bytes, alignment));
    is_cache[static_cast<size_t>(c)] = true;
  }
  std::vector<Interval> intervals;
  std::vector<size_t> index;
  intervals.reserve(program.buffers.size());
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    if (is_cache[i]) continue;
    const Buffer& b = program.buffers[i];
    intervals.push_back({b.first, b.last + 1, round_up(b.bytes, alignment)});
    index.push_back(i);
  }
  const Placement placement = place(intervals);
  for (size_t i = 0; i < index.size(); ++i) program.buffers[index[i]].offset = size_add(base, placement.offsets[i]);
  program.end = size_add(base, placement.height);
}

}  // namespace stw
