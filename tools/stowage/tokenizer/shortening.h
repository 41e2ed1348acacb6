// How much of two texts is left where they have too many tokens, as Hugging Face's library decides it.
#pragma once
#include <cstddef>
#include <optional>

#include "encoding.h"

namespace command {

struct Lengths {
  size_t first;
  std::optional<size_t> second;   // there is one
};

// Of both at most `most` tokens together. Nothing where the one text that may be shortened is too short for that, or is not there.
std::optional<Lengths> lengths_within(Lengths lengths, size_t most, Shortened how);

}  // namespace command
