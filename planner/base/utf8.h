// UTF-8 as in RFC 3629. The JSON parser accepts no other text, and the JSON writer writes no other.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stw {

inline constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

// Whether a byte continues a sequence. The other bytes begin one, or are invalid.
inline bool continues_utf8(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// The sequence at the beginning of a text. Its first byte determines `length`, which is 0 if no sequence
// begins with that byte. `found` is the number of its bytes that are there and valid.
struct Utf8Sequence {
  size_t length, found;
  bool is_whole() const { return length > 0 && found == length; }
};
// `text` must not be empty.
inline Utf8Sequence utf8_sequence(std::string_view text) {
  const auto byte = [&](size_t index) { return static_cast<unsigned char>(text[index]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {1, 1};
  if (first < 0xC2 || first > 0xF4) return {0, 0};
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  // The range of the second byte excludes overlong forms, surrogates and codes above U+10FFFF.
  const unsigned char least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned char most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  size_t found = 1;
  if (text.size() > 1 && byte(1) >= least && byte(1) <= most)
    for (found = 2; found < std::min(length, text.size()) && continues_utf8(text[found]);) ++found;
  return {length, found};
}

// Length in bytes of the sequence at the beginning of `text`. 0 if it is malformed: truncated, overlong, a
// surrogate, or above U+10FFFF. `text` must not be empty.
inline size_t utf8_length(std::string_view text) {
  const Utf8Sequence sequence = utf8_sequence(text);
  return sequence.is_whole() ? sequence.length : 0;
}

// The number of bytes of a text that fit into `room` bytes without cutting a character. Text that is not
// UTF-8 may be cut at any byte.
inline size_t utf8_fitting(std::string_view text, size_t room) {
  if (text.size() <= room) return text.size();
  size_t end = room;
  while (end > 0 && room - end < 3 && continues_utf8(text[end])) --end;
  return continues_utf8(text[end]) ? room : end;
}

// Appends a code point, which must not be a surrogate and must be at most U+10FFFF.
inline void append_utf8(std::string& text, uint32_t code_point) {
  const auto put = [&](uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  const auto put_last = [&](uint32_t shift) { put(0x80 | (code_point >> shift & 0x3F)); };
  if (code_point < 0x80) return put(code_point);
  if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
  } else {
    if (code_point < 0x10000) {
      put(0xE0 | code_point >> 12);
    } else {
      put(0xF0 | code_point >> 18);
      put_last(12);
    }
    put_last(6);
  }
  put_last(0);
}

}  // namespace stw
