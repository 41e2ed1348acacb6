// Reads JSON of a form that is known: objects, arrays, strings and whole numbers. What is not of it is one Failure that says at
// which byte.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace command {

class JsonReader {
 public:
  // `damaged` begins every failure, `offset` is where the text lies in its file. The text must outlive the reader.
  // `names_lines`: failures name the line, too.
  JsonReader(std::string_view text, std::string damaged, size_t offset = 0, bool names_lines = false)
      : text_(text), rest_(text), damaged_(std::move(damaged)), offset_(offset), names_lines_(names_lines) {}

  [[noreturn]] void fail(const std::string& what) const;
  bool take(char c);
  bool is_next(char c);
  void expect(char c);
  // With its escapes as they are written.
  std::string_view string();
  // What the string stands for, in UTF-8.
  std::string text() { return decoded(false); }
  // Likewise of one that json_bytes() made.
  std::string bytes() { return decoded(true); }
  uint64_t whole();
  // A number of any form, as it is written.
  std::string_view number();
  // Whether `true`, `false` or `null` comes next, which is then behind it.
  bool take_word(std::string_view word);
  // NaN, Infinity or -Infinity, which Python's json writes; empty where none of them comes next.
  std::string_view take_not_finite();
  // A value of any form, as it is written. Takes no memory for it but a byte a level.
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
