// The parser and the writer of JSON.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <set>

#include "planner/base/json.h"
#include "planner/base/json_reader.h"
#include "planner/base/python_json.h"
#include "planner/base/utf8.h"

namespace stw {

// A recursive-descent parser. A method that finds an error leaves it in the reader and returns false. Its
// callers return false at once.
class JsonParser {
 public:
  JsonParser(std::string_view text, JsonRules rules)
      : reader_(text, rules), keeps_last_(rules == JsonRules::python) {}

  Result<Json> parse() {
    Json result;
    if (parse_value(result, 0) && !reader_.at_end()) reader_.fail("expected the end of the text");
    if (!reader_.has_failed()) return result;
    const auto [line, column] = reader_.place(reader_.error().byte);
    return Error{Code::corrupt, "line " + std::to_string(line) + ", column " + std::to_string(column) + ": " +
                                    reader_.error().message};
  }

 private:
  bool parse_value(Json& out, int depth) {
    if (reader_.at_end()) return reader_.fail("expected a value, found the end of the text");
    const char first = reader_.next();
    if ((first == '{' || first == '[') && depth == json_depth_limit)
      return reader_.fail("nested deeper than " + std::to_string(json_depth_limit) + " levels");
    switch (first) {
      case '{': return parse_object(out.value_.emplace<7>(), depth);
      case '[': return parse_array(out.value_.emplace<6>(), depth);
      case '"': return reader_.text(out.value_.emplace<5>());
      case 't': out = Json(true); return parse_word("true");
      case 'f': out = Json(false); return parse_word("false");
      case 'n': return parse_word("null");
      default: return parse_number(out);
    }
  }

  bool parse_word(std::string_view word) {
    return reader_.take_word(word) || reader_.fail("expected " + std::string(word));
  }

  bool parse_number(Json& out) {
    const char first_character = reader_.next();
    const size_t start = reader_.position();
    std::string_view number = reader_.take_not_finite();
    if (number.empty() && first_character != '-' && (first_character < '0' || first_character > '9'))
      return reader_.fail("expected a value");
    if (number.empty() && (number = reader_.number()).empty()) return false;
    const auto is_all = [&](auto& value) {  // whether the number is a value of that type
      const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
      return error == std::errc() && end == number.data() + number.size();
    };
    int64_t whole = 0;
    if (is_all(whole)) return out = Json(whole), true;
    uint64_t large = 0;
    if (is_all(large)) return out = Json(large), true;
    double real = 0;  // from_chars knows NaN and Infinity too
    if (!is_all(real)) return reader_.fail(start, "the number is outside the range of a double");
    return out = Json(real), true;
  }

  bool parse_array(Json::Array& array, int depth) {
    reader_.take('[');
    if (reader_.take(']')) return true;
    do
      if (!parse_value(array.emplace_back(), depth + 1)) return false;
    while (reader_.take(','));
    return reader_.take(']') || reader_.fail("expected , or ]");
  }

  bool parse_object(Json::Object& object, int depth) {
    std::vector<size_t> starts;  // of the keys, parallel to the members
    reader_.take('{');
    if (reader_.take('}')) return true;
    do {
      if (!reader_.is_next('"')) return reader_.fail("expected a key in quotes");
      starts.push_back(reader_.position());
      auto& [key, value] = object.emplace_back();
      if (!reader_.text(key) || !reader_.expect(':') || !parse_value(value, depth + 1)) return false;
    } while (reader_.take(','));
    if (!reader_.take('}')) return reader_.fail("expected , or }");
    return keeps_last_ ? keep_last(object) : check_unique(object, starts);
  }

  // Keeps the last of several members with one name.
  static bool keep_last(Json::Object& object) {
    std::set<std::string, std::less<>> seen;
    Json::Object kept;
    for (auto member = object.rbegin(); member != object.rend(); ++member)
      if (seen.insert(member->first).second) kept.push_back(std::move(*member));
    std::reverse(kept.begin(), kept.end());
    object = std::move(kept);
    return true;
  }

