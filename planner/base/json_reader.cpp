#include "planner/base/json_reader.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>

#include "planner/base/utf8.h"

namespace stw {

namespace {

std::optional<uint32_t> hexadecimal(std::string_view digits) {  // four digits at the beginning
  uint32_t value = 0;
  if (digits.size() < 4 ||
      std::from_chars(digits.data(), digits.data() + 4, value, 16).ptr != digits.data() + 4)
    return std::nullopt;
  return value;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The characters at the beginning that stand for themselves: all but quotes and backslashes if `is_loose`,
// otherwise those of ASCII.
size_t plain_length(std::string_view rest, bool is_loose) {
  const auto is_plain = [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return c != '"' && c != '\\' && (is_loose || (byte >= 0x20 && byte < 0x80));
  };
  return static_cast<size_t>(std::find_if_not(rest.begin(), rest.end(), is_plain) - rest.begin());
}

}  // namespace

bool JsonReader::fail(size_t byte, std::string message) {
  if (!has_failed()) error_ = {std::move(message), byte};
  return false;
}

JsonReader::Place JsonReader::place(size_t byte) const {
  const std::string_view before = text_.substr(0, byte);
  const size_t newline = before.rfind('\n');
  return {static_cast<size_t>(std::count(before.begin(), before.end(), '\n')) + 1,
          newline == std::string_view::npos ? byte + 1 : byte - newline};
}

bool JsonReader::fail_expected(char c) { return fail(std::string("expected ") + c); }

std::string_view JsonReader::string() {
  if (!expect('"')) return {};
  size_t end = at_;
  while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
  if (end >= text_.size()) return fail("expected the end of a string"), std::string_view();
  const std::string_view out = text_.substr(at_, end - at_);
  at_ = end + 1;
  return out;
}

bool JsonReader::text(std::string& out, bool with_bytes) {
  if (!expect('"')) return false;
  const size_t start = at_ - 1;
  const bool is_loose = rules_ == JsonRules::loose;
  for (std::string_view rest = text_.substr(at_);;) {
    size_t length = plain_length(rest, is_loose);
    out += rest.substr(0, length);
    rest.remove_prefix(length);
    if (rest.empty())
      return is_loose ? fail("expected the end of a string") : fail(start, "the string does not end");
    const size_t byte = text_.size() - rest.size();
    if (rest[0] == '"') return at_ = byte + 1, true;
    if (rest[0] == '\\') {
      if (!take_escape(rest, out, with_bytes)) return false;
      continue;
    }
    if (static_cast<unsigned char>(rest[0]) < 0x20)
      return fail(byte, "a control character in a string must be escaped");
    if ((length = utf8_length(rest)) == 0) return fail(byte, "the string is not UTF-8");
    out += rest.substr(0, length);
    rest.remove_prefix(length);
  }
}

// Decodes the escape at the beginning of `rest`, the rest of the text, and removes it.
bool JsonReader::take_escape(std::string_view& rest, std::string& out, bool with_bytes) {
  constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
  const bool is_loose = rules_ == JsonRules::loose;
  const auto start = static_cast<size_t>(rest.data() - text_.data());
  const auto damaged = [&](size_t at, const char* message, const std::string& of_loose) {
    if (!is_loose) return fail(start + at, message);
    --at_;  // back to the opening quote
    string();
    return fail(of_loose);  // unless string() has failed
  };
  const auto no_digits = [&](size_t at, const char* message) {
    return damaged(at, message, "expected \\u and four hexadecimal digits");
  };
  const size_t letter = rest.size() > 1 ? letters.find(rest[1]) : std::string_view::npos;
  if (letter != std::string_view::npos) {
    out += meanings[letter];
    rest.remove_prefix(2);
    return true;
  }
  if (!rest.starts_with("\\u")) return no_digits(0, "unknown escape");
  const std::optional<uint32_t> unit = hexadecimal(rest.substr(2));
  if (!unit) return no_digits(2, "expected four hexadecimal digits");
  uint32_t code = *unit;
  rest.remove_prefix(6);
  if (with_bytes && code >= 0xDC80 && code < 0xDD00) {
    out += static_cast<char>(code & 0xFF);
    return true;
  }
  if (code >= 0xD800 && code < 0xE000) {  // a surrogate
    std::optional<uint32_t> low = 0;
    if (code < 0xDC00 && rest.starts_with("\\u")) low = hexadecimal(rest.substr(2));
    if (!low) return no_digits(8, "expected four hexadecimal digits");
    if (*low < 0xDC00 || *low >= 0xE000) {
      char text[160];
      std::snprintf(
          text, sizeof text,
          "expected a pair of surrogates, found half of one (\\u%04x), which is no character, in the "
          "string that ends",
          static_cast<unsigned>(code));
      return damaged(
          0, code < 0xDC00 ? "a high surrogate without a low one" : "a low surrogate without a high one",
          text);
    }
    code = 0x10000 + ((code - 0xD800) << 10) + (*low - 0xDC00);
    rest.remove_prefix(6);
  }
  append_utf8(out, code);
  return true;
}

uint64_t JsonReader::integer() {
  uint64_t value = 0;
  const char *begin = text_.data() + skip_space(), *end = text_.data() + text_.size();
  const auto [stop, problem] = std::from_chars(begin, end, value);
  if (problem != std::errc()) return fail("expected a whole number"), 0;
  at_ += static_cast<size_t>(stop - begin);
  return value;
}

bool JsonReader::take_digits() {
  const size_t begin = at_;
  while (is_digit(here())) ++at_;
  return at_ > begin || fail("expected a digit");
}

std::string_view JsonReader::number() {
  const size_t begin = skip_space();
  if (rules_ == JsonRules::loose) {
    const auto is_of_number = [](char c) {
      return is_digit(c) || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
    };
    while (is_of_number(here())) ++at_;
    if (at_ == begin) fail("expected a value");
    return text_.substr(begin, at_ - begin);
  }
  at_ += here() == '-';
  const bool has_zero = here() == '0';
  at_ += has_zero;
  if (has_zero && is_digit(here())) return fail("a number may not start with 0"), std::string_view();
  if (!has_zero && !take_digits()) return {};
  if (here() == '.' && (++at_, !take_digits())) return {};
  if (here() == 'e' || here() == 'E') {
    ++at_;
    at_ += here() == '+' || here() == '-';
    if (!take_digits()) return {};
  }
  return text_.substr(begin, at_ - begin);
}

bool JsonReader::take_word(std::string_view word) {
  if (!text_.substr(skip_space()).starts_with(word)) return false;
  at_ += word.size();
  return true;
}

std::string_view JsonReader::take_not_finite() {
  if (rules_ != JsonRules::strict)
    for (const std::string_view word : {"NaN", "Infinity", "-Infinity"})
      if (take_word(word)) return word;
  return {};
}

std::string_view JsonReader::skip() {
  const size_t begin = skip_space();
  std::string open;  // closing brackets that are expected, innermost last
  const auto take_key = [&] { string(), expect(':'); };
  do {
    switch (next()) {
      case '{':
        ++at_;
        if (take('}')) break;
        open += '}';
        take_key();
        continue;
      case '[':
        ++at_;
        if (take(']')) break;
        open += ']';
        continue;
      case '"': string(); break;
      case 't':
      case 'f':
      case 'n':
      case 'N':
      case 'I':
      case '-':
        if (take_word("true") || take_word("false") || take_word("null") || !take_not_finite().empty()) break;
        [[fallthrough]];
      default: number();
    }
    while (!open.empty() && !has_failed() && !take(',')) {
      expect(open.back());
      open.pop_back();
    }
    if (!open.empty() && open.back() == '}') take_key();
  } while (!open.empty() && !has_failed());
  return has_failed() ? std::string_view() : text_.substr(begin, at_ - begin);
}

}  // namespace stw
