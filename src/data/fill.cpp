#include "src/data/fill.h"

#include <algorithm>
#include <numeric>

#include "planner/base/check_in.h"

namespace stw {
namespace {

// The documents that no sample has taken yet, also by their length.
class Untaken {
 public:
  Untaken(std::span<const uint64_t> lengths, uint64_t length) : is_taken_(lengths.size(), false) {
    uint64_t longest = 0;
    for (const uint64_t tokens : lengths) {
      lengths_.push_back(std::min(tokens, length));
      longest = std::max(longest, lengths_.back());
    }
    by_length_.resize(longest + 1), seen_.resize(longest + 1), below_.resize(longest + 1);
    std::iota(below_.begin(), below_.end(), uint64_t{0});
    for (size_t d = 0; d < lengths_.size(); ++d) by_length_[lengths_[d]].push_back(d);
  }
  uint64_t tokens(size_t document) const { return lengths_[document]; }
  bool empty() { return next() == lengths_.size(); }
  // The first one in the given order; the number of documents if there is none.
  size_t next() {
    while (next_ < lengths_.size() && is_taken_[next_]) ++next_;
    return next_;
  }
  // The first one of this length; the number of documents if there is none.
  size_t of_length(uint64_t tokens) {
    if (tokens >= by_length_.size()) return lengths_.size();
    const std::vector<size_t>& all = by_length_[tokens];
    size_t& seen = seen_[tokens];
    while (seen < all.size() && is_taken_[all[seen]]) ++seen;
    return seen < all.size() ? all[seen] : lengths_.size();
  }
  // The first one of the greatest length up to this one; the number of documents if there is none.
  size_t longest(uint64_t limit) {
    uint64_t tokens = left_up_to(std::min<uint64_t>(limit, by_length_.size() - 1));
    for (; tokens > 0; tokens = left_up_to(tokens)) {
      if (const size_t found = of_length(tokens); found < lengths_.size()) return found;
      below_[tokens] = tokens - 1;  // all documents of this length are taken
    }
    return lengths_.size();
  }
  void take(size_t document) { is_taken_[document] = true; }

 private:
  // The greatest length up to this one of which documents may be left; 0: none.
  uint64_t left_up_to(uint64_t tokens) {
    while (below_[tokens] != tokens) tokens = below_[tokens] = below_[below_[tokens]];
    return tokens;
  }

  std::vector<uint64_t> lengths_;
  std::vector<std::vector<size_t>> by_length_;
  std::vector<size_t> seen_;     // for each length, how many of its first documents are taken
  std::vector<uint64_t> below_;  // for each length: itself, or a shorter one if no document of it is left
  std::vector<bool> is_taken_;
  size_t next_ = 0;
};

}  // namespace

std::vector<size_t> filling_order(std::span<const uint64_t> lengths, uint64_t length, uint64_t most) {
  std::vector<size_t> order;
  Untaken untaken(lengths, length);
  while (!untaken.empty()) {
    uint64_t rest = length;
    for (uint64_t documents = 0; documents < most && rest > 0 && !untaken.empty(); ++documents) {
      check_in();
      size_t document = untaken.of_length(rest);
      if (document == lengths.size()) document = untaken.next();
      if (untaken.tokens(document) > rest || documents + 1 == most) document = untaken.longest(rest);
      if (document == lengths.size()) break;
      untaken.take(document);
      order.push_back(document);
      rest -= untaken.tokens(document);
    }
  }
  return order;
}

}  // namespace stw
