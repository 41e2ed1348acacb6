#include "base/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/failure.h"
#include "base/utf8.h"

namespace command {

void JsonReader::fail(const std::string& what) const {
  const size_t at = text_.size() - rest_.size();
  const std::string line =
      names_lines_
          ? fmt::format(" of the file, in line {}",
                        std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1)
          : "";
  throw Failure(exit_failed, fmt::format("{}: {} at byte {}{}", damaged_, what, offset_ + at, line));
}

void JsonReader::skip_space() {
  size_t space = 0;
  while (space < rest_.size() &&
         (rest_[space] == ' ' || rest_[space] == '\n' || rest_[space] == '\r' || rest_[space] == '\t'))
    ++space;
  rest_.remove_prefix(space);
}

bool JsonReader::is_next(char c) {
  skip_space();
  return rest_.starts_with(c);
}

bool JsonReader::take(char c) {
  if (!is_next(c)) return false;
  rest_.remove_prefix(1);
  return true;
}

void JsonReader::expect(char c) {
  if (!take(c)) fail(fmt::format("expected {}", c));
}

std::string_view JsonReader::string() {
  expect('"');
  size_t end = 0;
  while (end < rest_.size() && rest_[end] != '"') end += rest_[end] == '\\' ? 2 : 1;
  if (end >= rest_.size()) fail("expected the end of a string");
  const std::string_view out = rest_.substr(0, end);
  rest_.remove_prefix(end + 1);
  return out;
}

std::string JsonReader::decoded(bool with_bytes) {
  std::string out;
  const auto code_unit = [&](std::string_view raw) {  // parses \u and four digits
    unsigned unit = 0;
    const std::string_view digits = raw.substr(std::min<size_t>(2, raw.size()), 4);
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), unit, 16);
    if (!raw.starts_with("\\u") || digits.size() != 4 || read.ptr != digits.data() + 4)
      fail("expected \\u and four hexadecimal digits");
    return unit;
  };
  for (std::string_view raw = string(); !raw.empty();) {
    if (raw.front() != '\\') {
      const size_t plain = std::min(raw.find('\\'), raw.size());
      out += raw.substr(0, plain);
      raw.remove_prefix(plain);
      continue;
    }
    constexpr std::string_view escapes = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
    if (const size_t escape = escapes.find(raw[1]); escape != std::string_view::npos) {
      out += meant[escape];
      raw.remove_prefix(2);
      continue;
    }
    uint32_t code = code_unit(raw);
    raw.remove_prefix(6);
    if (with_bytes && code >= 0xDC80 && code < 0xDD00) {
      out += static_cast<char>(code & 0xFF);
      continue;
    }
    if (code >= 0xD800 && code < 0xE000) {  // a surrogate
      const uint32_t low = code < 0xDC00 && raw.starts_with("\\u") ? code_unit(raw) : 0;
      if (low < 0xDC00 || low >= 0xE000)
        fail(
            fmt::format("expected a pair of surrogates, found half of one (\\u{:04x}), which is no "
                        "character, in the string that ends",
                        code));
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      raw.remove_prefix(6);
    }
    append_utf8(out, code);
  }
  return out;
}

uint64_t JsonReader::integer() {
  skip_space();
  uint64_t value = 0;
  const auto [end, problem] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
  if (problem != std::errc()) fail("expected a whole number");
  rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
  return value;
}

std::string_view JsonReader::number() {
  skip_space();
  const auto is_of_number = [](char c) {
    return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
  };
  size_t length = 0;
  while (length < rest_.size() && is_of_number(rest_[length])) ++length;
  if (length == 0) fail("expected a value");
  const std::string_view out = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return out;
}

bool JsonReader::take_word(std::string_view word) {
  skip_space();
  if (!rest_.starts_with(word)) return false;
  rest_.remove_prefix(word.size());
  return true;
}

std::string_view JsonReader::take_not_finite() {
  for (const std::string_view word : {"NaN", "Infinity", "-Infinity"})
    if (take_word(word)) return word;
  return {};
}

std::string_view JsonReader::skip() {
  skip_space();
  const std::string_view begin = rest_;
  std::string open;  // closing brackets that are expected, innermost last
  const auto take_key = [&] {
    string();
    expect(':');
  };
  do {
    skip_space();
    switch (rest_.empty() ? '\0' : rest_.front()) {
      case '{':
        rest_.remove_prefix(1);
        if (take('}')) break;
        open += '}';
        take_key();
        continue;
      case '[':
        rest_.remove_prefix(1);
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
    while (!open.empty() && !take(',')) {
      expect(open.back());
      open.pop_back();
    }
    if (!open.empty() && open.back() == '}') take_key();
  } while (!open.empty());
  return begin.substr(0, begin.size() - rest_.size());
}

bool JsonReader::at_end() {
  skip_space();
  return rest_.empty();
}

}  // namespace command
