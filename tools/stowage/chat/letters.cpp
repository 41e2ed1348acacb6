#include "chat/letters.h"

#include <utf8proc.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "chat/long_capitals.h"
#include "tokenizer/unicode.h"

namespace command::chat {
namespace {

constexpr uint32_t capital_sigma = 0x3A3, sigma = 0x3C3, final_sigma = 0x3C2, capital_i_with_dot = 0x130;

utf8proc_category_t category_of_letter(uint32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

struct LetterRun {
  uint32_t first, last;
};
template <size_t count>
bool lies_in(uint32_t code, const LetterRun (&runs)[count]) {
  return std::any_of(std::begin(runs), std::end(runs),
                     [&](const LetterRun& run) { return code >= run.first && code <= run.last; });
}

// Unicode's properties Lowercase and Uppercase, which include some characters of other categories, and
// Case_Ignorable.
bool is_lower(uint32_t code) {
  static constexpr LetterRun others[] = {
      {0xAA, 0xAA},       {0xBA, 0xBA},       {0x2B0, 0x2B8},     {0x2C0, 0x2C1},    {0x2E0, 0x2E4},
      {0x345, 0x345},     {0x37A, 0x37A},     {0x1D2C, 0x1D6A},   {0x1D78, 0x1D78},  {0x1D9B, 0x1DBF},
      {0x2071, 0x2071},   {0x207F, 0x207F},   {0x2090, 0x209C},   {0x2170, 0x217F},  {0x24D0, 0x24E9},
      {0x2C7C, 0x2C7D},   {0xA69C, 0xA69D},   {0xA770, 0xA770},   {0xA7F8, 0xA7F9},  {0xAB5C, 0xAB5F},
      {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107B0}, {0x107B2, 0x107BA}};
  return category_of_letter(code) == UTF8PROC_CATEGORY_LL || lies_in(code, others);
}
bool is_upper(uint32_t code) {
  static constexpr LetterRun others[] = {
      {0x2160, 0x216F}, {0x24B6, 0x24CF}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
  return category_of_letter(code) == UTF8PROC_CATEGORY_LU || lies_in(code, others);
}
bool is_title(uint32_t code) { return category_of_letter(code) == UTF8PROC_CATEGORY_LT; }
bool is_cased(uint32_t code) { return is_lower(code) || is_upper(code) || is_title(code); }
bool is_ignored(uint32_t code) {
  static constexpr LetterRun others[] = {
      {0x27, 0x27},     {0x2E, 0x2E},     {0x3A, 0x3A},     {0xB7, 0xB7},
      {0x387, 0x387},   {0x55F, 0x55F},   {0x5F4, 0x5F4},   {0x2018, 0x2019},
      {0x2024, 0x2024}, {0x2027, 0x2027}, {0xFE13, 0xFE13}, {0xFE52, 0xFE52},
      {0xFE55, 0xFE55}, {0xFF07, 0xFF07}, {0xFF0E, 0xFF0E}, {0xFF1A, 0xFF1A}};
  switch (category_of_letter(code)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: return lies_in(code, others);
  }
}

using Codes = std::vector<uint32_t>;
Codes codes_of(std::string_view text) {
  Codes codes;
  while (!text.empty()) {
    const Character c = first_character(text);
    codes.push_back(c.code);
    text.remove_prefix(c.bytes);
  }
  return codes;
}

// Whether a sigma follows a letter and precedes none (final sigma).
bool ends_word(const Codes& text, size_t at) {
  size_t before = at, after = at + 1;
  while (before > 0 && is_ignored(text[before - 1])) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  while (after < text.size() && is_ignored(text[after])) ++after;
  return after == text.size() || !is_cased(text[after]);
}

const LongCapitals* long_capitals_of(uint32_t code) {
  const auto found = std::partition_point(std::begin(long_capitals), std::end(long_capitals),
                                          [&](const LongCapitals& row) { return row.code < code; });
  return found != std::end(long_capitals) && found->code == code ? found : nullptr;
}
void add_upper(std::string& out, uint32_t code) {
  if (const LongCapitals* const several = long_capitals_of(code)) out += several->upper;
  else append_utf8(out, static_cast<uint32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(code))));
}
void add_title(std::string& out, uint32_t code) {
  if (const LongCapitals* const several = long_capitals_of(code)) out += several->title;
  else append_utf8(out, static_cast<uint32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(code))));
}
void add_lower(std::string& out, const Codes& text, size_t at) {
  if (text[at] == capital_sigma) return append_utf8(out, ends_word(text, at) ? final_sigma : sigma);
  if (text[at] == capital_i_with_dot) out += "i\u0307";
  else append_utf8(out, lowercase_of(text[at]));
}

