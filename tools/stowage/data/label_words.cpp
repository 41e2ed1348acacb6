#include "data/label_words.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "base/utf8.h"
#include "tokenizer/unicode.h"

namespace command {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool are_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

// The word without blanks and quotes around it, with an ASCII sign or none.
std::string plain_number(std::string_view word) {
  word = without_blanks(word);
  if (word.size() > 2 && (word[0] == '"' || word[0] == '\'') && word.back() == word[0])
    word = without_blanks(word.substr(1, word.size() - 2));
  constexpr std::string_view minus = "\u2212";
  if (word.starts_with(minus)) return "-" + std::string(word.substr(minus.size()));
  if (word.size() > 1 && word[0] == '+' && word[1] != '-') word.remove_prefix(1);
  return std::string(word);
}

std::string_view without_sign(std::string_view number) {
  if (number.starts_with('-')) number.remove_prefix(1);
  return number;
}

// Whether a comma separates groups of three digits, as in "1,234" or "1,234,567.5".
bool has_groups(std::string_view number) {
  number = without_sign(number);
  const std::string_view whole = number.substr(0, number.find('.'));
  if (whole.size() < number.size() && !are_digits(number.substr(whole.size() + 1))) return false;
  size_t at = whole.find(',');
  if (at == whole.npos || at > 3 || !are_digits(whole.substr(0, at)) || whole[0] == '0') return false;
  for (; at < whole.size(); at += 4)
    if (whole[at] != ',' || !are_digits(whole.substr(at + 1, 3)) || whole.substr(at).size() < 4) return false;
  return true;
}

// Infinity if a double does not hold the number.
std::optional<double> written_number(std::string number) {
  if (has_groups(number)) return std::nullopt;
  const size_t comma = number.find(',');
  if (comma != number.npos) {
    if (comma == 0 || !is_digit(number[comma - 1]) || number.find_first_of(",.", comma + 1) != number.npos ||
        number.find('.') < comma)
      return std::nullopt;
    number[comma] = '.';
  }
  double value = 0;
  const char* const end = number.data() + number.size();
  const auto read = std::from_chars(number.data(), end, value);
  if (read.ptr != end) return std::nullopt;
  if (read.ec == std::errc::result_out_of_range) return HUGE_VAL;
  return read.ec == std::errc() && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<double> value_of(const std::string& number) {
  const std::optional<double> written = written_number(number);
  return written && std::isfinite(*written) ? written : std::nullopt;
}

// The word before a percent sign; nothing if it has none.
std::optional<std::string> before_percent(std::string_view word) {
  std::string number = plain_number(word);
  if (!number.ends_with('%')) return std::nullopt;
  number.pop_back();
  return std::string(without_blanks(number));
}

// Takes a name in quotes from the beginning of the text. Nothing if it does not end, or has an escape that is
// unknown here.
std::optional<std::string> take_quoted(std::string_view& text) {
  const char quote = text[0];
  std::string name;
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == quote) {
      text.remove_prefix(i + 1);
      return name;
    }
    if (text[i] == '\\') {
      constexpr std::string_view escaped = "\\'\"/nt", meant = "\\'\"/\n\t";
      const size_t which = ++i < text.size() ? escaped.find(text[i]) : escaped.npos;
      if (which == escaped.npos) return std::nullopt;
      name += meant[which];
    } else {
      name += text[i];
    }
  }
  return std::nullopt;
}

// Takes a number or a truth value from the beginning of the text. Nothing for another word.
std::optional<std::string> take_bare(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find_first_of(", \t\r\n"));
  if (!looks_like_number(word) && !truth_of_word(word)) return std::nullopt;
  text.remove_prefix(word.size());
  return std::string(word);
}

}  // namespace

std::string_view without_blanks(std::string_view word) {
  const size_t first = word.find_first_not_of(" \t\r\n");
  return first == word.npos ? std::string_view()
                            : word.substr(first, word.find_last_not_of(" \t\r\n") + 1 - first);
}

std::string without_case(std::string_view word) {
  std::string small;
  while (!word.empty()) {
    const Character c = first_character(word);
    append_utf8(small, lowercase_of(c.code));
    word.remove_prefix(c.bytes);
  }
  return small;
}

std::string as_it_looks(std::string_view word) {
  const std::string text = compatible_form(word);
  std::string looks;
  bool is_between = false;  // blanks came after the last character
  for (std::string_view rest = text; !rest.empty();) {
    const Character c = first_character(rest);
    if (is_space(c.code)) {
      is_between = true;
    } else {
      if (is_between && !looks.empty()) looks += ' ';
      looks += rest.substr(0, c.bytes);
      is_between = false;
    }
    rest.remove_prefix(c.bytes);
  }
  return without_case(looks);
}

std::optional<uint64_t> whole_number_of(std::string_view word) {
  uint64_t number = 0;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), number);
  return read.ec == std::errc() && read.ptr == word.data() + word.size() ? std::optional(number)
                                                                         : std::nullopt;
}

std::optional<double> real_number_of(std::string_view word) { return value_of(plain_number(word)); }

bool looks_like_number(std::string_view word) {
  const auto is_number = [](const std::string& text) { return has_groups(text) || written_number(text); };
  const auto percent = before_percent(word);
  return is_number(percent ? *percent : plain_number(word));
}

std::string why_unread(std::string_view word) {
  if (!looks_like_number(word) || real_number_of(word)) return {};
  if (before_percent(word)) return "write it without the percent sign";
  return written_number(plain_number(word))
             ? "its size is beyond that of a double"
             : "write a point as the decimal sign, and no commas between thousands";
}

bool stands_for_no_number(std::string_view word) {
  constexpr std::string_view words[] = {"nan",       "+nan", "-nan", "inf", "+inf", "-inf", "infinity",
                                        "-infinity", "null", "none", "na",  "n/a",  "<na>"};
  const std::string small = without_case(word);
  return std::find(std::begin(words), std::end(words), small) != std::end(words);
}

std::optional<bool> truth_of_word(std::string_view word) {
  const std::string small = without_case(without_blanks(word));
  if (small == "true" || small == "false") return small == "true";
  const auto number = real_number_of(word);
  return number && (*number == 0 || *number == 1) ? std::optional(*number == 1) : std::nullopt;
}

std::optional<std::vector<std::string>> written_list(std::string_view field) {
  std::string_view rest = without_blanks(field);
  constexpr std::string_view open = "[({", close = "])}";
  const size_t which = rest.size() < 2 ? open.npos : open.find(rest[0]);
  if (which == open.npos || rest.back() != close[which]) return std::nullopt;
  rest = without_blanks(rest.substr(1, rest.size() - 2));
  std::vector<std::string> elements;
  bool has_quotes = false;
  while (!rest.empty()) {
    const bool is_quoted = rest[0] == '"' || rest[0] == '\'';
    const auto element = is_quoted ? take_quoted(rest) : take_bare(rest);
    const std::string_view before = rest;
    rest = without_blanks(rest);
    const bool has_comma = rest.starts_with(',');
    if (has_comma) rest = without_blanks(rest.substr(1));
    if (!element || (!rest.empty() && rest.size() == before.size())) return std::nullopt;
    has_quotes = has_quotes || is_quoted;
    elements.push_back(*element);
  }
  // "(1)" and "{}" are names.
  if (which > 0 && !has_quotes && elements.size() < 2) return std::nullopt;
  return elements;
}

}  // namespace command
