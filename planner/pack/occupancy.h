// The occupied offsets in each section: a segment tree over sections whose nodes hold coalesced ranges of
// offsets. Buffers that live from the forward to the backward pass coalesce into one range. Therefore finding
// room for a short-lived buffer among thousands of them takes a few steps.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/pack/sections.h"

namespace stw {

class Occupancy {
 public:
  explicit Occupancy(int sections);

  // The lowest offset at which `size` bytes are free in all of the block's sections.
  uint64_t lowest_room(const Block& block);
  void take(const Block& block, uint64_t offset);
  uint64_t steps() const { return steps_; }  // ranges passed or moved so far

 private:
  struct Range {
    uint64_t begin, end;
  };
  using Ranges = std::vector<Range>;  // sorted; neither overlapping nor adjacent
  struct Node {
    Ranges whole;  // of blocks alive in all of the node's sections, but not in all of its parent's
    Ranges any;    // of blocks alive in any of its sections, without `whole` of its ancestors
  };
  struct Cursor {
    const Range *at, *end;
  };

  void add(Ranges& ranges, Range range);
  template <class Visit>
  void descend(size_t node, int begin, int end, const Block& block, const Visit& visit);

  int leaves_ = 1;
  std::vector<Node> nodes_;
  std::vector<Cursor> cursors_;
  uint64_t steps_ = 0;
};

}  // namespace stw