// Calls a function for every character in order.
std::string with_letters(const std::string& text,
                         const std::function<void(std::string& out, const Codes& codes, size_t at)>& add) {
  const Codes codes = codes_of(text);
  std::string out;
  for (size_t at = 0; at < codes.size(); ++at) add(out, codes, at);
  return out;
}

}  // namespace

std::string upper(const std::string& text) {
  return with_letters(text,
                      [](std::string& out, const Codes& codes, size_t at) { add_upper(out, codes[at]); });
}
std::string lower(const std::string& text) { return with_letters(text, add_lower); }
std::string casefold(const std::string& text) {
  return with_letters(text, [](std::string& out, const Codes& codes, size_t at) {
    constexpr size_t most = 4;  // the most characters that one character maps to
    utf8proc_int32_t folded[most];
    int last_class = UTF8PROC_BOUNDCLASS_START;
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(codes[at]), folded, most,
                                               UTF8PROC_CASEFOLD, &last_class);
    for (utf8proc_ssize_t i = 0; i < count; ++i) append_utf8(out, static_cast<uint32_t>(folded[i]));
  });
}
std::string swapcase(const std::string& text) {
  return with_letters(text, [](std::string& out, const Codes& codes, size_t at) {
    if (is_upper(codes[at])) add_lower(out, codes, at);
    else if (is_lower(codes[at])) add_upper(out, codes[at]);
    else append_utf8(out, codes[at]);
  });
}
std::string capitalize(const std::string& text) {
  return with_letters(text, [](std::string& out, const Codes& codes, size_t at) {
    at == 0 ? add_title(out, codes[at]) : add_lower(out, codes, at);
  });
}
std::string title(const std::string& text) {
  return with_letters(text, [](std::string& out, const Codes& codes, size_t at) {
    at == 0 || !is_cased(codes[at - 1]) ? add_title(out, codes[at]) : add_lower(out, codes, at);
  });
}
bool is_all_lower(const std::string& text) {
  const Codes codes = codes_of(text);
  return std::any_of(codes.begin(), codes.end(), is_lower) &&
         std::none_of(codes.begin(), codes.end(), [](uint32_t c) { return is_upper(c) || is_title(c); });
}
bool is_all_upper(const std::string& text) {
  const Codes codes = codes_of(text);
  return std::any_of(codes.begin(), codes.end(), is_upper) &&
         std::none_of(codes.begin(), codes.end(), [](uint32_t c) { return is_lower(c) || is_title(c); });
}

bool is_printable(uint32_t code) {
  switch (category_of_letter(code)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return false;
    case UTF8PROC_CATEGORY_ZS: return code == ' ';
    default: return true;
  }
}

std::optional<int> decimal_value(uint32_t code) {
  const auto is_decimal = [](uint32_t c) { return category_of_letter(c) == UTF8PROC_CATEGORY_ND; };
  if (!is_decimal(code)) return std::nullopt;
  uint32_t zero = code;  // digits come in runs of ten
  while (zero > 0 && is_decimal(zero - 1)) --zero;
  return static_cast<int>((code - zero) % 10);
}

}  // namespace command::chat
