#include "base/utf8.h"

#include <algorithm>

namespace command {

std::string take_characters(std::string& bytes, bool is_all) {
  std::string out;
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const stw::Utf8Sequence next = stw::utf8_sequence(rest);
    if (!is_all && next.found == rest.size() && !next.is_whole()) break;
    out += next.is_whole() ? rest.substr(0, next.length) : replacement_character;
    rest.remove_prefix(std::max<size_t>(next.found, 1));
  }
  bytes.erase(0, bytes.size() - rest.size());
  return out;
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
