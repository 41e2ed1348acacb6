#include "base/prompt.h"

#include <fmt/format.h>

#include <charconv>

#include "base/failure.h"
#include "base/units.h"
#include "base/utf8.h"

namespace command {
namespace {

// Bytes of a sequence that is safe for a terminal; 0 if there is none.
size_t printable_length(std::string_view text) {
  const size_t length = utf8_length(text);
  const unsigned char first = static_cast<unsigned char>(text[0]);
  if (length == 1 && ((first < 0x20 && first != '\n' && first != '\t') || first == 0x7F)) return 0;
  // C1 controls, U+0080 to U+009F, control terminals as ESC does.
  return length == 2 && first == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0 ? 0 : length;
}

}  // namespace

std::vector<int32_t> parse_prompt(std::string_view text, bool bytes, uint64_t vocabulary) {
  std::vector<int32_t> tokens;
  if (bytes) {
    for (const unsigned char c : text) tokens.push_back(c);
  } else {
    for (const char* at = text.data(); at != text.data() + text.size();) {
      if (*at == ' ' || *at == ',' || *at == '\n' || *at == '\t') {
        ++at;
        continue;
      }
      uint64_t token = 0;
      const auto [end, problem] = std::from_chars(at, text.data() + text.size(), token);
      if (problem != std::errc())
        throw Failure(exit_usage,
                      "--prompt: this model takes token ids such as \"15496 11 995\", not text; for text, "
                      "give a tokenizer.json or its folder with --tokenizer");
      if (token >= vocabulary)
        throw Failure(exit_failed, fmt::format("--prompt: token {} is outside the vocabulary of {}", token,
                                               grouped(vocabulary)));
      tokens.push_back(static_cast<int32_t>(token));
      at = end;
    }
  }
  if (tokens.empty()) throw Failure(exit_usage, "--prompt: expected at least one token, found none");
  return tokens;
}

std::string printable(std::string_view text) { return with_replacements(text, printable_length); }

}  // namespace command
