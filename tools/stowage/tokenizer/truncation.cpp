#include "tokenizer/truncation.h"

#include <algorithm>

namespace command {
namespace {

// The shorter text stays whole if it takes at most half of the limit. Otherwise each gets half, and the
// longer one the odd token.
Lengths longest_first(size_t first, size_t second, size_t max_tokens) {
  size_t shorter = std::min(first, second);
  size_t longer = std::max(shorter, max_tokens - std::min(max_tokens, shorter));
  if (shorter + longer > max_tokens) {
    shorter = max_tokens / 2;
    longer = max_tokens - shorter;
  }
  return first > second ? Lengths{longer, shorter} : Lengths{shorter, longer};
}

}  // namespace

std::optional<Lengths> truncated_lengths(Lengths lengths, size_t max_tokens, Truncation how) {
  const size_t all = lengths.first + lengths.second.value_or(0);
  if (all <= max_tokens) return lengths;
  if (max_tokens == 0) return Lengths{0, lengths.second ? std::optional<size_t>(0) : std::nullopt};
  if (how == Truncation::longest_first)
    return lengths.second ? longest_first(lengths.first, *lengths.second, max_tokens)
                          : Lengths{max_tokens, std::nullopt};
  if (how == Truncation::only_second && !lengths.second) return std::nullopt;
  size_t& truncated = how == Truncation::only_first ? lengths.first : *lengths.second;
  const size_t surplus = all - max_tokens;
  if (truncated <= surplus) return std::nullopt;
  truncated -= surplus;
  return lengths;
}

}  // namespace command
