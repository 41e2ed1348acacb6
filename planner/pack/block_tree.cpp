#include "planner/pack/block_tree.h"

#include <algorithm>
#include <numeric>

namespace stw {

namespace {

constexpr int leaf_blocks = 8;

bool is_in(const Window& w, const Block& b) {
  return w.first_low <= b.first && b.first <= w.first_high && w.end_low <= b.end && b.end <= w.end_high &&
         w.size_low <= b.size && b.size <= w.size_high;
}

bool meets(const Window& w, const Window& box) {
  return w.first_low <= box.first_high && box.first_low <= w.first_high && w.end_low <= box.end_high &&
         box.end_low <= w.end_high && w.size_low <= box.size_high && box.size_low <= w.size_high;
}

Window window_of(const Block& b) { return {b.first, b.first, b.end, b.end, b.size, b.size}; }

Window joined(const Window& a, const Window& b) {
  return {std::min(a.first_low, b.first_low), std::max(a.first_high, b.first_high),
          std::min(a.end_low, b.end_low),     std::max(a.end_high, b.end_high),
          std::min(a.size_low, b.size_low),   std::max(a.size_high, b.size_high)};
}

}  // namespace

BlockTree::BlockTree(const std::vector<Block>& blocks)
    : index_(blocks.size()), place_(blocks.size()), leaf_(blocks.size()), rank_(blocks.size()) {
  std::iota(index_.begin(), index_.end(), 0);
  if (!blocks.empty()) build(blocks, 0, static_cast<int>(blocks.size()), -1);
  best_.resize(nodes_.size());
  blocks_.reserve(blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    place_[index_[i]] = static_cast<int>(i);
    blocks_.push_back(blocks[index_[i]]);
  }
}

int BlockTree::build(const std::vector<Block>& blocks, int begin, int end, int parent) {
  const int node = static_cast<int>(nodes_.size());
  Window box = window_of(blocks[index_[begin]]);
  for (int i = begin; i < end; ++i) box = joined(box, window_of(blocks[index_[i]]));
  nodes_.push_back({box, begin, end, parent, -1, -1});
  if (end - begin <= leaf_blocks) {
    for (int i = begin; i < end; ++i) leaf_[i] = node;
    return node;
  }
  const int firsts = box.first_high - box.first_low, ends = box.end_high - box.end_low;
  const auto before = [&](int a, int b) {
    const Block &x = blocks[a], &y = blocks[b];
    if (firsts == 0 && ends == 0 && x.size != y.size) return x.size < y.size;
    const int p = ends > firsts ? x.end : x.first, q = ends > firsts ? y.end : y.first;
    return p != q ? p < q : a < b;
  };
  const int middle = begin + (end - begin) / 2;
  std::nth_element(index_.begin() + begin, index_.begin() + middle, index_.begin() + end, before);
  const int low = build(blocks, begin, middle, node), high = build(blocks, middle, end, node);
  nodes_[node].low = low;
  nodes_[node].high = high;
  return node;
}

int BlockTree::highest_below(const Node& node) const {
  if (node.low >= 0) return std::max(best_[node.low], best_[node.high]);
  return *std::max_element(rank_.begin() + node.begin, rank_.begin() + node.end);
}

void BlockTree::reset(const std::vector<int>& order) {
  of_rank_.assign(order.size() + 1, -1);
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t rank = order.size() - i;
    of_rank_[rank] = place_[order[i]];
    rank_[of_rank_[rank]] = static_cast<int>(rank);
  }
  for (size_t n = nodes_.size(); n-- > 0;) best_[n] = highest_below(nodes_[n]);
}

void BlockTree::search(int n, const Window& window, int below, int& best) const {
  if (best_[n] <= best) return;
  const Node& node = nodes_[n];
  if (!meets(window, node.box)) return;
  if (best_[n] < below && is_in(window, blocks_[of_rank_[best_[n]]])) {
    best = best_[n];
    return;
  }
  if (node.low >= 0) {
    const bool high_first = best_[node.high] > best_[node.low];
    search(high_first ? node.high : node.low, window, below, best);
    search(high_first ? node.low : node.high, window, below, best);
    return;
  }
  for (int i = node.begin; i < node.end; ++i)
    if (rank_[i] > best && rank_[i] < below && is_in(window, blocks_[i])) best = rank_[i];
}

int BlockTree::highest(const Window& window, int below) const {
  int best = 0;
  if (!nodes_.empty()) search(0, window, below < 0 ? INT32_MAX : rank_[place_[below]], best);
  return best == 0 ? -1 : index_[of_rank_[best]];
}

void BlockTree::remove(int block) {
  const int place = place_[block], rank = rank_[place];
  rank_[place] = 0;
  for (int n = leaf_[place]; n >= 0 && best_[n] == rank; n = nodes_[n].parent)
    best_[n] = highest_below(nodes_[n]);
}

}  // namespace stw
