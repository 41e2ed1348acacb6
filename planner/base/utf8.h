// UTF-8 as in RFC 3629. The JSON parser accepts no other text, and the JSON writer writes no other.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stw {

// Length in bytes of the sequence at the beginning of `text`. 0 if it is malformed: truncated, overlong, a
// surrogate, or above U+10FFFF. `text` must not be empty.
inline size_t utf8_sequence(std::string_view text) {
  const auto byte = [&](size_t index) { return static_cast<unsigned char>(text[index]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (size_t index = 1; index < length; ++index)
    if ((byte(index) & 0xC0) != 0x80) return 0;
  const unsigned char second = byte(1);
  if (first == 0xE0 && second < 0xA0) return 0;
  if (first == 0xED && second > 0x9F) return 0;
  if (first == 0xF0 && second < 0x90) return 0;
  if (first == 0xF4 && second > 0x8F) return 0;
  return length;
}

// The number of bytes of a text that fit into `room` bytes without cutting a character. Text that is not
// UTF-8 may be cut at any byte.
inline size_t utf8_fitting(std::string_view text, size_t room) {
  if (text.size() <= room) return text.size();
  const auto goes_on = [&](size_t index) { return (static_cast<unsigned char>(text[index]) & 0xC0) == 0x80; };
  size_t end = room;
  while (end > 0 && room - end < 3 && goes_on(end)) --end;
  return goes_on(end) ? room : end;
}

// Appends a code point, which must not be a surrogate and must be at most U+10FFFF.
inline void append_utf8(std::string& text, uint32_t code_point) {
  const auto put = [&](uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3F));
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

}  // namespace stw
