// Comma-separated values as RFC 4180 has them, or with another separator: a field in quotes may hold commas,
// line breaks, and quotes, each written twice. Fields without quotes lose the blanks around them unless these
// are kept, and blank lines are no records.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace command {

class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& name,
            char separator = ',');  // borrows the text, of the file of that name
  // The fields of the next record, or nothing at the end. Throws a Failure that names the line.
  std::optional<std::vector<std::string>> record();
  void keep_blanks() {
    keeps_blanks_ = true;
  }  // around fields without quotes, where texts are learned as they are
  void keep_blank_lines() { keeps_blank_lines_ = true; }  // each is then a record of one empty field
  int line() const { return line_; }                      // where that record begins, from 1 on
  std::string where() const;                              // "NAME:LINE"

 private:
  std::string field();
  std::string quoted_field();

  std::string_view text_;  // what is left
  const std::string name_;
  const char separator_;           // of fields
  const std::string ends_;         // of a field without quotes
  const std::string_view blanks_;  // around a field
  int line_ = 0, next_line_ = 1;
  bool keeps_blank_lines_ = false, keeps_blanks_ = false;
};

constexpr size_t most_of_header = 160;  // characters of it that a message tells

// A record's line, with quotes where reading needs them.
std::string csv_line(const std::vector<std::string>& fields);

}  // namespace command
