#include "planner/pack/occupancy.h"

#include <algorithm>

#include "kernels/contract/sizes.h"

namespace stw {

Occupancy::Occupancy(int sections) {
  while (leaves_ < sections) leaves_ *= 2;
  nodes_.resize(static_cast<size_t>(leaves_) * 2);
}

// Calls visit(node, covered) for the nodes that overlap the block's life, from the root down to the nodes
// that the life covers.
template <class Visit>
void Occupancy::descend(size_t node, int begin, int end, const Block& block, const Visit& visit) {
  const bool covered = block.first <= begin && end <= block.end;
  visit(nodes_[node], covered);
  if (covered) return;
  const int middle = begin + (end - begin) / 2;
  if (block.first < middle) descend(node * 2, begin, middle, block, visit);
  if (middle < block.end) descend(node * 2 + 1, middle, end, block, visit);
}

void Occupancy::add(Ranges& ranges, Range range) {
  auto first =
      std::partition_point(ranges.begin(), ranges.end(), [&](const Range& r) { return r.end < range.begin; });
  steps_ += static_cast<uint64_t>(ranges.end() - first);
  auto last = first;
  for (; last != ranges.end() && last->begin <= range.end; ++last) {
    range.begin = std::min(range.begin, last->begin);
    range.end = std::max(range.end, last->end);
  }
  if (first == last) {
    ranges.insert(first, range);
  } else {
    *first = range;
    ranges.erase(first + 1, last);
  }
}

uint64_t Occupancy::lowest_room(const Block& block) {
  cursors_.clear();
  descend(1, 0, leaves_, block, [&](const Node& node, bool covered) {
    const Ranges& ranges = covered ? node.any : node.whole;
    if (!ranges.empty()) cursors_.push_back({ranges.data(), ranges.data() + ranges.size()});
  });
  uint64_t offset = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (Cursor& c : cursors_) {
      const Range* const before = c.at;
      for (; c.at != c.end && c.at->begin < size_add(offset, block.size); ++c.at) {
        if (c.at->end <= offset) continue;
        offset = c.at->end;
        moved = true;
      }
      steps_ += static_cast<uint64_t>(c.at - before);
    }
  }
  return offset;
}

void Occupancy::take(const Block& block, uint64_t offset) {
  const Range range{offset, size_add(offset, block.size)};
  descend(1, 0, leaves_, block, [&](Node& node, bool covered) {
    if (covered) add(node.whole, range);
    add(node.any, range);
  });
}

}  // namespace stw
