// The vocabulary of a masked language model: which tokens may be masked, the mask token, and which tokens
// form a word.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace command {

struct MaskingVocabulary {
  std::optional<int32_t> mask;   // replaces a masked token
  std::vector<int32_t> special;  // tokens without text, which are never masked
  int32_t end = 0;               // exclusive upper bound of all tokens
  // tokens that continue a word; empty if the file does not mark words
  std::optional<std::vector<int32_t>> continuing;
  std::vector<int32_t> before, after;  // special tokens around a text
};

// Reads the tokenizer.json or vocab.txt at `path`. The mask token is the mask_token of the
// tokenizer_config.json or special_tokens_map.json in the same folder, else a special token [MASK] or <mask>.
// With WordPiece, a token without the prefix ## begins a word. With byte-level tokens and SentencePiece, a
// token that begins with white space does. Throws as Tokenizer's constructor does, and if the template gives
// a text token types other than 0.
MaskingVocabulary read_masking_vocabulary(const std::string& path);

}  // namespace command
