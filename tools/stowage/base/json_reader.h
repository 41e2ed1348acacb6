// Reads JSON of a known form: objects, arrays, strings and whole numbers. Any other input throws a Failure
// that names the byte.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace command {

class JsonReader {
 public:
  // Every failure begins with `damaged`. `offset` is the position of the text in its file. `names_lines`:
  // failures also name the line. The text must outlive the reader.
  JsonReader(std::string_view text, std::string damaged, size_t offset = 0, bool names_lines = false)
      : text_(text), rest_(text), damaged_(std::move(damaged)), offset_(offset), names_lines_(names_lines) {}

  [[noreturn]] void fail(const std::string& what) const;
  bool take(char c);
  bool is_next(char c);
  void expect(char c);
  // A string as it is written, with its escapes.
  std::string_view string();
  // A string with its escapes decoded, in UTF-8.
  std::string text() { return decoded(false); }
  // The same for a string that json_bytes() wrote.
  std::string bytes() { return decoded(true); }
  uint64_t integer();
  // A number of any form, as it is written.
  std::string_view number();
  // Reads `true`, `false` or `null` if it comes next. Returns whether it did.
  bool take_word(std::string_view word);
  // Reads NaN, Infinity or -Infinity, which Python's json writes. Empty if none of them comes next.
  std::string_view take_not_finite();
  // Reads a value of any form and returns it as it is written. Uses one byte of memory for each level of
  // nesting.
  std::string_view skip();
  bool at_end();

  template <class Item>
  void list(char open, char close, const Item& item) {
    expect(open);
    if (take(close)) return;
    do item();
    while (take(','));
    expect(close);
  }
  template <class Value>
  void object(const Value& value) {
    list('{', '}', [&] {
      const std::string key(string());
      expect(':');
      value(key);
    });
  }

 private:
  void skip_space();
  std::string decoded(bool with_bytes);

  const std::string_view text_;
  std::string_view rest_;
  const std::string damaged_;
  const size_t offset_;
  const bool names_lines_;
};

}  // namespace command
