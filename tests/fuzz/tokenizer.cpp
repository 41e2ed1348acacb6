// Fuzzes tokenizers. An input is a tokenizer.json, or a vocab.txt where no brace begins it, behind a byte 0xFF a text, and behind another one more.
// Nothing but a Failure may leave, and a text has the same tokens again, also from a tokenizer that has seen no other.
#include "tokenizer/tokenizer.h"

#include <optional>
#include <string>
#include <vector>

#include "failure.h"
#include "input.h"

using namespace command;

namespace {

// Each token has a type, and where words were encoded a word; no more than the options say.
void require_whole(const Encoding& encoding, const EncodeOptions& options, bool of_words) {
  fuzz::require(encoding.types.size() == encoding.tokens.size() && encoding.words.size() == (of_words ? encoding.tokens.size() : 0), "each token has what it should");
  fuzz::require(!options.most || encoding.tokens.size() <= *options.most, "no more tokens than were asked for");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  const auto parts = fuzz::parts_of(data, size, 3);
  try {
    const std::string path = folder.write(parts[0].starts_with('{') ? "tokenizer.json" : "vocab.txt", parts[0]);
    const Tokenizer tokenizer(path), other(path);
    for (const std::string& text : {std::string("The ship's hold,  2024:\n\t\u00fcber <s> \U0001F6A2"), parts[1], parts[2]}) {
      try {
        for (const bool as_it_is : {false, true}) {
          const auto tokens = tokenizer.encode(text, "text", as_it_is);
          fuzz::require(tokens == tokenizer.encode(text, "text", as_it_is) && tokens == other.encode(text, "text", as_it_is), "a text has the same tokens again");
          tokenizer.decode(tokens, true);
          for (const Shortened shortened : {Shortened::longest_first, Shortened::only_second}) {
            const EncodeOptions options{!as_it_is, 64, shortened};
            require_whole(tokenizer.encode(text, parts[1], "text", options), options, false);
            require_whole(tokenizer.encode_words(std::vector<std::string>{text, parts[1], parts[2]}, "words", {!as_it_is, std::nullopt, shortened}), {}, true);
          }
        }
      } catch (const Failure&) {
      }
    }
  } catch (const Failure&) {
  }
  return 0;
}
