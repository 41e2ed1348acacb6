#include "plans/lifetimes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "base/csv.h"
#include "base/failure.h"
#include "base/utf8.h"

namespace command {
namespace {

[[noreturn]] void fail(const std::string& where, const std::string& what) {
  throw Failure(exit_failed, fmt::format("{}: {}", where, what));
}

// The names of the columns with a meaning.
constexpr std::initializer_list<const char*> id_names = {"id", "buffer", "buffer_id"},
                                             lower_names = {"lower", "begin", "start"},
                                             upper_names = {"upper", "end"}, size_names = {"size"},
                                             alignment_names = {"alignment"}, gaps_names = {"gaps"},
                                             offset_names = {"offset"};
// Columns that do not constrain the place: hints for a search, and the descriptions that `plan --csv` writes.
constexpr std::initializer_list<const char*> harmless_names = {"hint", "name", "class", "label", "comment"};

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::optional<size_t> find_column(const std::vector<std::string>& header,
                                  std::initializer_list<const char*> names, const std::string& where,
                                  bool is_needed) {
  std::vector<size_t> found;
  for (size_t i = 0; i < header.size(); ++i)
    if (is_one_of(header[i], names)) found.push_back(i);
  if (found.size() == 1) return found[0];
  if (found.empty() && !is_needed) return std::nullopt;
  fail(where,
       fmt::format("expected one column \"{}\", found {} in \"{}\"", fmt::join(names, "\" or \""),
                   found.size(), shortened(fmt::format("{}", fmt::join(header, ",")), most_of_header)));
}

template <class Number>
Number number(const std::string& text, const char* name, const std::string& where) {
  Number value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc() || stop != end)
    fail(where, fmt::format("{}: expected a whole number{} of 64 bits, found \"{}\"", name,
                            std::is_unsigned_v<Number> ? ", 0 or more," : "", shortened(text)));
  return value;
}

// Reads the whole number at the beginning of a text, and removes it from the text.
template <class Number>
bool take_number(std::string_view& text, Number& value) {
  const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(stop - text.data()));
  return true;
}

bool take_sign(std::string_view& text, char sign) {
  if (!text.starts_with(sign)) return false;
  text.remove_prefix(1);
  return true;
}

// The exclusive end of a life. A column named "end" has inclusive ends. The result is then one more.
int64_t end_of_life(int64_t last, bool is_included, const char* name, const std::string& where) {
  if (!is_included) return last;
  if (last == INT64_MAX) fail(where, fmt::format("{}: expected less than {}", name, last));
  return last + 1;
}

// Parses any number of "LOWER-UPPER" or "LOWER-UPPER@FIRST:END", separated by blanks. With FIRST:END, only
// these bytes are occupied.
std::vector<stw_buffer_gap> parse_gaps(std::string_view text, bool ends_are_included,
                                       const std::string& where) {
  std::vector<stw_buffer_gap> gaps;
  while (true) {
    while (take_sign(text, ' ')) {}
    if (text.empty()) return gaps;
    const std::string_view here = text.substr(0, text.find(' '));
    stw_buffer_gap gap{};
    bool is_right = take_number(text, gap.lower) && take_sign(text, '-') && take_number(text, gap.upper);
    if (is_right && take_sign(text, '@'))
      is_right = take_number(text, gap.first) && take_sign(text, ':') && take_number(text, gap.end);
    if (!is_right || (!text.empty() && text[0] != ' '))
      fail(where,
           fmt::format(
               "gaps: expected LOWER-UPPER or LOWER-UPPER@FIRST:END with blanks between them, found \"{}\"",
               shortened(here)));
    gap.upper = end_of_life(gap.upper, ends_are_included, "gaps", where);
    gaps.push_back(gap);
  }
}

}  // namespace

