#include "json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "failure.h"
#include "utf8.h"

namespace command {

void JsonReader::fail(const std::string& what) const {
  throw Failure(exit_failed, fmt::format("{}: {} at byte {}", damaged_, what, offset_ + text_.size() - rest_.size()));
}

void JsonReader::skip_space() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }

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

std::string JsonReader::text() {
  std::string out;
  const auto code_unit = [&](std::string_view raw) {   // behind \u
    unsigned unit = 0;
    const std::string_view digits = raw.substr(std::min<size_t>(2, raw.size()), 4);
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), unit, 16);
    if (!raw.starts_with("\\u") || digits.size() != 4 || read.ptr != digits.data() + 4) fail("expected \\u and four hexadecimal digits");
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
    if (code >= 0xD800 && code < 0xE000) {   // half of a pair
      const uint32_t low = code < 0xDC00 ? code_unit(raw) : 0;
      if (low < 0xDC00 || low >= 0xE000) fail("expected a pair of surrogates");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      raw.remove_prefix(6);
    }
    append_utf8(out, code);
  }
  return out;
}

uint64_t JsonReader::whole() {
  skip_space();
  uint64_t value = 0;
  const auto [end, problem] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
  if (problem != std::errc()) fail("expected a whole number");
  rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
  return value;
}

std::string_view JsonReader::number() {
  skip_space();
  const size_t length = std::min(rest_.find_first_not_of("+-.0123456789eE"), rest_.size());
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

bool JsonReader::at_end() {
  skip_space();
  return rest_.empty();
}

}  // namespace command
