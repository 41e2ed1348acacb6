// Reads comma-separated values (RFC 4180), or values with another separator. A field in quotes may hold
// separators, line breaks, and quotes that are written twice. Between tabs a quote is a character like
// others, unless the first rows prove that fields are quoted (quotes.h). By default, fields without quotes
// lose the blanks around them, and blank lines are skipped.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/quotes.h"

namespace command {

class CsvReader {
 public:
  // Borrows the text. `name` is the name of its file.
  CsvReader(std::string_view text, const std::string& name, char separator = ',');
  // The fields of the next record, or nothing at the end. Throws a Failure that names the line.
  std::optional<std::vector<std::string>> record();
  // The same, for a table with so many columns. Throws a Failure also if the number of fields differs, or if
  // a field in quotes swallows rows.
  std::optional<std::vector<std::string>> row(size_t columns);
  // Keeps the blanks around fields without quotes, for texts that are learned as they are written.
  void keep_blanks() { keeps_blanks_ = true; }
  void keep_blank_lines() { keeps_blank_lines_ = true; }  // a blank line is then a record of one empty field
  int line() const { return line_; }                      // on which the last record begins, from 1
  std::string where() const;                              // "NAME:LINE"

 private:
  std::string field();
  std::string quoted_field();
  std::vector<std::vector<std::string>> some_rows(size_t columns);  // of the next ones

  std::string_view text_;  // the part that is not read yet
  const std::string name_;
  const char separator_;           // between fields
  const std::string ends_;         // characters that end a field without quotes
  const std::string_view blanks_;  // characters that are trimmed around a field
  int line_ = 0, next_line_ = 1;
  bool has_quotes_;
  bool keeps_blank_lines_ = false, keeps_blanks_ = false;
  RowValues values_;
};

constexpr size_t most_of_header = 160;  // characters of a header that a message shows

// A record as a line, with quotes around the fields that need them.
std::string csv_line(const std::vector<std::string>& fields);

}  // namespace command
