// What a tokenizer makes of one or two texts, and what may be asked of it.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace command {

struct Encoding {
  std::vector<int32_t> tokens;
  std::vector<int32_t> types;   // of each token, the text it is of: 0 or 1, or what the file says
  std::vector<int32_t> words;   // where words were encoded, of each token the number of its word, -1 of special ones; else empty
  bool is_cut = false;          // it was longer
};

// Of which text tokens go where there are too many: of the longer one until both are equally long, or of one alone.
enum class Shortened { longest_first, only_first, only_second };

struct EncodeOptions {
  bool special_tokens = true;   // those that the file puts around texts; of the ones that stand in a text itself it says nothing
  // The most tokens, special ones included. They go at the end of a text, or where the file says so at its beginning.
  std::optional<uint64_t> most = {};
  Shortened shortened = Shortened::longest_first;
};

}  // namespace command