LifetimeTable parse_lifetimes(std::string_view text, const std::string& name, bool ignores_offsets) {
  LifetimeTable table;
  size_t lower = 0, upper = 0, size = 0;
  bool ends_are_included = false;
  std::optional<size_t> alignment, gaps, offset;
  std::map<std::string, int> line_of;  // by id
  CsvReader csv(text, name);
  while (auto record = csv.record()) {
    std::vector<std::string> fields = std::move(*record);
    const std::string where = csv.where();
    if (table.header.empty()) {
      table.id = *find_column(fields, id_names, where, true);
      lower = *find_column(fields, lower_names, where, true);
      upper = *find_column(fields, upper_names, where, true);
      size = *find_column(fields, size_names, where, true);
      alignment = find_column(fields, alignment_names, where, false);
      gaps = find_column(fields, gaps_names, where, false);
      offset = find_column(fields, offset_names, where, false);
      ends_are_included = fields[upper] == "end";
      for (size_t i = 0; i < fields.size(); ++i)
        if (i != table.id && i != lower && i != upper && i != size && i != alignment && i != gaps &&
            i != offset && !is_one_of(fields[i], harmless_names))
          table.other_columns.push_back(fields[i]);
      table.header = std::move(fields);
      continue;
    }
    if (fields.size() != table.header.size())
      fail(where,
           fmt::format("expected {} fields as in the header, found {}", table.header.size(), fields.size()));
    const char* const upper_name = ends_are_included ? "end" : "upper";
    const int64_t last = number<int64_t>(fields[upper], upper_name, where);
    const stw_buffer_lifetime life{number<int64_t>(fields[lower], table.header[lower].c_str(), where),
                                   end_of_life(last, ends_are_included, upper_name, where),
                                   number<uint64_t>(fields[size], "size", where)};
    if (life.upper < life.lower)
      fail(where, fmt::format("{}: expected {} or more, found {}; the buffer's {} is {}", upper_name,
                              life.lower - ends_are_included, last, table.header[lower], life.lower));
    const auto [other, is_new] = line_of.emplace(fields[table.id], csv.line());
    if (!is_new)
      fail(where, fmt::format("id: line {1} already has the id \"{0}\"", shortened(fields[table.id]),
                              other->second));
    stw_buffer_constraint constraint{};
    if (alignment && !fields[*alignment].empty()) {
      constraint.alignment = number<uint64_t>(fields[*alignment], "alignment", where);
      if (constraint.alignment == 0) fail(where, "alignment: expected 1 or more, found 0");
    }
    if (offset && !ignores_offsets && !fields[*offset].empty()) {
      constraint.offset = number<uint64_t>(fields[*offset], "offset", where);
      constraint.set_mask = STW_SET_OFFSET;
      ++table.given_offsets;
    }
    table.gaps.push_back(gaps ? parse_gaps(fields[*gaps], ends_are_included, where)
                              : std::vector<stw_buffer_gap>());
    constraint.gap_count = static_cast<uint32_t>(table.gaps.back().size());
    table.constraints.push_back(constraint);
    table.lifetimes.push_back(life);
    table.rows.push_back(std::move(fields));
  }
  for (size_t i = 0; i < table.gaps.size(); ++i) table.constraints[i].gaps = table.gaps[i].data();
  if (table.header.empty())
    fail(name, "expected a header with the columns id,lower,upper,size, found nothing");
  return table;
}

std::string with_offsets(const LifetimeTable& table, const std::vector<uint64_t>& offsets) {
  const auto found = std::find(table.header.begin(), table.header.end(), "offset");
  const size_t at = static_cast<size_t>(found - table.header.begin());
  std::string text;
  const auto add = [&](std::vector<std::string> fields, std::string offset) {
    fields.resize(std::max(fields.size(), at + 1));
    fields[at] = std::move(offset);
    text += csv_line(fields);
  };
  add(table.header, "offset");
  for (size_t i = 0; i < table.rows.size(); ++i) add(table.rows[i], fmt::format("{}", offsets[i]));
  return text;
}

}  // namespace command
