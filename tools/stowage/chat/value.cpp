#include "chat/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/utf8.h"
#include "chat/letters.h"
#include "tokenizer/unicode.h"

namespace command::chat {

using K = Value::Kind;

namespace {

constexpr int deepest_value = 100;

std::string of_real(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", d);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string python_string(const std::string& s) {
  const char quote = s.find('\'') != std::string::npos && s.find('"') == std::string::npos ? '"' : '\'';
  std::string text(1, quote);
  for (std::string_view rest = s; !rest.empty();) {
    const Character c = first_character(rest);
    const std::string_view as_it_is = rest.substr(0, c.bytes);
    rest.remove_prefix(c.bytes);
    if (c.code == static_cast<unsigned char>(quote) || c.code == '\\') (text += '\\') += as_it_is;
    else if (c.code == '\n') text += "\\n";
    else if (c.code == '\t') text += "\\t";
    else if (c.code == '\r') text += "\\r";
    else if (is_printable(c.code)) text += as_it_is;
    else if (c.code < 0x100) text += fmt::format("\\x{:02x}", c.code);
    else text += c.code < 0x10000 ? fmt::format("\\u{:04x}", c.code) : fmt::format("\\U{:08x}", c.code);
  }
  return text + quote;
}

std::string json_string_of(const std::string& s, bool ascii) {
  std::string text = "\"";
  for (size_t i = 0; i < s.size(); ++i) {
    const char c = s[i];
    if (ascii && static_cast<unsigned char>(c) >= 0x80) {
      const Character character = first_character(std::string_view(s).substr(i));
      const uint32_t code = character.code;
      text += code < 0x10000 ? fmt::format("\\u{:04x}", code)
                             : fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((code - 0x10000) >> 10),
                                           0xDC00 + (code & 0x3FF));
      i += character.bytes - 1;
      continue;
    }
    if (c == '"' || c == '\\') (text += '\\') += c;
    else if (c == '\n') text += "\\n";
    else if (c == '\t') text += "\\t";
    else if (c == '\r') text += "\\r";
    else if (c == '\b') text += "\\b";
    else if (c == '\f') text += "\\f";
    else if (static_cast<unsigned char>(c) < 0x20 || (ascii && c == 0x7F))
      text += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else text += c;
  }
  return text + '"';
}

}  // namespace

Value Value::undefined(std::string name) {
  Value v;
  v.text_ = std::make_shared<const std::string>(std::move(name));
  return v;
}
Value Value::none() {
  Value v;
  v.kind_ = K::none;
  return v;
}
Value::Value(std::string s) : kind_(K::string), text_(std::make_shared<const std::string>(std::move(s))) {
  check_length(*text_);
  parts_ += text_->size() / bytes_a_part;
}
Value::Value(List l, bool is_tuple)
    : kind_(K::list), is_tuple_(is_tuple), list_(std::make_shared<List>(std::move(l))) {
  if (list_->size() > longest_list) throw TemplateError("a list is too long");
  for (const Value& v : *list_) hold(v);
}
Value::Value(Members m) : kind_(K::mapping), members_(std::make_shared<Members>(std::move(m))) {
  for (const auto& [name, v] : *members_) hold(v);
}
// A namespace can change after it is made, so it could contain itself.
void Value::hold(const Value& part) {
  if (part.is_space_) throw TemplateError("a namespace inside of another value is not supported");
  if ((parts_ += part.parts_) > most_parts) throw TemplateError("a value is too large");
  depth_ = std::max(depth_, part.depth_ + 1);
  if (depth_ > deepest_value) throw TemplateError("a value is nested too deeply");
}
Value Value::series(List l, Series kind) {
  Value v(std::move(l));
  v.series_ = kind;
  if (kind == Series::once) v.is_used_ = std::make_shared<bool>(false);
  return v;
}
Value Value::space(Members m) {
  Value v(std::move(m));
  v.is_space_ = true;
  return v;
}
Value::Value(Function f) : kind_(K::function), function_(std::make_shared<Function>(std::move(f))) {}

const char* Value::kind_name() const {
  constexpr const char* names[] = {"an undefined value", "none",   "a boolean", "a whole number", "a number",
                                   "a string",           "a list", "a mapping", "a function"};
  return names[static_cast<size_t>(kind_)];
}
void Value::fail(std::string_view expected) const {
  throw TemplateError(kind_ == K::undefined ? fmt::format("'{}' is undefined", text_ ? *text_ : std::string())
                                            : fmt::format("expected {}, found {}", expected, kind_name()));
}

