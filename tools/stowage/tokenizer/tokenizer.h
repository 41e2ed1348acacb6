// Encodes text as tokens and decodes tokens, as a tokenizer.json specifies. The results equal those of
// Hugging Face's tokenizers library. BERT's vocab.txt, and GPT-2's vocab.json with merges.txt, are read as
// transformers reads them if there is no tokenizer.json (vocabulary_file.h, folder_files.h).
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
  // `path`: a tokenizer.json, or a file named vocab.txt or vocab.json. Throws a Failure that names the file
  // and the place in it if it cannot be read, is damaged, or uses an unsupported feature.
  explicit Tokenizer(const std::string& path);
  ~Tokenizer();

  // Texts are UTF-8. For other texts a Failure names the byte offset and `name`. Special tokens inside of a
  // text are found. Padding is not applied because samples hold texts end to end. Thread: one at a time.

  // The tokens of a whole text. Adds the special tokens that the file puts around a text, unless `as_it_is`
  // is set.
  std::vector<int32_t> encode(std::string_view text, const std::string& name, bool as_it_is = false) const;
  // The tokens of a text without special tokens around it. `places` receives the positions after added tokens
  // that are found before normalization. The tokens before such a position do not depend on the text after
  // it. encode_rest() returns the tokens of the text from this position on, which may be cut off anywhere.
  std::vector<int32_t> encode_placed(std::string_view text, const std::string& name,
                                     std::vector<TokenPlace>& places) const;
  std::vector<int32_t> encode_rest(std::string_view rest, const std::string& name) const;
  // The tokens and token types of a text or of a pair of texts. Throws a Failure if truncation cannot reach
  // `max_tokens`: special tokens stay, and only_first and only_second leave at least one token of their text.
  Encoding encode(std::string_view text, std::optional<std::string_view> second, const std::string& name,
                  const EncodeOptions& options) const;
  // Encodes a text that is already split into words, and returns the word of each token (is_split_into_words
  // of transformers). Each word is encoded separately. A word may have no tokens.
  Encoding encode_words(std::span<const std::string> words, const std::string& name,
                        const EncodeOptions& options) const;

  // The tokens of a text without special tokens around it, and their ranges.
  RangedTokens encode_ranged(std::string_view text, const std::string& name) const;
  // The two texts as a pair, with the special tokens and token types of the file. word_ids are the indices of
  // tokens of `second`, and -1 for other tokens.
  Encoding pair_of(std::span<const int32_t> first, std::span<const int32_t> second) const;

  // Whether separately encoded words lose the space before them: tokens are bytes, and no step adds a space.
  bool joins_words() const;

  // Decodes further tokens. Returns whole characters only; the bytes of an incomplete character wait in
  // `state` for the next call. After finish(), all returned texts together equal the library's decoding of
  // all tokens at once: U+FFFD replaces invalid bytes. Special tokens and unknown numbers have no text.
  std::string decode(std::span<const int32_t> tokens, Decoding& state) const;
  std::string finish(Decoding& state) const;
  bool has_text(int32_t token) const;
  // The name of a special token. Empty for other tokens.
  std::string special_text(int32_t token) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace command
