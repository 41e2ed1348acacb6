#include "chat/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "chat/letters.h"
#include "chat/texts.h"
#include "tokenizer/unicode.h"

namespace command::chat {
namespace {

constexpr int most_digits = 330;  // no double has digits further than this from the decimal point

[[noreturn]] void fail_as_too_large() { throw TemplateError("a whole number is too large"); }

// Removes white space at both ends and converts digits to ASCII.
std::string plain_number(const std::string& text) {
  std::string out;
  const std::string bare = stripped(text, {}, true, true);
  for (std::string_view rest = bare; !rest.empty();) {
    const Character c = first_character(rest);
    if (const auto digit = decimal_value(c.code)) out += static_cast<char>('0' + *digit);
    else out += rest.substr(0, c.bytes);
    rest.remove_prefix(c.bytes);
  }
  return out;
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char small = static_cast<char>(c | 0x20);
  return small >= 'a' && small <= 'z' ? small - 'a' + 10 : 36;
}

bool take_sign(std::string_view& text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  return is_negative;
}

// Reads digits with single underscores between them and appends the digits to `out`. Returns false if there
// are no digits or an underscore is misplaced.
bool take_digits(std::string_view& text, std::string& out) {
  bool is_after_digit = false;
  while (!text.empty() && ((text[0] >= '0' && text[0] <= '9') || (text[0] == '_' && is_after_digit))) {
    is_after_digit = text[0] != '_';
    if (is_after_digit) out += text[0];
    text.remove_prefix(1);
  }
  return is_after_digit;
}

}  // namespace

std::optional<int64_t> read_integer(const std::string& text, int64_t base) {
  if (base != 0 && (base < 2 || base > 36)) return std::nullopt;
  const std::string held = plain_number(text);
  std::string_view rest = held;
  const bool is_negative = take_sign(rest);
  bool may_underscore = false;  // after a prefix
  const int64_t of_prefix = rest.size() < 2 || rest[0] != '0' ? 0
                            : (rest[1] | 0x20) == 'x'         ? 16
                            : (rest[1] | 0x20) == 'o'         ? 8
                            : (rest[1] | 0x20) == 'b'         ? 2
                                                              : 0;
  const bool is_zero_first = base == 0 && of_prefix == 0 && rest.starts_with('0');
  if (of_prefix != 0 && (base == 0 || base == of_prefix)) {
    base = of_prefix;
    rest.remove_prefix(2);
    may_underscore = true;
  }
  if (base == 0) base = 10;
  int64_t whole = 0;
  bool is_after_digit = may_underscore, has_digits = false;
  for (const char c : rest) {
    if (c == '_' && is_after_digit) {
      is_after_digit = false;
      continue;
    }
    const int digit = digit_of(c);
    if (digit >= base) return std::nullopt;
    if (is_zero_first && digit != 0) return std::nullopt;  // Python refuses "010" as ambiguous
    is_after_digit = has_digits = true;
    // accumulates a negative number, whose range is larger by one
    if (__builtin_mul_overflow(whole, base, &whole) || __builtin_sub_overflow(whole, digit, &whole))
      fail_as_too_large();
  }
  if (!has_digits || !is_after_digit) return std::nullopt;
  if (!is_negative && whole == INT64_MIN) fail_as_too_large();
  return is_negative ? whole : -whole;
}

std::optional<double> read_real(const std::string& text) {
  const std::string held = plain_number(text);
  std::string_view rest = held;
  std::string digits = take_sign(rest) ? "-" : "";
  const std::string name = lower(std::string(rest));
  if (is_all_ascii(rest) && (name == "inf" || name == "infinity" || name == "nan"))
    return std::strtod((digits + name).c_str(), nullptr);
  const size_t sign = digits.size();
  const bool has_whole = take_digits(rest, digits);
  if (!has_whole && (digits.size() > sign || !rest.starts_with('.'))) return std::nullopt;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    digits += '.';
    const bool has_digits = take_digits(rest, digits);
    if (!has_digits && (!has_whole || digits.back() != '.')) return std::nullopt;
  }
  if (!rest.empty() && (rest[0] | 0x20) == 'e') {
    rest.remove_prefix(1);
    digits += 'e';
    if (take_sign(rest)) digits += '-';
    if (!take_digits(rest, digits)) return std::nullopt;
  }
  if (!rest.empty()) return std::nullopt;
  return std::strtod(digits.c_str(), nullptr);
}

std::optional<int64_t> whole_part(double number) {
  if (std::isnan(number)) return std::nullopt;
  if (!(std::fabs(number) < 0x1p63)) fail_as_too_large();
  return static_cast<int64_t>(number);
}

double rounded(double number, int64_t digits) {
  if (!std::isfinite(number) || digits > most_digits) return number;
  if (digits < -most_digits) return std::copysign(0.0, number);
  if (digits >= 0)
    return std::strtod(fmt::format("{:.{}f}", number, static_cast<int>(digits)).c_str(), nullptr);
  // Keeps the digits before position `cut`.
  const auto dropped = static_cast<size_t>(-digits);
  const std::string all = fmt::format("{:.1074f}", std::fabs(number));
  const size_t point = all.find('.');
  std::string whole = std::string(dropped > point ? dropped - point : 0, '0') + all.substr(0, point);
  const size_t cut = whole.size() - dropped;
  const bool is_odd = cut > 0 && (whole[cut - 1] - '0') % 2 == 1;
  const std::string removed = whole.substr(cut) + all.substr(point + 1);
  const bool is_half = removed[0] == '5' && removed.find_first_not_of('0', 1) == std::string::npos;
  std::string kept = "0" + whole.substr(0, cut);
  if (removed[0] > '5' || (removed[0] == '5' && (!is_half || is_odd))) {
    size_t at = kept.size() - 1;
    for (; kept[at] == '9'; --at) kept[at] = '0';
    ++kept[at];
  }
  return std::copysign(std::strtod((kept + std::string(dropped, '0')).c_str(), nullptr), number);
}

int64_t rounded(int64_t number, int64_t digits) {
  if (digits >= 0) return number;
  if (digits < -18) {
    constexpr int64_t half = 5'000'000'000'000'000'000;  // half of 10^19
    if (digits == -19 && (number > half || number < -half)) fail_as_too_large();
    return 0;
  }
  int64_t unit = 1, below = 0;
  for (int64_t i = 0; i > digits; --i) unit *= 10;
  const int64_t over = (number % unit + unit) % unit;  // distance from the multiple at or below it
  if (__builtin_sub_overflow(number, over, &below)) fail_as_too_large();
  const bool is_up = over > unit - over || (over == unit - over && (below / unit) % 2 != 0);
  int64_t result = below;
  if (is_up && __builtin_add_overflow(below, unit, &result)) fail_as_too_large();
  return result;
}

double floor_remainder(double a, double b) {
  const double remainder = std::fmod(a, b);
  if (remainder == 0) return std::copysign(0.0, b);
  return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

double floor_quotient(double a, double b) {
  const double remainder = std::fmod(a, b);
  double quotient = (a - remainder) / b;
  if (remainder != 0 && (remainder < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double below = std::floor(quotient);
  return quotient - below > 0.5 ? below + 1 : below;
}

}  // namespace command::chat
