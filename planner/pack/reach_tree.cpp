#include "planner/pack/reach_tree.h"

namespace stw {

ReachTree::ReachTree(int sections) {
  while (leaves_ < sections) leaves_ *= 2;
  nodes_.resize(static_cast<size_t>(leaves_) * 2);
}

void ReachTree::join(int node) {
  const Top &low = nodes_[node * 2].top, &high = nodes_[node * 2 + 1].top;
  Node& n = nodes_[node];
  n.top = high.reach > low.reach ? high : low;
  n.top.reach += n.added;
}

void ReachTree::reset(const std::vector<uint64_t>& reach) {
  for (int s = 0; s < leaves_; ++s)
    nodes_[leaves_ + s] = {{static_cast<size_t>(s) < reach.size() ? reach[s] : 0, s}, 0};
  for (int n = leaves_ - 1; n > 0; --n) {
    nodes_[n].added = 0;
    join(n);
  }
}

void ReachTree::raise(int node, int low, int high, int begin, int end, uint64_t by) {
  if (begin <= low && high <= end) {
    nodes_[node].top.reach += by;
    nodes_[node].added += by;
    return;
  }
  const int middle = low + (high - low) / 2;
  if (begin < middle) raise(node * 2, low, middle, begin, end, by);
  if (middle < end) raise(node * 2 + 1, middle, high, begin, end, by);
  join(node);
}

void ReachTree::find(int node, int low, int high, int begin, int end, uint64_t added, Top& best) const {
  const Node& n = nodes_[node];
  if (best.section >= 0 && n.top.reach + added <= best.reach) return;
  if (begin <= low && high <= end) {
    best = {n.top.reach + added, n.top.section};
    return;
  }
  const int middle = low + (high - low) / 2;
  if (begin < middle) find(node * 2, low, middle, begin, end, added + n.added, best);
  if (middle < end) find(node * 2 + 1, middle, high, begin, end, added + n.added, best);
}

ReachTree::Top ReachTree::top(int begin, int end) const {
  Top best;
  find(1, 0, leaves_, begin, end, 0, best);
  return best;
}

}  // namespace stw
