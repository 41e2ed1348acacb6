// The result of encoding one or two texts, and the options for it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace command {

struct Encoding {
  std::vector<int32_t> tokens;
  std::vector<int32_t>
      token_types;  // one for each token: by default 0 for the first text and 1 for the second
  // Only from encode_words: for each token the index of its word, -1 for special tokens that the file adds.
  std::vector<int32_t> word_ids;
  bool is_truncated = false;
};

// Tokens of a text, and for each token the bytes of the text that it comes from. White space around them is
// left out; the range of a token without text of its own is empty.
struct TextRange {
  size_t begin, end;
};
struct RangedTokens {
  std::vector<int32_t> tokens;
  std::vector<TextRange> ranges;
};

// A position in a text and the number of tokens before it.
struct TokenPlace {
  size_t byte, token;
  // Whether it is known that the tokens after the position do not depend on the text before it. If false, a
  // comparison of some tokens showed no difference.
  bool is_certain = true;
};

struct PlacedTokens {
  std::vector<int32_t> tokens;
  std::vector<TokenPlace> places;  // in order; not necessarily all
};

// Which text loses tokens if there are too many. longest_first shortens the longer text until both have the
// same length, then both.
enum class Truncation { longest_first, only_first, only_second };

struct EncodeOptions {
  // Adds the special tokens that the file puts around texts. Special tokens inside of a text are found in any
  // case.
  bool special_tokens = true;
  // The limit counts special tokens. A text loses tokens at its end, or at its beginning if the file says so.
  std::optional<uint64_t> max_tokens = {};
  Truncation truncation = Truncation::longest_first;
};

// State of decoding a sequence of tokens in parts.
struct Decoding {
  bool has_tokens = false, has_text = false;
  std::string bytes;  // pending bytes, which depend on the next token
};

}  // namespace command
