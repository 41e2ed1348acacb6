// The parser and the writer of JSON.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <set>

#include "planner/base/json.h"
#include "planner/base/python_json.h"
#include "planner/base/utf8.h"

namespace stw {

// A recursive-descent parser. A method that finds an error calls `fail`, which stores the message and its
// position, and returns false. Its callers return false at once.
class JsonParser {
 public:
  // `of_python`: as in parse_python_json.
  JsonParser(std::string_view text, bool of_python) : text_(text), of_python_(of_python) {}

  Result<Json> parse() {
    Json result;
    skip_space();
    if (!parse_value(result, 0)) return error();
    skip_space();
    if (position_ != text_.size()) {
      fail("expected the end of the text");
      return error();
    }
    return result;
  }

 private:
  bool fail(std::string message) { return fail_at(position_, std::move(message)); }
  bool fail_at(size_t position, std::string message) {
    position_ = position;
    message_ = std::move(message);
    return false;
  }

  Error error() const {
    const std::string_view before = text_.substr(0, position_);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const size_t newline = before.rfind('\n');
    const size_t column = newline == std::string_view::npos ? position_ + 1 : position_ - newline;
    return {Code::corrupt,
            "line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + message_};
  }

  bool at_end() const { return position_ == text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[position_]; }
  bool take(char expected) {
    if (peek() != expected || at_end()) return false;
    ++position_;
    return true;
  }
  void skip_space() {
    while (!at_end() && (peek() == ' ' || peek() == '\n' || peek() == '\r' || peek() == '\t')) ++position_;
  }

  bool parse_value(Json& out, int depth) {
    if (at_end()) return fail("expected a value, found the end of the text");
    switch (peek()) {
      case '{': return parse_object(out, depth);
      case '[': return parse_array(out, depth);
      case '"': return parse_string(out.value_.emplace<5>());
      case 't': out = Json(true); return parse_word("true");
      case 'f': out = Json(false); return parse_word("false");
      case 'n': return parse_word("null");
      default: break;
    }
    if (of_python_ && take_not_finite(out)) return true;
    if (peek() == '-' || is_digit()) return parse_number(out);
    return fail("expected a value");
  }

  bool take_not_finite(Json& out) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr std::pair<std::string_view, double> words[] = {
        {"NaN", std::numeric_limits<double>::quiet_NaN()}, {"Infinity", infinity}, {"-Infinity", -infinity}};
    for (const auto& [word, value] : words) {
      if (!text_.substr(position_).starts_with(word)) continue;
      position_ += word.size();
      out = Json(value);
      return true;
    }
    return false;
  }

  bool parse_word(std::string_view word) {
    if (text_.substr(position_, word.size()) != word) return fail("expected " + std::string(word));
    position_ += word.size();
    return true;
  }

  bool is_digit() const { return peek() >= '0' && peek() <= '9'; }
  bool parse_digits() {
    if (!is_digit()) return fail("expected a digit");
    while (is_digit()) ++position_;
    return true;
  }

  bool parse_number(Json& out) {
    const size_t start = position_;
    bool integral = true;
    take('-');
    if (take('0')) {
      if (is_digit()) return fail("a number may not start with 0");
    } else if (!parse_digits()) {
      return false;
    }
    if (take('.')) {
      integral = false;
      if (!parse_digits()) return false;
    }
    if (peek() == 'e' || peek() == 'E') {
      integral = false;
      ++position_;
      if (!take('+')) take('-');
      if (!parse_digits()) return false;
    }
    const char* first = text_.data() + start;
    const char* last = text_.data() + position_;
    if (integral) {
      int64_t value = 0;
      if (std::from_chars(first, last, value).ec == std::errc()) return out = Json(value), true;
      uint64_t large = 0;
      if (*first != '-' && std::from_chars(first, last, large).ec == std::errc())
        return out = Json(large), true;
    }
    double value = 0;
    if (std::from_chars(first, last, value).ec != std::errc())
      return fail_at(start, "the number is outside the range of a double");
    out = Json(value);
    return true;
  }