bool Value::is_true() const {
  switch (kind_) {
    case K::undefined:
    case K::none: return false;
    case K::boolean:
    case K::integer: return integer_ != 0;
    case K::real: return real_ != 0;
    case K::string: return !text_->empty();
    case K::list: return series_ == Series::once || !list_->empty();
    case K::mapping: return !members_->empty();
    default: return true;
  }
}

int64_t Value::integer() const {
  if (kind_ != K::integer && kind_ != K::boolean) fail("a whole number");
  return integer_;
}
double Value::real() const {
  if (!is_number()) fail("a number");
  return kind_ == K::real ? real_ : static_cast<double>(integer_);
}
const std::string& Value::text() const {
  if (kind_ != K::string) fail("a string");
  return *text_;
}
const List& Value::list() const {
  if (kind_ != K::list) fail("a list");
  if (series_ == Series::once)
    throw TemplateError("expected a list, found a generator; `| list` makes a list of it");
  return *list_;
}
const Members& Value::members() const {
  if (kind_ != K::mapping) fail("a mapping");
  return *members_;
}
void Value::set_member(const std::string& name, Value value) const {
  if (!is_space_) fail("a namespace, whose members may be set");
  if (value.is_space_) throw TemplateError("a namespace inside of another value is not supported");
  const auto found =
      std::find_if(members_->begin(), members_->end(), [&](const auto& m) { return m.first == name; });
  if (found != members_->end()) found->second = std::move(value);
  else members_->emplace_back(name, std::move(value));
}
const Function& Value::function() const {
  if (kind_ != K::function) fail("a function");
  return *function_;
}
const Value* Value::member(std::string_view key) const {
  for (const auto& [name, value] : members())
    if (name == key) return &value;
  return nullptr;
}

std::string Value::str() const {
  switch (kind_) {
    case K::undefined: return "";
    case K::string: return *text_;
    default: return repr();
  }
}

std::string Value::repr() const {
  std::string text;
  add_repr(text);
  return text;
}
// Appends to one text. Concatenating at each depth would multiply the time by the depth.
void Value::add_repr(std::string& text) const {
  bool is_first = true;
  const auto begin_next = [&] {
    if (!is_first) text += ", ";
    is_first = false;
  };
  switch (kind_) {
    case K::undefined: text += "Undefined"; break;
    case K::none: text += "None"; break;
    case K::boolean: text += integer_ ? "True" : "False"; break;
    case K::integer: text += fmt::format("{}", integer_); break;
    case K::real: text += of_real(real_); break;
    case K::string: text += python_string(*text_); break;
    case K::list: {
      const List& all = list();
      if (is_series())
        text += fmt::format("dict_{}([", series_ == Series::keys     ? "keys"
                                         : series_ == Series::values ? "values"
                                                                     : "items");
      else text += is_tuple_ ? "(" : "[";
      for (const Value& v : all) begin_next(), v.add_repr(text);
      text += is_series() ? "])" : !is_tuple_ ? "]" : all.size() == 1 ? ",)" : ")";
      break;
    }
    case K::mapping:
      text += is_space_ ? "<Namespace {" : "{";
      for (const auto& [name, value] : *members_) {
        begin_next();
        text += python_string(name) + ": ";
        value.add_repr(text);
      }
      text += is_space_ ? "}>" : "}";
      break;
    default: throw TemplateError("a function has no text");
  }
  check_length(text);
}

std::string Value::json(const JsonForm& form) const {
  std::string text;
  add_json(text, form, 0);
  return text;
}
void Value::add_json(std::string& text, const JsonForm& form, int depth) const {
  if (is_series() || is_space_)
    throw TemplateError(
        "expected a value that JSON has, found a generator or a namespace; `| list` makes a list of a "
        "generator");
  const auto add_line = [&](int d) {
    text += '\n';
    for (int i = 0; i < d; ++i) check_length(text += *form.indent);
  };
  bool is_first = true;
  const auto begin_next = [&] {
    if (!is_first) text += form.between;
    is_first = false;
    if (form.indent) add_line(depth + 1);
  };
  switch (kind_) {
    case K::none: text += "null"; break;
    case K::boolean: text += integer_ ? "true" : "false"; break;
    case K::string: text += json_string_of(*text_, form.ascii); break;
    case K::integer: add_repr(text); break;
    case K::real:
      text += std::isnan(real_)   ? "NaN"
              : std::isinf(real_) ? (real_ > 0 ? "Infinity" : "-Infinity")
                                  : of_real(real_);
      break;
    case K::list:
      text += '[';
      for (const Value& v : *list_) begin_next(), v.add_json(text, form, depth + 1);
      if (!is_first && form.indent) add_line(depth);
      text += ']';
      break;
    case K::mapping:
      text += '{';
      for (const auto& [name, value] : *members_) {
        begin_next();
        text += json_string_of(name, form.ascii) + form.after_name;
        value.add_json(text, form, depth + 1);
      }
      if (!is_first && form.indent) add_line(depth);
      text += '}';
      break;
    default: fail("a value that JSON has");
  }
  check_length(text);
}

