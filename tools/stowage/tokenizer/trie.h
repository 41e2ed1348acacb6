// A set of texts that finds all members that are prefixes of a text.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace command {

class Trie {
 public:
  // The last one of equal texts counts. Empty texts are ignored.
  explicit Trie(std::vector<std::pair<std::string_view, int32_t>> entries);

  // Calls take(length in bytes, value) for every member that `text` begins with, the shortest first.
  template <class Take>
  void for_prefixes(std::string_view text, const Take& take) const {
    uint32_t node = 0;
    for (size_t at = 0; at < text.size(); ++at) {
      node = child_of(node, static_cast<unsigned char>(text[at]));
      if (node == 0) return;
      if (nodes_[node].value >= 0) take(at + 1, nodes_[node].value);
    }
  }

 private:
  // The children of a node are consecutive and sorted by byte. Node 0 is the root.
  struct Node {
    uint32_t first_child = 0;
    int32_t value = -1;  // -1: no text ends here
    uint16_t children = 0;
    uint8_t byte = 0;
  };
  uint32_t child_of(uint32_t node, uint8_t byte) const {
    uint32_t low = nodes_[node].first_child, high = low + nodes_[node].children;
    while (low < high) {
      const uint32_t middle = low + (high - low) / 2;
      if (nodes_[middle].byte < byte) low = middle + 1;
      else high = middle;
    }
    const bool is_there = low < nodes_[node].first_child + nodes_[node].children && nodes_[low].byte == byte;
    return is_there ? low : 0;
  }

  std::vector<Node> nodes_;
};

}  // namespace command
