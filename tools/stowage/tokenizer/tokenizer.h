// Encodes text as tokens and decodes tokens, as a tokenizer.json says. The results are those of Hugging Face's tokenizers library.
// BERT's vocab.txt, and GPT-2's vocab.json with merges.txt, are read as transformers reads them without a tokenizer.json (vocabulary_file.h, folder_files.h).
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/encoding.h"

namespace command {

class Tokenizer {
 public:
  // `path`: a tokenizer.json, or a file whose name is vocab.txt or vocab.json. Throws a Failure that names the file and the place in it if it cannot be read,
  // is damaged, or asks for something that is not supported.
  explicit Tokenizer(const std::string& path);
  ~Tokenizer();

  // Texts are UTF-8; otherwise a Failure says at which byte of `name` they are not. Special tokens that a text contains are found.
  // Padding is not applied: samples hold texts end to end. Thread: one at a time.

  // The tokens of a whole text, with the special tokens that the file puts around it unless `as_it_is`.
  std::vector<int32_t> encode(std::string_view text, const std::string& name, bool as_it_is = false) const;
  // The tokens of a text without special tokens around it, and the places behind the added tokens in it that are found before normalization: what
  // is before such a place has its tokens whatever follows, and what is behind it has those of encode_rest(), up to any end behind the place.
  std::vector<int32_t> encode_placed(std::string_view text, const std::string& name, std::vector<TokenPlace>& places) const;
  std::vector<int32_t> encode_rest(std::string_view rest, const std::string& name) const;
  // The tokens and token types of a text or of a pair of texts. Throws a Failure if truncation cannot reach `max_tokens`: special tokens stay, and
  // only_first and only_second leave at least one token of their text.
  Encoding encode(std::string_view text, std::optional<std::string_view> second, const std::string& name, const EncodeOptions& options) const;
  // The same for a text that is already split into words, with the word of each token (is_split_into_words of transformers). Each word is encoded
  // by itself. A word may have no tokens.
  Encoding encode_words(std::span<const std::string> words, const std::string& name, const EncodeOptions& options) const;

  // Whether words that are encoded by themselves lose the space that was before them: tokens are bytes, and no step puts a space there.
  bool joins_words() const;

  // The text of these tokens behind those that `state` has seen, in whole characters: bytes that may be a part of a character wait in `state` for the
  // next call. After finish(), all texts together are what the library decodes all tokens to at once: U+FFFD stands for bytes that are no characters.
  // Special tokens have no text, nor have numbers that no token has.
  std::string decode(std::span<const int32_t> tokens, Decoding& state) const;
  std::string finish(Decoding& state) const;
  bool has_text(int32_t token) const;
  // What a special token is called; empty for others.
  std::string special_text(int32_t token) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace command