bool Value::operator==(const Value& other) const {
  if (is_number() && other.is_number())
    return kind_ == K::real || other.kind_ == K::real ? real() == other.real() : integer_ == other.integer_;
  if (kind_ != other.kind_) return false;
  switch (kind_) {
    case K::string: return *text_ == *other.text_;
    case K::list:
      return is_tuple_ == other.is_tuple_ && series_ == other.series_ && series_ != Series::once &&
             (list_ == other.list_ || *list_ == *other.list_);
    case K::mapping: {
      if (members_ == other.members_) return true;
      if (members_->size() != other.members_->size()) return false;
      std::map<std::string_view, const Value*> theirs;
      for (const auto& [name, value] : *other.members_) theirs.emplace(name, &value);
      return std::all_of(members_->begin(), members_->end(), [&](const auto& m) {
        const auto found = theirs.find(m.first);
        return found != theirs.end() && *found->second == m.second;
      });
    }
    case K::function: return function_ == other.function_;
    default: return true;
  }
}

bool Value::operator<(const Value& other) const {
  if (is_number() && other.is_number())
    return kind_ == K::real || other.kind_ == K::real ? real() < other.real() : integer_ < other.integer_;
  // UTF-8 preserves the order of characters
  if (kind_ == K::string && other.kind_ == K::string) return *text_ < *other.text_;
  if (kind_ == K::list && other.kind_ == K::list && is_tuple_ == other.is_tuple_ && !is_series() &&
      !other.is_series())
    return std::lexicographical_compare(list_->begin(), list_->end(), other.list_->begin(),
                                        other.list_->end());
  if (kind_ == K::undefined) fail("");
  if (other.kind_ == K::undefined) other.fail("");
  throw TemplateError(fmt::format("{} and {} cannot be ordered", kind_name(), other.kind_name()));
}

bool Value::contains(const Value& item) const {
  switch (kind_) {
    case K::undefined: return false;
    case K::string: return text_->find(item.text()) != std::string::npos;
    case K::list: return std::find(list_->begin(), list_->end(), item) != list_->end();
    case K::mapping:
      if (item.is(K::mapping) || (item.is(K::list) && !item.is_tuple()))
        throw TemplateError("a list or a mapping cannot be a key of a mapping");
      return item.is(K::string) && member(*item.text_) != nullptr;
    default: fail("a string, a list or a mapping");
  }
}

List Value::elements() const {
  List all;
  switch (kind_) {
    case K::undefined: return all;
    case K::list: return is_used_ && std::exchange(*is_used_, true) ? all : *list_;
    case K::mapping:
      for (const auto& [name, value] : *members_) all.push_back(name);
      return all;
    case K::string: {
      const std::vector<size_t> at = characters(*text_);
      // a value takes about a hundred times the memory of a character
      if (at.size() > longest_list) throw TemplateError("a list is too long");
      for (size_t i = 0; i + 1 < at.size(); ++i) all.push_back(text_->substr(at[i], at[i + 1] - at[i]));
      return all;
    }
    default: fail("a list");
  }
}

Value Arguments::get(size_t at, std::string_view name) const {
  if (at < values.size()) return values[at];
  for (const auto& [key, value] : named)
    if (key == name) return value;
  return {};
}

std::vector<size_t> characters(std::string_view text) {
  std::vector<size_t> at;
  for (size_t i = 0; i < text.size(); i += std::max<size_t>(1, utf8_length(text.substr(i)))) at.push_back(i);
  at.push_back(text.size());
  return at;
}

int64_t integer_or(const Value& value, int64_t otherwise) {
  return value.is(K::undefined) ? otherwise : value.integer();
}

std::optional<std::string> text_or_nothing(const Value& value) {
  return value.is(K::undefined) || value.is(K::none) ? std::nullopt : std::optional(value.text());
}

List items_of(const Value& value) {
  List list;
  if (value.is(K::undefined)) return list;
  for (const auto& [name, member] : value.members()) list.push_back(Value(List{name, member}, true));
  return list;
}

}  // namespace command::chat
