// Quotes in tables. A text may begin with a quote although its program does not quote fields; read as the
// beginning of a quoted field, it takes rows as its text up to the next quote.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace command {

// Whether the first rows of a table with tabs prove that its fields are quoted: a field begins and ends with
// a quote and has a quote that is written twice, or a tab or a line end without which the table would not
// have as many fields in each row; or all fields of a column are quoted.
bool first_rows_are_quoted(std::string_view table);

// The values of a table's columns, as far as they repeat, such as labels.
class RowValues {
 public:
  using Rows = std::vector<std::vector<std::string>>;
  // Counts the values of a row.
  void add(const std::vector<std::string>& fields);
  // The line of `record`, from 0, in which a quote opens a field whose lines look like rows: they have as
  // many fields as there are columns, and values that such a column has elsewhere; or there are several such
  // lines and no other ones. Nothing if there is no such field. `record` is as it is written. more() gives
  // the next rows.
  std::optional<int> swallowed_in(std::string_view record, char separator, size_t columns,
                                  const std::function<Rows()>& more);

 private:
  bool repeats(size_t column, std::string_view value) const;

  size_t rows_ = 0;
  bool has_more_ = false;  // more() was called
  std::vector<std::map<std::string, size_t, std::less<>>> values_;
};

}  // namespace command
