// Fuzzes tokenizers. An input is a tokenizer.json, behind a byte 0xFF a text, and behind another one more. Nothing but a Failure may leave, and a text
// has the same tokens again, also from a tokenizer that has seen no other.
#include "tokenizer/tokenizer.h"

#include "failure.h"
#include "input.h"

using namespace command;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  const auto parts = fuzz::parts_of(data, size, 3);
  try {
    const std::string path = folder.write("tokenizer.json", parts[0]);
    const Tokenizer tokenizer(path), other(path);
    for (const std::string& text : {std::string("The ship's hold,  2024:\n\t\u00fcber <s> \U0001F6A2"), parts[1], parts[2]}) {
      try {
        for (const bool as_it_is : {false, true}) {
          const auto tokens = tokenizer.encode(text, "text", as_it_is);
          fuzz::require(tokens == tokenizer.encode(text, "text", as_it_is) && tokens == other.encode(text, "text", as_it_is), "a text has the same tokens again");
          tokenizer.decode(tokens, true);
        }
      } catch (const Failure&) {
      }
    }
  } catch (const Failure&) {
  }
  return 0;
}
