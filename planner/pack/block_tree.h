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

  bool contains(int block) const { return rank_[block] > 0; }
  bool is_higher(int a, int b) const { return rank_[a] > rank_[b]; }

 private:
  struct Node {
    Window box;      // the smallest that contains its blocks
    int begin, end;  // in tree_order_
    int parent, low, high;
  };

  int build(int begin, int end, int parent);
  int highest_below(const Node& node) const;
  void search(int node, const Window& window, int below, int& best) const;

  const std::vector<Block>& blocks_;
  std::vector<Node> nodes_;      // parents come before their children
  std::vector<int> tree_order_;  // blocks, so that those of a node are neighbours
  std::vector<int> leaf_;        // of each block
  std::vector<int> rank_;        // of each block, from 1; 0: removed
  std::vector<int> of_rank_;     // the block
  std::vector<int> best_;        // the highest rank in each node
};

}  // namespace stw