  bool parse_hex4(uint32_t& value) {
    if (text_.size() - position_ < 4) return fail("expected four hexadecimal digits");
    const char* first = text_.data() + position_;
    for (int index = 0; index < 4; ++index)
      if (std::string_view("0123456789abcdefABCDEF").find(first[index]) == std::string_view::npos)
        return fail("expected four hexadecimal digits");
    std::from_chars(first, first + 4, value, 16);
    position_ += 4;
    return true;
  }

  bool parse_escape(std::string& out) {
    const size_t start = position_++;
    const std::string_view letters = "\"\\/bfnrt";
    const std::string_view meanings = "\"\\/\b\f\n\r\t";
    if (const size_t index = at_end() ? std::string_view::npos : letters.find(peek());
        index != std::string_view::npos) {
      out.push_back(meanings[index]);
      ++position_;
      return true;
    }
    if (!take('u')) return fail_at(start, "unknown escape");
    uint32_t code = 0;
    if (!parse_hex4(code)) return false;
    if (code >= 0xDC00 && code <= 0xDFFF) return fail_at(start, "a low surrogate without a high one");
    if (code >= 0xD800 && code <= 0xDBFF) {
      uint32_t low = 0;
      if (!take('\\') || !take('u')) return fail_at(start, "a high surrogate without a low one");
      if (!parse_hex4(low)) return false;
      if (low < 0xDC00 || low > 0xDFFF) return fail_at(start, "a high surrogate without a low one");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    append_utf8(out, code);
    return true;
  }

  bool parse_string(std::string& out) {
    const size_t start = position_++;
    for (;;) {
      if (at_end()) return fail_at(start, "the string does not end");
      const auto byte = static_cast<unsigned char>(peek());
      if (byte == '"') break;
      if (byte == '\\') {
        if (!parse_escape(out)) return false;
        continue;
      }
      if (byte < 0x20) return fail("a control character in a string must be escaped");
      const size_t length = utf8_length(text_.substr(position_));
      if (length == 0) return fail("the string is not UTF-8");
      out.append(text_.substr(position_, length));
      position_ += length;
    }
    ++position_;
    return true;
  }

  bool parse_array(Json& out, int depth) {
    if (depth == json_depth_limit)
      return fail("nested deeper than " + std::to_string(json_depth_limit) + " levels");
    Json::Array& array = out.value_.emplace<6>();
    ++position_;
    skip_space();
    if (take(']')) return true;
    for (;;) {
      skip_space();
      if (!parse_value(array.emplace_back(), depth + 1)) return false;
      skip_space();
      if (take(']')) return true;
      if (!take(',')) return fail("expected , or ]");
    }
  }

  bool parse_object(Json& out, int depth) {
    if (depth == json_depth_limit)
      return fail("nested deeper than " + std::to_string(json_depth_limit) + " levels");
    Json::Object& object = out.value_.emplace<7>();
    std::vector<size_t> starts;  // of the keys, parallel to the members
    ++position_;
    skip_space();
    if (take('}')) return true;
    for (;;) {
      skip_space();
      if (peek() != '"') return fail("expected a key in quotes");
      starts.push_back(position_);
      auto& [key, value] = object.emplace_back();
      if (!parse_string(key)) return false;
      skip_space();
      if (!take(':')) return fail("expected :");
      skip_space();
      if (!parse_value(value, depth + 1)) return false;
      skip_space();
      if (take('}')) return of_python_ ? keep_last(object) : check_unique(object, starts);
      if (!take(',')) return fail("expected , or }");
    }
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
    return fail_at((twice + 1)->second, "the key \"" + std::string(twice->first) + "\" appears twice");
  }

  std::string_view text_;
  const bool of_python_;
  size_t position_ = 0;
  std::string message_;
};

Result<Json> parse_json(std::string_view text) { return JsonParser(text, false).parse(); }

Result<Json> parse_python_json(std::string_view text) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    return Error{Code::corrupt, "it is UTF-16, expected UTF-8 (iconv -f UTF-16 -t UTF-8)"};
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  if (text.starts_with(mark)) text.remove_prefix(mark.size());
  return JsonParser(text, true).parse();
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
