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

// The ASCII characters at the beginning that stand for themselves.
size_t plain_length(std::string_view raw) {
  const auto is_plain = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte < 0x80 && c != '\\';
  };
  return static_cast<size_t>(std::find_if_not(raw.begin(), raw.end(), is_plain) - raw.begin());
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

size_t JsonReader::skip_space() {
  const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  return at_;
}

bool JsonReader::take(char c) {
  if (!is_next(c)) return false;
  ++at_;
  return true;
}

bool JsonReader::expect(char c) { return take(c) || fail(std::string("expected ") + c); }

// The rest of the text if the string does not end.
std::string_view JsonReader::string_to_end(bool& is_closed) {
  const size_t begin = at_;
  size_t end = begin;
  while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
  is_closed = end < text_.size();
  if (is_closed) at_ = end + 1;
  return text_.substr(begin, end - begin);
}

std::string_view JsonReader::string() {
  bool is_closed = false;
  if (!expect('"')) return {};
  const std::string_view raw = string_to_end(is_closed);
  if (is_closed) return raw;
  fail("expected the end of a string");
  return {};
}

bool JsonReader::text(std::string& out, bool with_bytes) {
  bool is_closed = false;
  if (!expect('"')) return false;
  const size_t start = at_ - 1;
  std::string_view raw = string_to_end(is_closed);
  const bool is_loose = rules_ == JsonRules::loose;
  if (is_loose && !is_closed) return fail("expected the end of a string");
  while (!raw.empty()) {
    size_t length = is_loose ? std::min(raw.find('\\'), raw.size()) : plain_length(raw);
    if (length == 0 && raw[0] == '\\') {
      if (!take_escape(raw, out, with_bytes)) return false;
      continue;
    }
    const auto byte = static_cast<size_t>(raw.data() - text_.data());
    if (length == 0 && static_cast<unsigned char>(raw[0]) < 0x20)
      return fail(byte, "a control character in a string must be escaped");
    if (length == 0 && (length = utf8_length(raw)) == 0) return fail(byte, "the string is not UTF-8");
    out += raw.substr(0, length);
    raw.remove_prefix(length);
  }
  return is_closed || fail(start, "the string does not end");
}

// Decodes the escape at the beginning of `raw` and removes it.
bool JsonReader::take_escape(std::string_view& raw, std::string& out, bool with_bytes) {
  constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
  const bool is_loose = rules_ == JsonRules::loose;
  const auto start = static_cast<size_t>(raw.data() - text_.data());
  const auto damaged = [&](size_t at, const char* message) {
    return is_loose ? fail("expected \\u and four hexadecimal digits") : fail(start + at, message);
  };
  const size_t letter = raw.size() > 1 ? letters.find(raw[1]) : std::string_view::npos;
  if (letter != std::string_view::npos) {
    out += meanings[letter];
    raw.remove_prefix(2);
    return true;
  }
  if (!raw.starts_with("\\u")) return damaged(0, "unknown escape");
  const std::optional<uint32_t> unit = hexadecimal(raw.substr(2));
  if (!unit) return damaged(2, "expected four hexadecimal digits");
  uint32_t code = *unit;
  raw.remove_prefix(6);
  if (with_bytes && code >= 0xDC80 && code < 0xDD00) {
    out += static_cast<char>(code & 0xFF);
    return true;
  }
  if (code >= 0xD800 && code < 0xE000) {  // a surrogate
    std::optional<uint32_t> low = 0;
    if (code < 0xDC00 && raw.starts_with("\\u")) low = hexadecimal(raw.substr(2));
    if (!low) return damaged(8, "expected four hexadecimal digits");
    if (*low < 0xDC00 || *low >= 0xE000) {
      char text[160];
      std::snprintf(
          text, sizeof text,
          "expected a pair of surrogates, found half of one (\\u%04x), which is no character, in the "
          "string that ends",
          static_cast<unsigned>(code));
      return is_loose ? fail(text)
                      : fail(start, code < 0xDC00 ? "a high surrogate without a low one"
                                                  : "a low surrogate without a high one");
    }
    code = 0x10000 + ((code - 0xD800) << 10) + (*low - 0xDC00);
    raw.remove_prefix(6);
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
  while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
  return at_ > begin || fail("expected a digit");
}

std::string_view JsonReader::number() {
  const size_t begin = skip_space();
  const auto is_here = [&](std::string_view characters) {
    return at_ < text_.size() && characters.find(text_[at_]) != std::string_view::npos;
  };
  if (rules_ == JsonRules::loose) {
    while (is_here("0123456789-+.eE")) ++at_;
    if (at_ == begin) fail("expected a value");
    return text_.substr(begin, at_ - begin);
  }
  at_ += is_here("-");
  const bool has_zero = is_here("0");
  at_ += has_zero;
  if (has_zero && is_here("0123456789")) return fail("a number may not start with 0"), std::string_view();
  if (!has_zero && !take_digits()) return {};
  if (is_here(".") && (++at_, !take_digits())) return {};
  if (is_here("eE")) {
    ++at_;
    at_ += is_here("+-");
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
