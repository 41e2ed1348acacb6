#include "tokenizer/unicode.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "base/failure.h"
#include "base/foreign_file.h"
#include "base/units.h"
#include "base/utf8.h"
#include "tokenizer/unicode_tables.h"

namespace command {
namespace {

template <size_t count>
bool is_in(uint32_t code, const CharacterRun (&runs)[count]) {
  const auto run = std::partition_point(std::begin(runs), std::end(runs),
                                        [&](const CharacterRun& r) { return r.last < code; });
  return run != std::end(runs) && code >= run->first;
}

utf8proc_category_t category_of(uint32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

}  // namespace

Character first_character(std::string_view text) {
  if (static_cast<unsigned char>(text[0]) < 0x80) return {static_cast<unsigned char>(text[0]), 1};
  utf8proc_int32_t code = 0;
  const utf8proc_ssize_t bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                                  static_cast<utf8proc_ssize_t>(text.size()), &code);
  constexpr uint32_t replacement = 0xFFFD;
  return bytes > 0 ? Character{static_cast<uint32_t>(code), static_cast<size_t>(bytes)}
                   : Character{replacement, 1};
}

Character last_character(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && stw::continues_utf8(text[at])) --at;
  return first_character(text.substr(at));
}

void require_utf8(std::string_view text, const std::string& name) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text.substr(at));
    if (length == 0)
      throw Failure(exit_failed, fmt::format("{}: expected UTF-8, found none at byte {}{}", name, grouped(at),
                                             encoding_advice(text, name)));
    at += length;
  }
}

bool is_numeric(uint32_t code) {
  const utf8proc_category_t category = category_of(code);
  return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
         category == UTF8PROC_CATEGORY_NO;
}

bool is_space(uint32_t code) {
  if (code < 0x80) return code == ' ' || (code >= 0x9 && code <= 0xD);
  if (code == 0x85) return true;
  const utf8proc_category_t category = category_of(code);
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

bool is_of_word(uint32_t code) {
  if (code < 0x80)
    return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') || (code >= '0' && code <= '9') ||
           code == '_';
  // The two joiners, and circled and squared letters, which have the property Alphabetic.
  if (code == 0x200C || code == 0x200D || (code >= 0x24B6 && code <= 0x24E9) ||
      (code >= 0x1F130 && code <= 0x1F149) || (code >= 0x1F150 && code <= 0x1F169) ||
      (code >= 0x1F170 && code <= 0x1F189))
    return true;
  switch (category_of(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    default: return false;
  }
}

bool is_all_ascii(std::string_view text) {
  unsigned char all = 0;
  for (const char c : text) all |= static_cast<unsigned char>(c);
  return all < 0x80;
}

bool is_ideograph(uint32_t code) {
  constexpr CharacterRun blocks[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
                                     {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F},
                                     {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};
  return is_in(code, blocks);
}

bool is_punctuation(uint32_t code) {
  if (code < 0x80)
    return code > 0x20 && code < 0x7F &&
           !((code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') || (code >= '0' && code <= '9'));
  switch (category_of(code)) {
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: return !is_in(code, no_punctuation);
    default: return code == 0x166D || code == 0x111C9;  // category changed in later versions
  }
}

bool is_control(uint32_t code) {
  if (code < 0x80) return code < 0x20 || code == 0x7F;
  constexpr CharacterRun newer[] = {{0x890, 0x891}, {0x8E2, 0x8E2}, {0x110CD, 0x110CD}, {0x13430, 0x1343F}};
  const utf8proc_category_t category = category_of(code);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CO ||
         (category == UTF8PROC_CATEGORY_CF && !is_in(code, newer));
}

bool is_nonspacing(uint32_t code) {
  if (code < 0x300) return false;
  if (code == 0x1734 || code == 0x1171E) return true;  // category changed in later versions
  return category_of(code) == UTF8PROC_CATEGORY_MN && !is_in(code, no_nonspacing);
}

bool is_mark(uint32_t code) {
  if (code < 0x300) return false;
  if (code == 0x1CF2 || code == 0x1CF3) return true;  // category changed in later versions
  const utf8proc_category_t category = category_of(code);
  return (category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
          category == UTF8PROC_CATEGORY_ME) &&
         !is_in(code, no_mark);
}

bool has_no_form(uint32_t code) { return code >= no_form[0].first && is_in(code, no_form); }

uint32_t lowercase_of(uint32_t code) {
  if (code < 0x80) return code >= 'A' && code <= 'Z' ? code + ('a' - 'A') : code;
  return static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
}

std::string compatible_form(std::string_view text) {
  if (is_all_ascii(text)) return std::string(text);
  utf8proc_uint8_t* mapped = nullptr;
  const auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT | UTF8PROC_IGNORE);
  const utf8proc_ssize_t length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                               static_cast<utf8proc_ssize_t>(text.size()), &mapped, options);
  if (length < 0) return std::string(text);
  std::string formed(reinterpret_cast<const char*>(mapped), static_cast<size_t>(length));
  std::free(mapped);
  return formed;
}

}  // namespace command
