#include "lifetimes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "csv.h"
#include "failure.h"
#include "utf8.h"

namespace command {
namespace {

[[noreturn]] void fail(const std::string& where, const std::string& what) {
  throw Failure(exit_failed, fmt::format("{}: {}", where, what));
}

size_t column(const std::vector<std::string>& header, const std::string& name, const std::string& where) {
  const auto count = std::count(header.begin(), header.end(), name);
  if (count != 1)
    fail(where, fmt::format("expected one column \"{}\", found {} in \"{}\"", name, count, shortened(fmt::format("{}", fmt::join(header, ",")), most_of_header)));
  return static_cast<size_t>(std::find(header.begin(), header.end(), name) - header.begin());
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

}  // namespace

LifetimeTable parse_lifetimes(std::string_view text, const std::string& name) {
  LifetimeTable table;
  size_t id = 0, lower = 0, upper = 0, size = 0;
  std::map<std::string, int> line_of;  // by id
  CsvReader csv(text, name);
  while (auto record = csv.record()) {
    std::vector<std::string> fields = std::move(*record);
    const std::string where = csv.where();
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
    const auto [other, is_new] = line_of.emplace(fields[id], csv.line());
    if (!is_new) fail(where, fmt::format("id: \"{}\" is that of line {} already", shortened(fields[id]), other->second));
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
    text += csv_line(fields);
  };
  add(table.header, "offset");
  for (size_t i = 0; i < table.rows.size(); ++i) add(table.rows[i], fmt::format("{}", offsets[i]));
  return text;
}

}  // namespace command
