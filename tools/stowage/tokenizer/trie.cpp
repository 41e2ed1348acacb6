#include "tokenizer/trie.h"

#include <algorithm>

namespace command {

Trie::Trie(std::vector<std::pair<std::string_view, int32_t>> entries) : nodes_(1) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  // Nodes are made depth by depth. A node stands for the range of entries that share its prefix.
  struct Range {
    size_t begin, end;
  };
  std::vector<Range> ranges{{0, entries.size()}};  // one for each node
  size_t depth = 0;
  for (size_t node = 0, depth_ends = 1; node < nodes_.size(); ++node) {
    if (node == depth_ends) {
      ++depth;
      depth_ends = nodes_.size();
    }
    auto [at, end] = ranges[node];
    for (; at < end && entries[at].first.size() == depth; ++at)
      if (depth > 0) nodes_[node].value = entries[at].second;
    nodes_[node].first_child = static_cast<uint32_t>(nodes_.size());
    while (at < end) {
      const char byte = entries[at].first[depth];
      const size_t begin = at;
      while (at < end && entries[at].first[depth] == byte) ++at;
      Node child;
      child.byte = static_cast<uint8_t>(byte);
      nodes_.push_back(child);
      ranges.push_back({begin, at});
      ++nodes_[node].children;
    }
  }
}

}  // namespace command
