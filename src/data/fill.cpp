#include "src/data/fill.h"

#include <algorithm>

#include "planner/base/check_in.h"

namespace stw {
namespace {

// The documents that no sample has taken yet, also by their length.
class Untaken {
 public:
  Untaken(std::span<const uint64_t> lengths, uint64_t length)
      : by_length_(length + 1), seen_(length + 1, 0), is_taken_(lengths.size(), false) {
    for (const uint64_t tokens : lengths) lengths_.push_back(std::min(tokens, length));
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
    const std::vector<size_t>& all = by_length_[tokens];
    size_t& seen = seen_[tokens];
    while (seen < all.size() && is_taken_[all[seen]]) ++seen;
    return seen < all.size() ? all[seen] : lengths_.size();
  }
  size_t longest(uint64_t limit) {
    for (uint64_t tokens = limit; tokens > 0; --tokens)
      if (const size_t found = of_length(tokens); found < lengths_.size()) return found;
    return lengths_.size();
  }
  void take(size_t document) { is_taken_[document] = true; }

 private:
  std::vector<uint64_t> lengths_;
  std::vector<std::vector<size_t>> by_length_;
  std::vector<size_t> seen_;  // for each length, how many of its first documents are taken
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
      check_in(1);
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
