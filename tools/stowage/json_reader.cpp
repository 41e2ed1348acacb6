#include "json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "failure.h"

namespace command {

void JsonReader::fail(const std::string& what) const {
  throw Failure(exit_failed, fmt::format("{}: {} at byte {}", damaged_, what, offset_ + text_.size() - rest_.size()));
}

void JsonReader::skip_space() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }

bool JsonReader::take(char c) {
  skip_space();
  if (!rest_.starts_with(c)) return false;
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
  for (std::string_view raw = string(); !raw.empty();) {
    if (raw.front() != '\\') {
      out += raw.front();
      raw.remove_prefix(1);
    } else if (raw[1] == '"' || raw[1] == '\\' || raw[1] == '/') {
      out += raw[1];
      raw.remove_prefix(2);
    } else {
      unsigned code = 0;
      const std::string_view digits = raw.substr(std::min<size_t>(2, raw.size()), 4);
      const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
      if (raw[1] != 'u' || digits.size() != 4 || read.ptr != digits.data() + 4 || code >= 0x80) fail("expected no other escape than \\u0000 to \\u007f");
      out += static_cast<char>(code);
      raw.remove_prefix(6);
    }
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

bool JsonReader::at_end() {
  skip_space();
  return rest_.empty();
}

}  // namespace command
