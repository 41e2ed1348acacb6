// Fuzzes tokenizers. An input is a tokenizer.json, or a vocab.txt if it does not begin with a brace; after a
// byte 0xFF follows a text, and after another a second text. Only a Failure may escape. Encoding the text
// again gives the same tokens, also with a fresh tokenizer.
#include "tokenizer/tokenizer.h"

#include <optional>
#include <string>
#include <vector>

#include "base/failure.h"
#include "input.h"

using namespace command;

namespace {

// Each token has a type, and a word index if words were encoded. There are at most as many tokens as the
// options allow.
void require_whole(const Encoding& encoding, const EncodeOptions& options, bool of_words) {
  fuzz::require(encoding.token_types.size() == encoding.tokens.size() &&
                    encoding.word_ids.size() == (of_words ? encoding.tokens.size() : 0),
                "each token has a type and a word");
  fuzz::require(!options.max_tokens || encoding.tokens.size() <= *options.max_tokens,
                "the limit on tokens holds");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  const auto parts = fuzz::parts_of(data, size, 3);
  try {
    const std::string path =
        folder.write(parts[0].starts_with('{') ? "tokenizer.json" : "vocab.txt", parts[0]);
    const Tokenizer tokenizer(path), other(path);
    for (const std::string& text :
         {std::string("The ship's hold,  2024:\n\t\u00fcber <s> \U0001F6A2"), parts[1], parts[2]}) {
      try {
        for (const bool as_it_is : {false, true}) {
          const auto tokens = tokenizer.encode(text, "text", as_it_is);
          fuzz::require(tokens == tokenizer.encode(text, "text", as_it_is) &&
                            tokens == other.encode(text, "text", as_it_is),
                        "a text has the same tokens again");
          Decoding state;
          tokenizer.decode(tokens, state);
          tokenizer.finish(state);
          for (const Truncation truncation : {Truncation::longest_first, Truncation::only_second}) {
            const EncodeOptions options{!as_it_is, 64, truncation};
            require_whole(tokenizer.encode(text, parts[1], "text", options), options, false);
            require_whole(tokenizer.encode_words(std::vector<std::string>{text, parts[1], parts[2]}, "words",
                                                 {!as_it_is, std::nullopt, truncation}),
                          {}, true);
          }
        }
      } catch (const Failure&) {}
    }
  } catch (const Failure&) {}
  return 0;
}
