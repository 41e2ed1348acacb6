// Text to tokens and back, as a tokenizer.json says: what Hugging Face's tokenizers library gives for a text with special tokens.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace command {

class Tokenizer {
 public:
  // Throws a Failure that names the file where it cannot be read, is damaged, or asks for what is not known here.
  explicit Tokenizer(const std::string& path);
  ~Tokenizer();

  // `text` is UTF-8, which `name` has in it: else a Failure says at which byte it is not. Special tokens in it are found, and those that
  // the file puts around a text are there, unless the text is to be as it is. Thread: one at a time.
  std::vector<int32_t> encode(std::string_view text, const std::string& name, bool as_it_is = false) const;
  // Special tokens are no text, nor are numbers that no token has. `is_first`: of a text, which may lose the space that it
  // began with. What is not UTF-8 yet may become so with the next token.
  std::string decode(std::span<const int32_t> tokens, bool is_first) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace command
