// What the tokens of a tokenizer are to a masked language model: which ones may be hidden, by what, and which ones are one word.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace command {

struct MaskingVocabulary {
  std::optional<int32_t> mask;          // the token that stands for a hidden one
  std::vector<int32_t> special;         // tokens that are no text
  int32_t end = 0;                      // all tokens are below it
  std::optional<std::vector<int32_t>> continuing;   // tokens that go on with a word; nothing: the file does not tell where words begin
  std::vector<int32_t> before, after;   // special tokens around a text
};

// Of the tokenizer.json or vocab.txt at `path`. The mask token is the mask_token of the tokenizer_config.json or special_tokens_map.json beside it, else
// a special token [MASK] or <mask>. A word begins with a token without the prefix of WordPiece (##), or of byte-level tokens and
// SentencePiece's with one that begins with white space.
// Throws what Tokenizer's constructor throws, and where a text's tokens have types other than 0.
MaskingVocabulary read_masking_vocabulary(const std::string& path);

}  // namespace command
