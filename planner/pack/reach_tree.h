// The height that each section reaches at least: its floor plus the blocks that are still to be placed there.
// A segment tree finds the section that reaches highest in a range, in a few steps for each of its levels.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stw {

class ReachTree {
 public:
  struct Top {
    uint64_t reach = 0;
    int section = -1;
  };

  explicit ReachTree(int sections);

  // Sets the reach of every section.
  void reset(const std::vector<uint64_t>& reach);
  // Adds waste to the sections [begin, end).
  void raise(int begin, int end, uint64_t by) { raise(1, 0, leaves_, begin, end, by); }
  Top top() const { return nodes_[1].top; }
  Top top(int begin, int end) const;

 private:
  struct Node {
    Top top;             // of its sections
    uint64_t added = 0;  // to all of them, and not yet to its children
  };

  void join(int node);
  void raise(int node, int low, int high, int begin, int end, uint64_t by);
  void find(int node, int low, int high, int begin, int end, uint64_t added, Top& best) const;

  int leaves_ = 1;
  std::vector<Node> nodes_;
};

}  // namespace stw
