#include "prompt.h"

#include <fmt/format.h>

#include <charconv>

#include "failure.h"
#include "units.h"

namespace command {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

// Bytes of the UTF-8 sequence at the beginning of `text`; 0 where there is none.
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
  const size_t length = byte(0) < 0x80   ? 1
                        : byte(0) < 0xC2 ? 0
                        : byte(0) < 0xE0 ? 2
                        : byte(0) < 0xF0 ? 3
                        : byte(0) < 0xF5 ? 4
                                         : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t at = 1; at < length; ++at)
    if ((byte(at) & 0xC0) != 0x80) return 0;
  // Overlong forms, surrogates and what lies past U+10FFFF show in the second byte.
  if (length > 2) {
    const unsigned char first = byte(0), second = byte(1);
    if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) || (first == 0xF0 && second < 0x90) ||
        (first == 0xF4 && second > 0x8F))
      return 0;
  }
  // C1 controls, U+0080 to U+009F, steer terminals as ESC does.
  return length == 2 && byte(0) == 0xC2 && byte(1) < 0xA0 ? 0 : length;
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
        throw Failure(exit_usage, "--prompt: this model takes token ids such as \"15496 11 995\", not text");
      if (token >= vocabulary)
        throw Failure(exit_failed,
                      fmt::format("--prompt: token {} is outside the vocabulary of {}", token, grouped(vocabulary)));
      tokens.push_back(static_cast<int32_t>(token));
      at = end;
    }
  }
  if (tokens.empty()) throw Failure(exit_usage, "--prompt: expected at least one token, found none");
  return tokens;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const unsigned char first = static_cast<unsigned char>(text[0]);
    const size_t length = sequence_length(text);
    const bool control = (first < 0x20 && first != '\n' && first != '\t') || first == 0x7F;
    out += length && !control ? text.substr(0, length) : replacement;
    text.remove_prefix(length ? length : 1);
  }
  return out;
}

}  // namespace command