  bool check_unique(const Json::Object& object, const std::vector<size_t>& starts) {
    std::vector<std::pair<std::string_view, size_t>> keys;
    keys.reserve(object.size());
    for (size_t index = 0; index < object.size(); ++index)
      keys.emplace_back(object[index].first, starts[index]);
    std::sort(keys.begin(), keys.end());
    const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
    const auto twice = std::adjacent_find(keys.begin(), keys.end(), same);
    if (twice == keys.end()) return true;
    return reader_.fail((twice + 1)->second, "the key \"" + std::string(twice->first) + "\" appears twice");
  }

  JsonReader reader_;
  const bool keeps_last_;
};

Result<Json> parse_json(std::string_view text) { return JsonParser(text, JsonRules::strict).parse(); }

Result<Json> parse_python_json(std::string_view text) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    return Error{Code::corrupt, "it is UTF-16, expected UTF-8 (iconv -f UTF-16 -t UTF-8)"};
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  if (text.starts_with(mark)) text.remove_prefix(mark.size());
  return JsonParser(text, JsonRules::python).parse();
}

namespace {

void write_string(std::string& out, std::string_view text) {
  out.push_back('"');
  while (!text.empty()) {
    const char byte = text[0];
    const size_t length = utf8_length(text);
    if (length == 0) {
      out += replacement_character;
    } else if (byte == '"' || byte == '\\') {
      out.push_back('\\');
      out.push_back(byte);
    } else if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (byte == '\r') {
      out += "\\r";
    } else if (static_cast<unsigned char>(byte) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(byte));
      out += escape;
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  out.push_back('"');
}

void write_double(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value);
  const std::string_view text(digits, static_cast<size_t>(end.ptr - digits));
  out += text;
  if (text.find_first_of(".e") == std::string_view::npos) out += ".0";
}

void write_line(std::string& out, int indent, int depth) {
  if (indent <= 0) return;
  out.push_back('\n');
  out.append(static_cast<size_t>(indent) * static_cast<size_t>(depth), ' ');
}

void write_value(std::string& out, const Json& value, int indent, int depth) {
  switch (value.kind()) {
    case Json::Kind::null: out += "null"; return;
    case Json::Kind::boolean: out += *value.as_bool() ? "true" : "false"; return;
    case Json::Kind::integer: out += std::to_string(*value.as_int()); return;
    case Json::Kind::unsigned_integer: out += std::to_string(*value.as_large_uint()); return;
    case Json::Kind::number: write_double(out, *value.as_double()); return;
    case Json::Kind::string: write_string(out, *value.as_string()); return;
    case Json::Kind::written_number: out += *value.as_written_number(); return;
    case Json::Kind::array: {
      const Json::Array& array = value.elements();
      const bool one_line =
          std::all_of(array.begin(), array.end(), [](const Json& item) { return item.is_scalar(); });
      out.push_back('[');
      for (size_t index = 0; index < array.size(); ++index) {
        if (index > 0) out += one_line && indent > 0 ? ", " : ",";
        if (!one_line) write_line(out, indent, depth + 1);
        write_value(out, array[index], indent, depth + 1);
      }
      if (!one_line) write_line(out, indent, depth);
      out.push_back(']');
      return;
    }
    case Json::Kind::object: {
      const Json::Object& object = value.members();
      out.push_back('{');
      for (size_t index = 0; index < object.size(); ++index) {
        if (index > 0) out.push_back(',');
        write_line(out, indent, depth + 1);
        write_string(out, object[index].first);
        out += indent > 0 ? ": " : ":";
        write_value(out, object[index].second, indent, depth + 1);
      }
      if (!object.empty()) write_line(out, indent, depth);
      out.push_back('}');
      return;
    }
  }
}

}  // namespace

std::string to_string(const Json& value, int indent) {
  std::string out;
  write_value(out, value, indent, 0);
  return out;
}

}  // namespace stw
