#include "base/json_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "planner/base/json.h"
#include "planner/base/json_reader.h"
#include "planner/base/utf8.h"

namespace command {
namespace {

using Reader = stw::JsonReader;
using stw::JsonRules;

// The first member of that name in the value that comes next, as it is written. Reads up to its end, or the
// whole value if there is none.
std::optional<std::string_view> first_member(Reader& reader, std::string_view name, int depth = 0) {
  const bool is_object = reader.is_next('{');
  if (depth == stw::json_depth_limit || !reader.take(is_object ? '{' : '[')) {
    reader.skip();
    return std::nullopt;
  }
  if (reader.take(is_object ? '}' : ']')) return std::nullopt;
  do {
    if (is_object) {
      const std::string_view key = reader.string();
      if (!reader.expect(':')) break;
      if (key == name) return reader.skip();
    }
    if (const auto found = first_member(reader, name, depth + 1)) return found;
  } while (!reader.has_failed() && reader.take(','));
  reader.expect(is_object ? '}' : ']');
  return std::nullopt;
}

// The member of that name of the object that comes next, as it is written.
std::optional<std::string_view> own_member(Reader& reader, std::string_view name) {
  if (!reader.take('{') || reader.take('}')) return std::nullopt;
  do {
    const std::string_view key = reader.string();
    const bool is_found = key == name;
    if (!reader.expect(':')) return std::nullopt;
    const std::string_view value = reader.skip();
    if (is_found) return value;
  } while (!reader.has_failed() && reader.take(','));
  return std::nullopt;
}

std::optional<std::string_view> json_value(std::string_view text, std::string_view scope,
                                           std::string_view key) {
  std::optional<std::string_view> value = text;
  for (const std::string_view name : {scope, key}) {
    if (name.empty()) continue;
    Reader own(*value, JsonRules::python), any(*value, JsonRules::python);
    const auto found = own_member(own, name);
    value = found && !own.has_failed() ? found : first_member(any, name);
    if (!value || (!found && any.has_failed())) return std::nullopt;
  }
  return value;
}

template <class Number>
std::optional<Number> json_number_as(std::string_view text, std::string_view scope, std::string_view key) {
  const auto value = json_value(text, scope, key);
  Number number = 0;
  if (!value || std::from_chars(value->data(), value->data() + value->size(), number).ec != std::errc())
    return std::nullopt;
  return number;
}

}  // namespace

std::optional<double> json_number(std::string_view text, std::string_view scope, std::string_view key) {
  const auto number = json_number_as<double>(text, scope, key);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

// Does not use json_number, because a double does not hold every seed.
std::optional<uint64_t> json_integer(std::string_view text, std::string_view scope, std::string_view key) {
  return json_number_as<uint64_t>(text, scope, key);
}

std::optional<bool> json_bool(std::string_view text, std::string_view scope, std::string_view key) {
  const auto value = json_value(text, scope, key);
  if (value == "true") return true;
  if (value == "false") return false;
  return std::nullopt;
}

std::optional<std::string> json_string(std::string_view text, std::string_view scope, std::string_view key) {
  const auto value = json_value(text, scope, key);
  if (!value || !value->starts_with('"')) return std::nullopt;
  Reader reader(*value, JsonRules::python);
  std::string out;
  if (!reader.text(out)) return std::nullopt;
  return out;
}

std::optional<std::vector<std::string>> json_list(std::string_view text, std::string_view scope,
                                                  std::string_view key) {
  const auto value = json_value(text, scope, key);
  if (!value || !value->starts_with('[')) return std::nullopt;
  Reader reader(*value, JsonRules::python);
  std::vector<std::string> elements;
  reader.expect('[');
  if (reader.take(']')) return elements;
  do elements.emplace_back(reader.skip());
  while (reader.take(','));
  if (!reader.expect(']') || reader.has_failed()) return std::nullopt;
  return elements;
}

std::string json_quoted(std::string_view text) { return stw::to_string(stw::Json(text), 0); }

std::string json_bytes(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const size_t length = stw::utf8_length(text);
    const std::string quoted =
        length == 0
            ? fmt::format("\"\\udc{:02x}\"", static_cast<unsigned>(static_cast<unsigned char>(text[0])))
            : json_quoted(text.substr(0, length));
    out.append(quoted, 1, quoted.size() - 2);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out + '"';
}

}  // namespace command
