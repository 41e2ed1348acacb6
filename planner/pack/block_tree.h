// The blocks that are not placed yet, as points (first, end) in a k-d tree (Bentley, 1975). Finds the block
// of the highest rank among those that lie in a window. A query takes some dozen steps, and at most about the
// square root of the number of blocks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/pack/sections.h"

namespace stw {

// Contains the blocks whose `first`, `end` and `size` lie in these ranges, which include both ends.
struct Window {
  int first_low, first_high, end_low, end_high;
  uint64_t size_low = 0, size_high = UINT64_MAX;
};

class BlockTree {
 public:
  explicit BlockTree(const std::vector<Block>& blocks);

  // Puts all blocks back. The first block in `order` gets the highest rank.
  void reset(const std::vector<int>& order);
  // The block of the highest rank below that of the block `below` (-1: of any rank), or -1 if there is none.
  int highest(const Window& window, int below = -1) const;
  void remove(int block);

  bool contains(int block) const { return rank_[place_[block]] > 0; }
  bool is_higher(int a, int b) const { return rank_[place_[a]] > rank_[place_[b]]; }

 private:
  // Blocks are stored in the order of the tree, so that those of a node are neighbours. A place is an index
  // in that order.
  struct Node {
    Window box;      // the smallest that contains its blocks
    int begin, end;  // places
    int parent, low, high;
  };

  int build(const std::vector<Block>& blocks, int begin, int end, int parent);
  int highest_below(const Node& node) const;
  void search(int node, const Window& window, int below, int& best) const;

  std::vector<Node> nodes_;    // parents come before their children
  std::vector<int> index_;     // place -> block
  std::vector<int> place_;     // block -> place
  std::vector<Block> blocks_;  // by place
  std::vector<int> leaf_;      // by place: its node
  std::vector<int> rank_;      // by place, from 1; 0: removed
  std::vector<int> of_rank_;   // rank -> place
  std::vector<int> best_;      // the highest rank in each node
};

}  // namespace stw
