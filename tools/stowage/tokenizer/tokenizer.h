// Text to tokens and back, as a tokenizer.json says: what Hugging Face's tokenizers library gives. A folder that has BERT's vocab.txt alone is read
// as transformers reads it (vocabulary_file.h).
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "encoding.h"

namespace command {

class Tokenizer {
 public:
  // `path`: a tokenizer.json, or a file that is called vocab.txt. Throws a Failure that names the file where it cannot be read, is damaged, or
  // asks for what is not known here.
  explicit Tokenizer(const std::string& path);
  ~Tokenizer();

  // All of these: texts are UTF-8, and `name` has them in it: else a Failure says at which byte they are not. Special tokens in a text are found.
  // Thread: one at a time.

  // The tokens of a text, with those that the file puts around it, unless it is to be as it is.
  std::vector<int32_t> encode(std::string_view text, const std::string& name, bool as_it_is = false) const;
  // Of a text, or of a text and a second one, as a pair. Throws a Failure also where no way of shortening them leaves at most as many tokens as
  // the options say: special tokens stay, and with `only_first` and `only_second` at least one token of that text.
  Encoding encode(std::string_view text, std::optional<std::string_view> second, const std::string& name, const EncodeOptions& options) const;
  // Of a text that is cut into words already (is_split_into_words of transformers): each is a text of its own, and no token belongs to two of
  // them. A word may have no token.
  Encoding encode_words(std::span<const std::string> words, const std::string& name, const EncodeOptions& options) const;

  // Special tokens are no text, nor are numbers that no token has. `is_first`: of a text, which may lose the space that it
  // began with. What is not UTF-8 yet may become so with the next token.
  std::string decode(std::span<const int32_t> tokens, bool is_first) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace command
