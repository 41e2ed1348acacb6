// Reads JSON of a known form: objects, arrays, strings and whole numbers. Any other input throws a Failure
// that names the byte. It is the reader of planner/base/json_reader.h, which says what each method reads.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "planner/base/json_reader.h"

namespace command {

class JsonReader {
 public:
  // Every failure begins with `damaged`. `offset` is the position of the text in its file. `names_lines`:
  // failures also name the line. The text must outlive the reader.
  JsonReader(std::string_view text, std::string damaged, size_t offset = 0, bool names_lines = false)
      : reader_(text, stw::JsonRules::loose),
        damaged_(std::move(damaged)),
        offset_(offset),
        names_lines_(names_lines) {}

  [[noreturn]] void fail(const std::string& what) const { fail(what, reader_.position()); }
  bool take(char c) { return reader_.take(c); }
  bool is_next(char c) { return reader_.is_next(c); }
  void expect(char c) { checked(reader_.expect(c)); }
  std::string_view string() { return checked(reader_.string()); }
  std::string text() { return decoded(false); }
  // The text of a string that json_bytes() wrote.
  std::string bytes() { return decoded(true); }
  uint64_t integer() { return checked(reader_.integer()); }
  std::string_view number() { return checked(reader_.number()); }
  bool take_word(std::string_view word) { return reader_.take_word(word); }
  std::string_view take_not_finite() { return reader_.take_not_finite(); }
  std::string_view skip() { return checked(reader_.skip()); }
  bool at_end() { return reader_.at_end(); }

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
  [[noreturn]] void fail(const std::string& what, size_t byte) const;
  template <class Read>
  Read checked(Read read) const {
    if (reader_.has_failed()) fail(reader_.error().message, reader_.error().byte);
    return read;
  }
  std::string decoded(bool with_bytes) {
    std::string out;
    checked(reader_.text(out, with_bytes));
    return out;
  }

  stw::JsonReader reader_;
  const std::string damaged_;
  const size_t offset_;
  const bool names_lines_;
};

}  // namespace command
