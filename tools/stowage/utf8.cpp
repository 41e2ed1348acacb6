#include "utf8.h"

#include <algorithm>

namespace command {

size_t utf8_length(std::string_view text) {
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
  return length;
}

void append_utf8(std::string& text, uint32_t code) {
  const auto add = [&](uint32_t byte) { text += static_cast<char>(byte); };
  const auto add_last = [&](uint32_t shift) { add(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      add(0xE0 | code >> 12);
    } else {
      add(0xF0 | code >> 18);
      add_last(12);
    }
    add_last(6);
  }
  add_last(0);
}

std::string shortened(std::string_view text, size_t most) {
  size_t end = 0;
  for (; most > 0 && end < text.size(); --most) end += std::max<size_t>(1, utf8_length(text.substr(end)));
  return std::string(text.substr(0, end)) + (end < text.size() ? "…" : "");
}

std::string with_replacements(std::string_view text, size_t (*length_of)(std::string_view)) {
  std::string out;
  while (!text.empty()) {
    const size_t length = length_of(text);
    out += length ? text.substr(0, length) : replacement_character;
    text.remove_prefix(length ? length : 1);
  }
  return out;
}

}  // namespace command
