#include "base/csv.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/failure.h"
#include "base/lines.h"
#include "base/utf8.h"

namespace command {
namespace {

constexpr std::string_view blanks = " \t\r", blanks_but_tabs = " \r";

std::string_view trimmed(std::string_view text, std::string_view blank = blanks) {
  const size_t begin = text.find_first_not_of(blank), end = text.find_last_not_of(blank);
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin, end - begin + 1);
}

// Takes the first bytes off a text.
std::string_view take(std::string_view& text, size_t bytes) {
  const std::string_view taken = text.substr(0, bytes);
  text.remove_prefix(taken.size());
  return taken;
}

}  // namespace

CsvReader::CsvReader(std::string_view text, const std::string& name, char separator)
    : text_(without_mark(text)),
      name_(name),
      separator_(separator),
      ends_{separator, '\n'},
      blanks_(separator == '\t' ? blanks_but_tabs : blanks),
      has_quotes_(separator != '\t' || first_rows_are_quoted(text_)) {}

std::string CsvReader::where() const { return fmt::format("{}:{}", name_, line_); }

std::optional<std::vector<std::string>> CsvReader::record() {
  while (!text_.empty()) {
    line_ = next_line_;
    const std::string_view here = text_.substr(0, text_.find('\n'));
    if (trimmed(here, blanks_).empty()) {
      take(text_, here.size() + 1);
      next_line_ += 1;
      if (keeps_blank_lines_) return std::vector<std::string>{""};
      continue;
    }
    std::vector<std::string> fields;
    do fields.push_back(field());
    while (take(text_, 1) == std::string_view(&separator_, 1));
    next_line_ += 1;
    return fields;
  }
  return std::nullopt;
}

std::optional<std::vector<std::string>> CsvReader::row(size_t columns) {
  const std::string_view before = text_;
  auto fields = record();
  if (!fields) return fields;
  const std::string_view whole = before.substr(0, before.size() - text_.size());
  if (fields->size() != columns) {
    const bool is_open = separator_ == '\t' && !has_quotes_ && whole.find('"') != std::string_view::npos;
    throw Failure(
        exit_failed,
        fmt::format("{}: expected {} fields, as many as there are columns, found {}{}", where(), columns,
                    fields->size(),
                    is_open ? "; between tabs a quote is a character like others, so that a field ends "
                              "with its line: put all fields of a column in quotes, or write \\n"
                            : ""));
  }
  if (has_quotes_ && next_line_ - line_ > 1) {
    const auto line = values_.swallowed_in(whole, separator_, columns, [&] {
      CsvReader rest(text_, name_, separator_);
      rest.has_quotes_ = true;
      return rest.some_rows(columns);
    });
    if (line)
      throw Failure(
          exit_failed,
          fmt::format("{}:{}: a quote opens a field of {} lines that look like rows of the table; "
                      "write a quote of a text twice and the field in quotes, or, if the lines are one "
                      "text, write the table as JSON lines",
                      name_, line_ + *line, next_line_ - line_));
  }
  values_.add(*fields);
  return fields;
}

std::vector<std::vector<std::string>> CsvReader::some_rows(size_t columns) {
  constexpr size_t most_rows = 200;
  std::vector<std::vector<std::string>> rows;
  try {
    while (rows.size() < most_rows)
      if (auto fields = record(); !fields) break;
      else if (fields->size() == columns) rows.push_back(std::move(*fields));
  } catch (const Failure&) {  // reading on will report it
  }
  return rows;
}

// Takes a field, up to the separator or the end of the line.
std::string CsvReader::field() {
  const size_t begin = text_.find_first_not_of(blanks_);
  if (has_quotes_ && begin != std::string_view::npos && text_[begin] == '"') {
    take(text_, begin + 1);
    return quoted_field();
  }
  const std::string_view all = take(text_, text_.find_first_of(ends_));
  if (!keeps_blanks_) return std::string(trimmed(all, blanks_));
  const bool ends_in_return = (text_.empty() || text_[0] == '\n') && all.ends_with('\r');  // of \r\n
  return std::string(all.substr(0, all.size() - ends_in_return));
}

// Takes the rest of a field whose first quote has been taken.
std::string CsvReader::quoted_field() {
  std::string value;
  const int opened = next_line_;
  for (bool again = true; again;) {
    const size_t quote = text_.find('"');
    if (quote == std::string_view::npos)
      throw Failure(exit_failed, fmt::format("{}:{}: a field in quotes has no end: a quote opens it in this "
                                             "line, and none closes it; put the field in quotes, with its "
                                             "own quotes written twice",
                                             name_, opened));
    const std::string_view part = take(text_, quote);
    take(text_, 1);
    next_line_ += static_cast<int>(std::count(part.begin(), part.end(), '\n'));
    again = text_.starts_with('"');
    value += part;
    if (again) value += take(text_, 1);
  }
  const std::string_view rest = trimmed(take(text_, text_.find_first_of(ends_)), blanks_);
  if (!rest.empty())
    throw Failure(exit_failed, fmt::format("{}: expected {} after \"{}\", found {}", where(),
                                           separator_ == ','    ? "a comma"
                                           : separator_ == '\t' ? "a tab"
                                                                : "a separator",
                                           shortened(value), shortened(rest)));
  return value;
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) {
    if (&field != fields.data()) line += ',';
    const bool has_mark =
        without_mark(field).size() < field.size();  // would be taken for the mark of the whole file
    const bool is_alone = fields.size() == 1 && field.empty();  // without quotes it would be a blank line
    if (!has_mark && !is_alone && field.find_first_of(",\"\r\n") == std::string::npos &&
        trimmed(field).size() == field.size()) {
      line += field;
      continue;
    }
    line += '"';
    for (const char c : field) line += c == '"' ? "\"\"" : std::string(1, c);
    line += '"';
  }
  return line + '\n';
}

}  // namespace command
