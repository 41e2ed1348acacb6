#include "base/quotes.h"

#include <algorithm>

namespace command {
namespace {

std::string_view bare(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \r");
  return begin == text.npos ? std::string_view()
                            : text.substr(begin, text.find_last_not_of(" \r") - begin + 1);
}

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at = 0, end; at <= text.size(); at = end + 1) {
    end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
  }
  return parts;
}

// Whether a field begins and ends with a quote, and has no other one that is not written twice.
bool is_quoted(std::string_view field) {
  if (field.size() < 2 || field.front() != '"' || field.back() != '"') return false;
  const std::string_view inside = field.substr(1, field.size() - 2);
  for (size_t at = inside.find('"'); at != inside.npos; at = inside.find('"', at + 2))
    if (at + 1 == inside.size() || inside[at + 1] != '"') return false;
  return true;
}

// A row as it would be with quoted fields.
struct Row {
  std::vector<std::string_view> fields;  // as they are written
  std::vector<std::string_view> lines;
  size_t bytes = 0;  // with the end of the last line
};

// The length of a field that may be quoted.
size_t length_of_field(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(" \r"), text.size());
  const size_t plain = std::min(text.find_first_of("\t\n", begin), text.size());
  if (begin == text.size() || text[begin] != '"') return plain;
  for (size_t at = text.find('"', begin + 1); at != text.npos; at = text.find('"', at + 2)) {
    const size_t after = at + 1;
    if (after < text.size() && text[after] == '"') continue;
    const size_t end = std::min(text.find_first_not_of(" \r", after), text.size());
    return end == text.size() || text[end] == '\t' || text[end] == '\n' ? end : plain;
  }
  return plain;
}

Row row_of(std::string_view text) {
  Row row;
  size_t at = 0;
  do {
    const size_t length = length_of_field(text.substr(at));
    row.fields.push_back(bare(text.substr(at, length)));
    at += length + 1;
  } while (at <= text.size() && text[at - 1] == '\t');
  row.lines = parts_of(text.substr(0, at - 1), '\n');
  row.bytes = std::min(at, text.size());
  return row;
}

// Whether a row has fields only if quotes count: some of its lines have too few or too many tabs.
bool needs_quotes(const Row& row, size_t columns) {
  const auto is_row = [&](std::string_view line) { return parts_of(line, '\t').size() == columns; };
  return row.fields.size() == columns && !std::all_of(row.lines.begin(), row.lines.end(), is_row);
}

}  // namespace

bool first_rows_are_quoted(std::string_view table) {
  constexpr size_t first_bytes = size_t{64} << 10;
  const bool is_beginning = table.size() > first_bytes;
  std::string_view rest = table.substr(0, first_bytes);
  if (rest.find('"') == rest.npos) return false;
  const Row header = row_of(rest);
  const size_t columns = header.fields.size();
  std::vector<size_t> quoted(columns);
  size_t rows = 0;
  for (rest.remove_prefix(header.bytes); !rest.empty();) {
    const Row row = row_of(rest);
    const bool is_last = row.bytes == rest.size();
    rest.remove_prefix(row.bytes);
    if (row.lines.size() == 1 && bare(row.lines[0]).empty()) continue;
    if (is_last && is_beginning) break;
    for (const std::string_view field : row.fields)
      if (is_quoted(field) && row.lines.size() == 1 &&
          field.substr(1, field.size() - 2).find('"') != field.npos)
        return true;
    if (needs_quotes(row, columns)) return true;
    ++rows;
    for (size_t c = 0; c < std::min(columns, row.fields.size()); ++c) quoted[c] += is_quoted(row.fields[c]);
  }
  for (size_t c = 0; c < columns; ++c)
    if (rows > 0 && quoted[c] == rows && (rows > 1 || is_quoted(header.fields[c]))) return true;
  return false;
}

void RowValues::add(const std::vector<std::string>& fields) {
  constexpr size_t most_rows = 1000, longest = 64;
  if (rows_ == most_rows) return;
  ++rows_;
  values_.resize(std::max(values_.size(), fields.size()));
  for (size_t c = 0; c < fields.size(); ++c)
    if (fields[c].size() <= longest && !bare(fields[c]).empty()) ++values_[c][std::string(bare(fields[c]))];
}

// Whether the column has few values, and this is one of them that comes again.
bool RowValues::repeats(size_t column, std::string_view value) const {
  if (column >= values_.size() || 2 * values_[column].size() > rows_) return false;
  const auto found = values_[column].find(bare(value));
  return found != values_[column].end() && found->second > 1;
}

std::optional<int> RowValues::swallowed_in(std::string_view record, char separator, size_t columns,
                                           const std::function<Rows()>& more) {
  if (columns < 2) return std::nullopt;
  if (record.ends_with('\n')) record.remove_suffix(1);
  const std::vector<std::string_view> lines = parts_of(record, '\n');
  std::vector<std::vector<std::string_view>> rows;
  size_t whole = 0;
  for (const std::string_view line : lines) {
    rows.push_back(parts_of(line, separator));
    const auto is_empty = [](std::string_view field) { return bare(field).empty(); };
    whole += rows.back().size() == columns && std::none_of(rows.back().begin(), rows.back().end(), is_empty);
  }
  if (whole == 0) return std::nullopt;
  // The first line that ends within quotes opens the field.
  size_t opens = 0, quotes = 0;
  for (; opens < lines.size(); ++opens) {
    quotes += static_cast<size_t>(std::count(lines[opens].begin(), lines[opens].end(), '"'));
    if (quotes % 2 == 1) break;
  }
  const size_t most_of_one_text = columns == 2 ? 3 : 2;  // lines of a text that may look like rows
  if (whole == lines.size() && whole > most_of_one_text) return static_cast<int>(opens);
  if (!has_more_) {
    has_more_ = true;
    for (const std::vector<std::string>& row : more()) add(row);
  }
  const auto opening = [](std::string_view field) { return bare(field).starts_with('"'); };
  bool is_inside = false;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto marks = static_cast<size_t>(std::count(lines[i].begin(), lines[i].end(), '"'));
    const bool goes_on = is_inside != (marks % 2 == 1);
    // The columns of this line that lie within the field.
    size_t first = 0, end = rows[i].size();
    if (!is_inside) {
      const auto found = std::find_if(rows[i].rbegin(), rows[i].rend(), opening);
      first = static_cast<size_t>(rows[i].rend() - found);  // after the field with the quote
    }
    if (!goes_on) {
      const auto closing = [](std::string_view field) { return field.find('"') != std::string_view::npos; };
      end = static_cast<size_t>(std::find_if(rows[i].begin(), rows[i].end(), closing) - rows[i].begin());
    }
    if ((is_inside || goes_on) && rows[i].size() == columns)
      for (size_t c = first; c < end; ++c)
        if (repeats(c, rows[i][c])) return static_cast<int>(opens);
    is_inside = goes_on;
  }
  return std::nullopt;
}

}  // namespace command
