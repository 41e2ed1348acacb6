#include "unicode.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include "../failure.h"
#include "../units.h"
#include "../utf8.h"

namespace command {

Character first_character(std::string_view text) {
  utf8proc_int32_t code = 0;
  const utf8proc_ssize_t bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()), &code);
  constexpr uint32_t replacement = 0xFFFD;
  return bytes > 0 ? Character{static_cast<uint32_t>(code), static_cast<size_t>(bytes)} : Character{replacement, 1};
}

Character last_character(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return first_character(text.substr(at));
}

void require_utf8(std::string_view text, const std::string& name) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text.substr(at));
    if (length == 0) throw Failure(exit_failed, fmt::format("{}: expected UTF-8, found none at byte {}", name, grouped(at)));
    at += length;
  }
}

bool is_numeric(uint32_t code) {
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO;
}

bool is_space(uint32_t code) {
  if ((code >= 0x9 && code <= 0xD) || code == 0x85) return true;
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

bool is_of_word(uint32_t code) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU: case UTF8PROC_CATEGORY_LL: case UTF8PROC_CATEGORY_LT: case UTF8PROC_CATEGORY_LM: case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN: case UTF8PROC_CATEGORY_MC: case UTF8PROC_CATEGORY_ME: case UTF8PROC_CATEGORY_ND: case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    default: return false;
  }
}

}  // namespace command
