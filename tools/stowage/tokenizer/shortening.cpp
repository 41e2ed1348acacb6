#include "shortening.h"

#include <algorithm>

namespace command {
namespace {

// The shorter one stays whole while it takes no more than half; else both have half. Of an odd number the longer one has one more.
Lengths longest_first(size_t first, size_t second, size_t most) {
  const bool is_first_longer = first > second;
  size_t shorter = std::min(first, second);
  size_t longer = std::max(shorter, most - std::min(most, shorter));
  if (shorter + longer > most) {
    shorter = most / 2;
    longer = most - shorter;
  }
  return is_first_longer ? Lengths{longer, shorter} : Lengths{shorter, longer};
}

}  // namespace

std::optional<Lengths> lengths_within(Lengths lengths, size_t most, Shortened how) {
  const size_t all = lengths.first + lengths.second.value_or(0);
  if (all <= most) return lengths;
  if (most == 0) return Lengths{0, lengths.second ? std::optional<size_t>(0) : std::nullopt};
  if (how == Shortened::longest_first) return lengths.second ? longest_first(lengths.first, *lengths.second, most) : Lengths{most, std::nullopt};
  if (how == Shortened::only_second && !lengths.second) return std::nullopt;
  size_t& one = how == Shortened::only_first ? lengths.first : *lengths.second;
  if (one <= all - most) return std::nullopt;
  one -= all - most;
  return lengths;
}

}  // namespace command
