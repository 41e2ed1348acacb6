#include "base/utf8.h"

#include <algorithm>

namespace command {

namespace {

// The first byte of a sequence determines its length and the range of its second byte. The range excludes
// overlong forms, surrogates and codes past U+10FFFF. Length 0: no sequence begins with this byte.
struct Lead {
  size_t length;
  unsigned char least, most;
};
Lead lead_of(unsigned char first) {
  constexpr unsigned char least = 0x80, most = 0xBF;
  if (first < 0x80) return {1, least, most};
  if (first < 0xC2 || first > 0xF4) return {0, least, most};
  if (first < 0xE0) return {2, least, most};
  if (first < 0xF0)
    return {3, first == 0xE0 ? static_cast<unsigned char>(0xA0) : least,
            first == 0xED ? static_cast<unsigned char>(0x9F) : most};
  return {4, first == 0xF0 ? static_cast<unsigned char>(0x90) : least,
          first == 0xF4 ? static_cast<unsigned char>(0x8F) : most};
}

// Number of bytes at the beginning of `text` that belong to the sequence; its last bytes may be missing.
// `text` is not empty.
size_t begun_length(std::string_view text, const Lead& lead) {
  size_t at = std::min<size_t>(lead.length, 1);
  for (; at < std::min(lead.length, text.size()); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < (at == 1 ? lead.least : 0x80) || byte > (at == 1 ? lead.most : 0xBF)) break;
  }
  return at;
}

}  // namespace

size_t utf8_length(std::string_view text) {
  const Lead lead = lead_of(static_cast<unsigned char>(text[0]));
  return begun_length(text, lead) == lead.length ? lead.length : 0;
}

std::string take_characters(std::string& bytes, bool is_all) {
  std::string out;
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const Lead lead = lead_of(static_cast<unsigned char>(rest[0]));
    const size_t begun = begun_length(rest, lead);
    if (!is_all && begun == rest.size() && begun < lead.length) break;
    out += begun > 0 && begun == lead.length ? rest.substr(0, begun) : replacement_character;
    rest.remove_prefix(std::max<size_t>(begun, 1));
  }
  bytes.erase(0, bytes.size() - rest.size());
  return out;
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
