// How many tokens of one or two texts remain after truncation. The rules are those of Hugging Face's library.
#pragma once
#include <cstddef>
#include <optional>

#include "tokenizer/encoding.h"

namespace command {

struct Lengths {
  size_t first;
  std::optional<size_t> second;  // empty: there is one text
};

// Both texts together keep at most `max_tokens`. Empty if the only text that may be truncated does not exist,
// or would lose all its tokens.
std::optional<Lengths> truncated_lengths(Lengths lengths, size_t max_tokens, Truncation how);

}  // namespace command
