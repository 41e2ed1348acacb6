#include "lifetimes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "failure.h"

namespace command {
namespace {

[[noreturn]] void fail(const std::string& where, const std::string& what) {
  throw Failure(exit_failed, fmt::format("{}: {}", where, what));
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin, end - begin + 1);
}

std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> fields;
  for (size_t comma = 0; comma != std::string_view::npos;) {
    comma = line.find(',');
    fields.emplace_back(trimmed(line.substr(0, comma)));
    if (comma != std::string_view::npos) line.remove_prefix(comma + 1);
  }
  return fields;
}

size_t column(const std::vector<std::string>& header, const std::string& name, const std::string& where) {
  const auto count = std::count(header.begin(), header.end(), name);
  if (count != 1)
    fail(where, fmt::format("expected one column \"{}\", found {} in \"{}\"", name, count, fmt::join(header, ",")));
  return static_cast<size_t>(std::find(header.begin(), header.end(), name) - header.begin());
}

template <class Number>
Number number(const std::string& text, const char* name, const std::string& where) {
  Number value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc() || stop != end)
    fail(where, fmt::format("{}: expected a whole number{} of 64 bits, found \"{}\"", name,
                            std::is_unsigned_v<Number> ? ", 0 or more," : "", text));
  return value;
}

}  // namespace

LifetimeTable parse_lifetimes(std::string_view text, const std::string& name) {
  LifetimeTable table;
  size_t id = 0, lower = 0, upper = 0, size = 0;
  std::map<std::string, int> line_of;  // by id
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte-order mark
  for (int line = 1; !text.empty(); ++line) {
    const size_t newline = text.find('\n');
    const std::string_view here = trimmed(text.substr(0, newline));
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    if (here.empty()) continue;
    const std::string where = fmt::format("{}:{}", name, line);
    std::vector<std::string> fields = fields_of(here);
    if (table.header.empty()) {
      id = column(fields, "id", where);
      lower = column(fields, "lower", where);
      upper = column(fields, "upper", where);
      size = column(fields, "size", where);
      if (std::count(fields.begin(), fields.end(), "offset") > 1) column(fields, "offset", where);
      table.header = std::move(fields);
      continue;
    }
    if (fields.size() != table.header.size())
      fail(where, fmt::format("expected {} fields as in the header, found {}", table.header.size(), fields.size()));
    const stw_buffer_lifetime life{number<int64_t>(fields[lower], "lower", where),
                                   number<int64_t>(fields[upper], "upper", where),
                                   number<uint64_t>(fields[size], "size", where)};
    if (life.upper < life.lower)
      fail(where, fmt::format("upper: expected {} or more, the buffer's lower, found {}", life.lower, life.upper));
    const auto [other, is_new] = line_of.emplace(fields[id], line);
    if (!is_new) fail(where, fmt::format("id: \"{}\" is that of line {} already", fields[id], other->second));
    table.lifetimes.push_back(life);
    table.rows.push_back(std::move(fields));
  }
  if (table.header.empty()) fail(name, "expected a header with the columns id,lower,upper,size, found nothing");
  return table;
}

std::string with_offsets(const LifetimeTable& table, const std::vector<uint64_t>& offsets) {
  const auto found = std::find(table.header.begin(), table.header.end(), "offset");
  const size_t at = static_cast<size_t>(found - table.header.begin());
  std::string text;
  const auto add = [&](std::vector<std::string> fields, std::string offset) {
    fields.resize(std::max(fields.size(), at + 1));
    fields[at] = std::move(offset);
    fmt::format_to(std::back_inserter(text), "{}\n", fmt::join(fields, ","));
  };
  add(table.header, "offset");
  for (size_t i = 0; i < table.rows.size(); ++i) add(table.rows[i], fmt::format("{}", offsets[i]));
  return text;
}

}  // namespace command
