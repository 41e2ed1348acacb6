#include "planner/search/micro_batch_order.h"

#include <algorithm>
#include <set>

#include "planner/base/check_in.h"

namespace stw {

namespace {

// The bound of a range whose largest micro-batch is more than this many times the smallest is not computed.
// It would be too low to be of use.
constexpr int64_t widest_range = 2;

enum class BoundOf : uint8_t { range, ops, relaxed };

// The micro-batches from `begin` to before `end`.
struct OpenRange {
  uint64_t least;
  size_t begin, end;
  BoundOf from;
  // The least bound comes first. Among equal ones, unfinished ones come first, so that the order of the
  // others does not depend on ranges.
  bool operator<(const OpenRange& other) const {
    if (least != other.least) return least < other.least;
    const bool is_done = from == BoundOf::relaxed, other_is_done = other.from == BoundOf::relaxed;
    if (is_done != other_is_done) return other_is_done;
    return begin != other.begin ? begin > other.begin : end > other.end;
  }
};

}  // namespace

void visit_micro_batches(const std::vector<int64_t>& all, size_t count, const MicroBatchBounds& bounds,
                         uint64_t limit, const std::function<uint64_t(int64_t, uint64_t)>& visit) {
  std::set<OpenRange> open;
  const auto add = [&](size_t begin, size_t end, uint64_t least) {
    if (begin >= std::min(end, count)) return;
    if (end - begin == 1) {
      least = std::max(least, bounds.of_ops(all[begin]));
      if (least != UINT64_MAX) open.insert({least, begin, end, BoundOf::ops});
      return;
    }
    if (end <= count && all[end - 1] <= widest_range * all[begin])
      least = std::max(least, bounds.of_range({all[begin], all[end - 1]}));
    if (least != UINT64_MAX) open.insert({least, begin, end, BoundOf::range});
  };
  add(0, all.size(), 0);
  while (!open.empty()) {
    check_in(1);
    const OpenRange node = *open.begin();
    open.erase(open.begin());
    if (node.least >= limit) break;
    if (node.from == BoundOf::range) {
      const size_t middle = node.begin + (node.end - node.begin) / 2;
      add(middle, node.end, node.least);
      add(node.begin, middle, node.least);
    } else if (node.from == BoundOf::ops) {
      const uint64_t least = std::max(node.least, bounds.relaxed(all[node.begin]));
      if (least != UINT64_MAX) open.insert({least, node.begin, node.end, BoundOf::relaxed});
    } else {
      limit = visit(all[node.begin], node.least);
    }
  }
}

uint64_t least_bound(const std::vector<int64_t>& all, size_t count, const MicroBatchBounds& bounds,
                     uint64_t limit) {
  uint64_t bound = UINT64_MAX;
  visit_micro_batches(all, count, bounds, limit, [&](int64_t, uint64_t least) {
    bound = least;
    return uint64_t{0};
  });
  return bound;
}

}  // namespace stw
