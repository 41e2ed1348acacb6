// Reads JSON piece by piece. This is the only lexer: parse_json builds values over it, and the command reads
// files of a known form with it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stw {

enum class JsonRules : uint8_t {
  strict,  // RFC 8259
  python,  // as Python's json: NaN, Infinity and -Infinity are numbers too
  // As python. In addition a string may hold any bytes except quotes and backslashes, and a number is any
  // sequence of digits, signs, dots and e. Errors in a string have the position of its end.
  loose,
};

struct JsonError {
  std::string message;
  size_t byte;  // position in the text
};

// A method that finds an error keeps it, unless there is an earlier one, and returns an empty value or false.
// Its caller must check has_failed(), or the result, before it goes on. White space before a piece is
// skipped. The text must outlive the reader.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text, JsonRules rules = JsonRules::strict)
      : text_(text), rules_(rules) {}

  bool has_failed() const { return !error_.message.empty(); }
  const JsonError& error() const { return error_; }
  // Returns false. Without a position: the error is where the reader is.
  bool fail(std::string message) { return fail(at_, std::move(message)); }
  bool fail(size_t byte, std::string message);

  size_t position() const { return at_; }  // in bytes
  struct Place {
    size_t line, column;  // both from 1, columns in bytes
  };
  Place place(size_t byte) const;
  bool at_end() { return skip_space() == text_.size(); }
  // The character that comes next; 0 at the end.
  char next() { return skip_space(), here(); }
  bool is_next(char c) { return !at_end() && text_[at_] == c; }
  bool take(char c) {
    if (!is_next(c)) return false;
    ++at_;
    return true;
  }
  bool expect(char c) { return take(c) || fail_expected(c); }
  // A string as it is written, with its escapes and without its quotes.
  std::string_view string();
  // A string with its escapes decoded, appended to `out`. `with_bytes`: \udc80 to \udcff stand for the bytes
  // 0x80 to 0xff, as Python writes strings that are not UTF-8.
  bool text(std::string& out, bool with_bytes = false);
  // A whole number that fits. Stops after its digits.
  uint64_t integer();
  // A number as it is written.
  std::string_view number();
  // Reads `true`, `false` or `null` if it comes next. Returns whether it did.
  bool take_word(std::string_view word);
  // Reads NaN, Infinity or -Infinity. Empty if none of them comes next, or with the rules `strict`.
  std::string_view take_not_finite();
  // Reads a value of any form and returns it as it is written. Uses one byte of memory for each level of
  // nesting.
  std::string_view skip();

 private:
  char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  size_t skip_space() {  // returns the position
    const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
    size_t at = at_;
    while (at < text_.size() && is_space(text_[at])) ++at;
    return at_ = at;
  }
  bool fail_expected(char c);
  bool take_digits();
  bool take_escape(std::string_view& rest, std::string& out, bool with_bytes);

  const std::string_view text_;
  const JsonRules rules_;
  size_t at_ = 0;
  JsonError error_{};
};

}  // namespace stw
