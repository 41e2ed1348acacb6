#include "functions.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "../tokenizer/unicode.h"
#include "../utf8.h"

namespace command::chat {
namespace {

using K = Value::Kind;

// ---- texts
std::string with_characters(const std::string& text, int32_t (*of)(int32_t)) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const Character c = first_character(std::string_view(text).substr(at));
    append_utf8(result, static_cast<uint32_t>(of(static_cast<int32_t>(c.code))));
    at += c.bytes;
  }
  return result;
}
std::string upper(const std::string& text) { return with_characters(text, utf8proc_toupper); }
std::string lower(const std::string& text) { return with_characters(text, utf8proc_tolower); }
std::string capitalize(const std::string& text) {
  const std::vector<size_t> at = characters(text);
  return at.size() < 2 ? text : upper(text.substr(0, at[1])) + lower(text.substr(at[1]));
}
// The first letter of every word, which are apart by what `is_between` says.
std::string title(const std::string& text, bool (*is_between)(uint32_t)) {
  std::string result;
  bool begins = true;
  for (size_t at = 0; at < text.size();) {
    const Character c = first_character(std::string_view(text).substr(at));
    append_utf8(result, static_cast<uint32_t>(begins ? utf8proc_totitle(static_cast<int32_t>(c.code)) : utf8proc_tolower(static_cast<int32_t>(c.code))));
    begins = is_between(c.code);
    at += c.bytes;
  }
  return result;
}
bool is_letter(uint32_t code) {
  const auto category = utf8proc_category(static_cast<int32_t>(code));
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LT;
}

// As Python's strip: white space, or the characters that are given.
bool is_white(uint32_t code) { return is_space(code) || (code >= 0x1c && code <= 0x1f); }
template <class IsStripped>
std::string_view stripped_of(std::string_view text, const IsStripped& is_stripped, bool at_begin, bool at_end) {
  while (at_begin && !text.empty()) {
    const Character c = first_character(text);
    if (!is_stripped(c.code)) break;
    text.remove_prefix(c.bytes);
  }
  while (at_end && !text.empty()) {
    const Character c = last_character(text);
    if (!is_stripped(c.code)) break;
    text.remove_suffix(c.bytes);
  }
  return text;
}
std::string stripped(std::string_view text, const std::optional<std::string>& given, bool at_begin, bool at_end) {
  if (!given) return std::string(stripped_of(text, is_white, at_begin, at_end));
  std::set<uint32_t> codes;
  for (std::string_view rest = *given; !rest.empty();) {
    const Character c = first_character(rest);
    codes.insert(c.code);
    rest.remove_prefix(c.bytes);
  }
  return std::string(stripped_of(text, [&](uint32_t code) { return codes.contains(code); }, at_begin, at_end));
}
std::optional<std::string> text_or_nothing(const Value& value) {
  return value.is(K::undefined) || value.is(K::none) ? std::nullopt : std::optional(value.text());
}

List split(const std::string& text, const std::optional<std::string>& by, int64_t most) {
  List parts;
  most = most < 0 ? INT64_MAX : most;
  if (by && by->empty()) throw TemplateError("split by nothing");
  if (by) {
    size_t at = 0;
    for (size_t next; most != 0 && (next = text.find(*by, at)) != std::string::npos; at = next + by->size(), --most) parts.push_back(text.substr(at, next - at));
    parts.push_back(text.substr(at));
    return parts;
  }
  std::string_view rest = stripped_of(text, is_white, true, false);   // by white space, of which any amount is one
  while (!rest.empty()) {
    if (most-- == 0) {
      parts.push_back(std::string(stripped_of(rest, is_white, false, true)));
      break;
    }
    size_t end = 0;
    while (end < rest.size()) {
      const Character c = first_character(rest.substr(end));
      if (is_white(c.code)) break;
      end += c.bytes;
    }
    parts.push_back(std::string(rest.substr(0, end)));
    rest = stripped_of(rest.substr(end), is_white, true, false);
  }
  return parts;
}
List split_from_end(const std::string& text, const std::optional<std::string>& by, int64_t most) {
  if (!by) throw TemplateError("rsplit needs what to split by");
  most = most < 0 ? INT64_MAX : most;
  if (by->empty()) throw TemplateError("split by nothing");
  List parts;
  size_t end = text.size();
  for (size_t next; most != 0 && end >= by->size() && (next = text.rfind(*by, end - by->size())) != std::string::npos; end = next, --most)
    parts.push_back(text.substr(next + by->size(), end - next - by->size()));
  parts.push_back(text.substr(0, end));
  std::reverse(parts.begin(), parts.end());
  return parts;
}
List lines_of(const std::string& text) {
  List lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of("\n\r", at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + (text.compare(end, 2, "\r\n") == 0 ? 2 : 1);
  }
  return lines;
}
std::string replaced(const std::string& text, const std::string& from, const std::string& to, int64_t most) {
  std::string result;
  size_t at = 0;
  if (from.empty()) throw TemplateError("replace needs what to replace");
  most = most < 0 ? INT64_MAX : most;
  for (size_t next; most != 0 && (next = text.find(from, at)) != std::string::npos; at = next + from.size(), --most) check_length((result += text.substr(at, next - at)) += to);
  return result + text.substr(at);
}
std::string joined(const List& list, const std::string& by) {
  std::string text;
  for (size_t i = 0; i < list.size(); ++i) check_length((text += i > 0 ? by : "") += list[i].str());
  return text;
}
bool any_affix(const std::string& text, const Value& affix, bool at_begin) {
  const auto has = [&](const Value& v) { return at_begin ? text.starts_with(v.text()) : text.ends_with(v.text()); };
  return affix.is(K::list) ? std::any_of(affix.list().begin(), affix.list().end(), has) : has(affix);
}
std::string indented(const std::string& text, const std::string& by, bool first, bool blank) {
  std::string result;
  const List lines = split(text, "\n", -1);
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i].text();
    const bool indents = i == 0 ? first : blank || !line.empty();
    check_length(((result += i > 0 ? "\n" : "") += indents ? by : "") += line);
  }
  return result;
}

// ---- values
int64_t size_of(const Value& value) {
  switch (value.kind()) {
    case K::undefined: return 0;
    case K::string: return static_cast<int64_t>(characters(value.text()).size()) - 1;
    case K::mapping: return static_cast<int64_t>(value.members().size());
    default: return static_cast<int64_t>(value.list().size());
  }
}
Value attribute_of(const Value& value, const std::string& path) {
  Value at = value;
  for (const Value& part : split(path, ".", -1)) {
    const Value* found = at.is(K::mapping) ? at.member(part.text()) : nullptr;
    if (!found) return Value::undefined(part.text());
    at = Value(*found);
  }
  return at;
}
List items_of(const Value& value) {
  List list;
  if (value.is(K::undefined)) return list;
  for (const auto& [name, member] : value.members()) list.push_back(Value(List{name, member}, true));
  return list;
}
List values_of(const Value& mapping) {
  List list;
  for (const auto& [name, member] : mapping.members()) list.push_back(member);
  return list;
}
Arguments behind(const Arguments& arguments, size_t first) {
  Arguments rest;
  for (size_t i = first; i < arguments.values.size(); ++i) rest.values.push_back(arguments.values[i]);
  rest.named = arguments.named;
  return rest;
}
int64_t integer_or(const Value& value, int64_t otherwise) { return value.is(K::undefined) ? otherwise : value.integer(); }
// Without regard to case, where texts are asked for so: Jinja's default.
Value comparable(const Value& value, const Arguments& a, size_t at) {
  const Value by = a.get(100, "attribute");
  const Value of = by.is(K::string) ? attribute_of(value, by.text()) : value;
  return of.is(K::string) && !a.get(at, "case_sensitive").is_true() ? Value(lower(of.text())) : of;
}
List sorted(List list, const Arguments& a) {
  const bool is_reversed = a.get(0, "reverse").is_true();
  std::stable_sort(list.begin(), list.end(), [&](const Value& x, const Value& y) {
    const Value p = comparable(x, a, 1), q = comparable(y, a, 1);
    return is_reversed ? q < p : p < q;
  });
  return list;
}
// What filters of lists go over: of anything that counts as false, nothing, as in Jinja.
List elements_or_none(const Value& value) { return value.is_true() ? value.elements() : List(); }
// select, reject, and the same by an attribute.
List chosen(const Value& value, const Arguments& a, bool by_attribute, bool wanted) {
  List list;
  const size_t test = by_attribute ? 1 : 0;
  for (const Value& item : elements_or_none(value)) {
    const Value of = by_attribute ? attribute_of(item, a.get(0, "").text()) : item;
    const bool holds = a.values.size() > test ? apply_test(a.values[test].text(), of, behind(a, test + 1)) : of.is_true();
    if (holds == wanted) list.push_back(item);
  }
  return list;
}
List mapped(const Value& value, const Arguments& a) {
  List list;
  const Value attribute = a.get(100, "attribute"), standard = a.get(100, "default");
  for (const Value& item : elements_or_none(value)) {
    if (a.values.empty()) {
      const Value found = attribute_of(item, attribute.text());
      list.push_back(found.is(K::undefined) && !standard.is(K::undefined) ? standard : found);
    } else {
      list.push_back(apply_filter(a.values[0].text(), item, behind(a, 1)));
    }
  }
  return list;
}
Value with_sorted_keys(const Value& value) {
  if (value.is(K::list)) {
    List list;
    for (const Value& item : value.list()) list.push_back(with_sorted_keys(item));
    return {std::move(list), value.is_tuple()};
  }
  if (!value.is(K::mapping)) return value;
  Members members = value.members();
  for (auto& [name, member] : members) member = with_sorted_keys(member);
  std::sort(members.begin(), members.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  return members;
}
Value rounded(const Value& value, int64_t digits, const std::string& how) {
  if (how == "common" && !value.is(K::real)) return value.integer();
  const double scale = std::pow(10.0, static_cast<double>(digits)), scaled = value.real() * scale;
  if (how == "ceil") return std::ceil(scaled) / scale;
  if (how == "floor") return std::floor(scaled) / scale;
  if (how != "common") throw TemplateError(fmt::format("round knows no '{}'", how));
  return std::nearbyint(scaled) / scale;
}
int64_t positive(int64_t x) {
  if (x == INT64_MIN) throw TemplateError("a whole number is too large");
  return x < 0 ? -x : x;
}
Value whole_of(const Value& value, int64_t otherwise) {
  if (value.is(K::real)) {
    if (!(std::fabs(value.real()) < 9.2e18)) throw TemplateError("a whole number is too large");
    return static_cast<int64_t>(value.real());
  }
  if (value.is_number()) return value.integer();
  if (!value.is(K::string)) return otherwise;
  const std::string text = stripped(value.text(), {}, true, true);
  int64_t whole = 0;
  const char* begin = text.data() + text.starts_with('+');
  const auto read = std::from_chars(begin, text.data() + text.size(), whole);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() ? whole : otherwise;
}
Value number_of(const Value& value) {
  if (value.is_number()) return value.real();
  double real = 0;
  if (!value.is(K::string)) return 0.0;
  const std::string text = stripped(value.text(), {}, true, true);
  const auto read = std::from_chars(text.data(), text.data() + text.size(), real);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() ? real : 0.0;
}
Value extreme(const List& list, bool largest) {
  if (list.empty()) return Value::undefined("the smallest or largest of nothing");
  return largest ? *std::max_element(list.begin(), list.end()) : *std::min_element(list.begin(), list.end());
}

using Filter = Value (*)(const Value&, const Arguments&);
const std::map<std::string, Filter>& filters() {
  static const std::map<std::string, Filter> all = {
      {"abs", [](const Value& v, const Arguments&) -> Value { return v.is(K::real) ? Value(std::fabs(v.real())) : Value(positive(v.integer())); }},
      {"attr", [](const Value& v, const Arguments& a) { return attribute_of(v, a.get(0, "name").text()); }},
      {"capitalize", [](const Value& v, const Arguments&) -> Value { return capitalize(v.str()); }},
      {"default", [](const Value& v, const Arguments& a) -> Value {
         const bool is_missing = v.is(K::undefined) || (a.get(1, "boolean").is_true() && !v.is_true());
         const Value standard = a.get(0, "default_value");
         return !is_missing ? v : standard.is(K::undefined) ? Value("") : standard;
       }},
      {"dictsort", [](const Value& v, const Arguments&) -> Value {
         List list = items_of(v);
         std::stable_sort(list.begin(), list.end(), [](const Value& x, const Value& y) { return lower(x.list()[0].text()) < lower(y.list()[0].text()); });
         return list;
       }},
      {"first", [](const Value& v, const Arguments&) {
         const List list = v.elements();
         return list.empty() ? Value::undefined("the first of nothing") : list.front();
       }},
      {"float", [](const Value& v, const Arguments&) { return number_of(v); }},
      {"indent", [](const Value& v, const Arguments& a) -> Value {
         const Value width = a.get(0, "width");
         return indented(v.str(), width.is(K::string) ? width.text() : std::string(static_cast<size_t>(std::clamp<int64_t>(integer_or(width, 4), 0, 1000)), ' '), a.get(1, "first").is_true(), a.get(2, "blank").is_true());
       }},
      {"int", [](const Value& v, const Arguments& a) { return whole_of(v, integer_or(a.get(0, "default"), 0)); }},
      {"items", [](const Value& v, const Arguments&) -> Value { return items_of(v); }},
      {"join", [](const Value& v, const Arguments& a) -> Value {
         const Value by = a.get(0, "d"), attribute = a.get(1, "attribute");
         List list = v.elements();
         if (attribute.is(K::string))
           for (Value& item : list) item = attribute_of(item, attribute.text());
         return joined(list, by.is(K::undefined) ? "" : by.str());
       }},
      {"last", [](const Value& v, const Arguments&) {
         const List list = v.elements();
         return list.empty() ? Value::undefined("the last of nothing") : list.back();
       }},
      {"length", [](const Value& v, const Arguments&) -> Value { return size_of(v); }},
      {"list", [](const Value& v, const Arguments&) -> Value { return v.elements(); }},
      {"lower", [](const Value& v, const Arguments&) -> Value { return lower(v.str()); }},
      {"map", [](const Value& v, const Arguments& a) -> Value { return mapped(v, a); }},
      {"max", [](const Value& v, const Arguments&) { return extreme(v.elements(), true); }},
      {"min", [](const Value& v, const Arguments&) { return extreme(v.elements(), false); }},
      {"reject", [](const Value& v, const Arguments& a) -> Value { return chosen(v, a, false, false); }},
      {"rejectattr", [](const Value& v, const Arguments& a) -> Value { return chosen(v, a, true, false); }},
      {"replace", [](const Value& v, const Arguments& a) -> Value { return replaced(v.str(), a.get(0, "old").text(), a.get(1, "new").text(), integer_or(a.get(2, "count"), -1)); }},
      {"reverse", [](const Value& v, const Arguments&) -> Value {
         List list = v.elements();
         std::reverse(list.begin(), list.end());
         return v.is(K::string) ? Value(joined(list, "")) : Value(list);
       }},
      {"round", [](const Value& v, const Arguments& a) {
         const Value how = a.get(1, "method");
         return rounded(v, integer_or(a.get(0, "precision"), 0), how.is(K::undefined) ? "common" : how.text());
       }},
      {"safe", [](const Value& v, const Arguments&) -> Value { return v.str(); }},
      {"select", [](const Value& v, const Arguments& a) -> Value { return chosen(v, a, false, true); }},
      {"selectattr", [](const Value& v, const Arguments& a) -> Value { return chosen(v, a, true, true); }},
      {"sort", [](const Value& v, const Arguments& a) -> Value { return sorted(v.elements(), a); }},
      {"string", [](const Value& v, const Arguments&) -> Value { return v.str(); }},
      {"sum", [](const Value& v, const Arguments&) -> Value {
         double real = 0;
         int64_t whole = 0;
         bool is_real = false;
         for (const Value& item : v.elements()) {
           is_real |= item.is(K::real), real += item.real();
           if (__builtin_add_overflow(whole, item.is(K::real) ? 0 : item.integer(), &whole)) throw TemplateError("a whole number is too large");
         }
         return is_real ? Value(real) : Value(whole);
       }},
      {"title", [](const Value& v, const Arguments&) -> Value {   // words as Jinja cuts them
         return title(v.str(), [](uint32_t c) { return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<'; });
       }},
      {"tojson", [](const Value& v, const Arguments& a) -> Value {   // as transformers has it
         const Value indent = a.get(1, "indent");
         for (const auto& [name, value] : a.named)
           if (name == "separators" && value.is_true()) throw TemplateError("tojson with separators is not known here");
         return (a.get(3, "sort_keys").is_true() ? with_sorted_keys(v) : v)
             .json({indent.is(K::integer) ? static_cast<int>(std::clamp<int64_t>(indent.integer(), 0, 100)) : -1, a.get(0, "ensure_ascii").is_true()});
       }},
      {"trim", [](const Value& v, const Arguments& a) -> Value { return stripped(v.str(), text_or_nothing(a.get(0, "chars")), true, true); }},
      {"unique", [](const Value& v, const Arguments& a) -> Value {
         List list, seen;
         for (const Value& item : v.elements()) {
           const Value key = comparable(item, a, 0);
           if (std::find(seen.begin(), seen.end(), key) != seen.end()) continue;
           seen.push_back(key);
           list.push_back(item);
         }
         return list;
       }},
      {"upper", [](const Value& v, const Arguments&) -> Value { return upper(v.str()); }},
  };
  return all;
}

using Test = bool (*)(const Value&, const Arguments&);
const std::map<std::string, Test>& tests() {
  static const std::map<std::string, Test> all = {
      {"boolean", [](const Value& v, const Arguments&) { return v.is(K::boolean); }},
      {"callable", [](const Value& v, const Arguments&) { return v.is(K::function); }},
      {"defined", [](const Value& v, const Arguments&) { return !v.is(K::undefined); }},
      {"divisibleby", [](const Value& v, const Arguments& a) {
         const int64_t by = a.get(0, "num").integer();
         if (by == 0) throw TemplateError("division by 0");
         return by == -1 || v.integer() % by == 0;
       }},
      {"eq", [](const Value& v, const Arguments& a) { return v == a.get(0, "b"); }},
      {"even", [](const Value& v, const Arguments&) { return std::fmod(v.real(), 2) == 0; }},
      {"false", [](const Value& v, const Arguments&) { return v.is(K::boolean) && !v.is_true(); }},
      {"float", [](const Value& v, const Arguments&) { return v.is(K::real); }},
      {"ge", [](const Value& v, const Arguments& a) { return !(v < a.get(0, "b")); }},
      {"gt", [](const Value& v, const Arguments& a) { return a.get(0, "b") < v; }},
      {"in", [](const Value& v, const Arguments& a) { return a.get(0, "seq").contains(v); }},
      {"integer", [](const Value& v, const Arguments&) { return v.is(K::integer); }},
      {"iterable", [](const Value& v, const Arguments&) { return v.is(K::string) || v.is(K::list) || v.is(K::mapping) || v.is(K::undefined); }},
      {"le", [](const Value& v, const Arguments& a) { return !(a.get(0, "b") < v); }},
      {"lower", [](const Value& v, const Arguments&) { return lower(v.str()) == v.str() && upper(v.str()) != v.str(); }},
      {"lt", [](const Value& v, const Arguments& a) { return v < a.get(0, "b"); }},
      {"mapping", [](const Value& v, const Arguments&) { return v.is(K::mapping) && !v.is_space(); }},
      {"ne", [](const Value& v, const Arguments& a) { return !(v == a.get(0, "b")); }},
      {"none", [](const Value& v, const Arguments&) { return v.is(K::none); }},
      {"number", [](const Value& v, const Arguments&) { return v.is_number(); }},
      {"odd", [](const Value& v, const Arguments&) { return std::fabs(std::fmod(v.real(), 2)) == 1; }},
      {"sequence", [](const Value& v, const Arguments&) { return v.is(K::string) || v.is(K::list) || v.is(K::mapping) || v.is(K::undefined); }},
      {"string", [](const Value& v, const Arguments&) { return v.is(K::string); }},
      {"true", [](const Value& v, const Arguments&) { return v.is(K::boolean) && v.is_true(); }},
      {"undefined", [](const Value& v, const Arguments&) { return v.is(K::undefined); }},
      {"upper", [](const Value& v, const Arguments&) { return upper(v.str()) == v.str() && lower(v.str()) != v.str(); }},
  };
  return all;
}

// Other names of the same.
std::string known_name(const std::string& name) {
  static const std::map<std::string, std::string> same = {{"count", "length"}, {"d", "default"}, {"==", "eq"}, {"equalto", "eq"}, {"!=", "ne"}, {">", "gt"}, {"greaterthan", "gt"},
                                                          {"<", "lt"}, {"lessthan", "lt"}, {">=", "ge"}, {"<=", "le"}};
  const auto found = same.find(name);
  return found == same.end() ? name : found->second;
}

using Method = Value (*)(const Value&, const Arguments&);
const std::map<std::string, Method>& methods_of_texts() {
  static const std::map<std::string, Method> all = {
      {"capitalize", [](const Value& v, const Arguments&) -> Value { return capitalize(v.text()); }},
      {"count", [](const Value& v, const Arguments& a) -> Value { return static_cast<int64_t>(split(v.text(), a.get(0, "").text(), -1).size()) - 1; }},
      {"endswith", [](const Value& v, const Arguments& a) -> Value { return any_affix(v.text(), a.get(0, ""), false); }},
      {"find", [](const Value& v, const Arguments& a) -> Value {
         const size_t at = v.text().find(a.get(0, "").text());
         return at == std::string::npos ? int64_t{-1} : static_cast<int64_t>(characters(std::string_view(v.text()).substr(0, at)).size()) - 1;
       }},
      {"join", [](const Value& v, const Arguments& a) -> Value { return joined(a.get(0, "").elements(), v.text()); }},
      {"lower", [](const Value& v, const Arguments&) -> Value { return lower(v.text()); }},
      {"lstrip", [](const Value& v, const Arguments& a) -> Value { return stripped(v.text(), text_or_nothing(a.get(0, "chars")), true, false); }},
      {"removeprefix", [](const Value& v, const Arguments& a) -> Value {
         const std::string affix = a.get(0, "").text();
         return v.text().starts_with(affix) ? v.text().substr(affix.size()) : v.text();
       }},
      {"removesuffix", [](const Value& v, const Arguments& a) -> Value {
         const std::string affix = a.get(0, "").text();
         return v.text().ends_with(affix) ? v.text().substr(0, v.text().size() - affix.size()) : v.text();
       }},
      {"replace", [](const Value& v, const Arguments& a) -> Value { return replaced(v.text(), a.get(0, "").text(), a.get(1, "").text(), integer_or(a.get(2, "count"), -1)); }},
      {"rsplit", [](const Value& v, const Arguments& a) -> Value { return split_from_end(v.text(), text_or_nothing(a.get(0, "sep")), integer_or(a.get(1, "maxsplit"), -1)); }},
      {"rstrip", [](const Value& v, const Arguments& a) -> Value { return stripped(v.text(), text_or_nothing(a.get(0, "chars")), false, true); }},
      {"split", [](const Value& v, const Arguments& a) -> Value { return split(v.text(), text_or_nothing(a.get(0, "sep")), integer_or(a.get(1, "maxsplit"), -1)); }},
      {"splitlines", [](const Value& v, const Arguments&) -> Value { return lines_of(v.text()); }},
      {"startswith", [](const Value& v, const Arguments& a) -> Value { return any_affix(v.text(), a.get(0, ""), true); }},
      {"strip", [](const Value& v, const Arguments& a) -> Value { return stripped(v.text(), text_or_nothing(a.get(0, "chars")), true, true); }},
      {"title", [](const Value& v, const Arguments&) -> Value { return title(v.text(), [](uint32_t c) { return !is_letter(c); }); }},
      {"upper", [](const Value& v, const Arguments&) -> Value { return upper(v.text()); }},
  };
  return all;
}
const std::map<std::string, Method>& methods_of_mappings() {
  static const std::map<std::string, Method> all = {
      {"get", [](const Value& v, const Arguments& a) {
         const Value key = a.get(0, ""), standard = a.get(1, "");
         const Value* found = key.is(K::string) ? v.member(key.text()) : nullptr;
         return found ? *found : standard.is(K::undefined) ? Value::none() : standard;
       }},
      {"items", [](const Value& v, const Arguments&) -> Value { return items_of(v); }},
      {"keys", [](const Value& v, const Arguments&) -> Value { return v.elements(); }},
      {"values", [](const Value& v, const Arguments&) -> Value { return values_of(v); }},
  };
  return all;
}
const std::map<std::string, Method>& methods_of_lists() {
  static const std::map<std::string, Method> all = {
      {"count", [](const Value& v, const Arguments& a) -> Value { return static_cast<int64_t>(std::count(v.list().begin(), v.list().end(), a.get(0, ""))); }},
      {"index", [](const Value& v, const Arguments& a) -> Value {
         const auto found = std::find(v.list().begin(), v.list().end(), a.get(0, ""));
         if (found == v.list().end()) throw TemplateError("a list has no such value");
         return static_cast<int64_t>(found - v.list().begin());
       }},
  };
  return all;
}

Value range(const Arguments& a) {
  constexpr auto longest = static_cast<int64_t>(longest_list);
  const bool has_one = a.values.size() < 2;
  const int64_t begin = has_one ? 0 : a.get(0, "").integer(), end = a.get(has_one ? 0 : 1, "").integer(), step = integer_or(a.get(2, ""), 1);
  if (step == 0) throw TemplateError("range has a step of 0");
  List list;
  for (int64_t i = begin; step < 0 ? i > end : i < end;) {
    list.push_back(i);
    if (static_cast<int64_t>(list.size()) > longest) throw TemplateError("range is too long");
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return list;
}

Members members_from(const Arguments& a) {
  Members members;
  if (!a.values.empty()) members = a.values[0].members();
  for (const auto& [name, value] : a.named) {
    const std::string& key = name;
    std::erase_if(members, [&](const auto& m) { return m.first == key; });
    members.emplace_back(name, value);
  }
  return members;
}

}  // namespace

Value apply_filter(const std::string& name, const Value& value, const Arguments& arguments) {
  const auto found = filters().find(known_name(name));
  if (found == filters().end()) throw TemplateError(fmt::format("filter '{}' is not known here", name));
  return found->second(value, arguments);
}

bool apply_test(const std::string& name, const Value& value, const Arguments& arguments) {
  const auto found = tests().find(known_name(name));
  if (found == tests().end()) throw TemplateError(fmt::format("test '{}' is not known here", name));
  return found->second(value, arguments);
}

std::optional<Value> method_of(const Value& value, const std::string& name) {
  if (!value.is(K::string) && !value.is(K::list) && (!value.is(K::mapping) || value.is_space())) return std::nullopt;
  const auto& all = value.is(K::string) ? methods_of_texts() : value.is(K::list) ? methods_of_lists() : methods_of_mappings();
  const auto found = all.find(name);
  if (found == all.end()) return std::nullopt;
  return Value(Function([value, method = found->second](const Arguments& a) { return method(value, a); }));
}

Members known_functions() {
  return {{"range", Function(range)},
          {"namespace", Function([](const Arguments& a) { return Value::space(members_from(a)); })},
          {"dict", Function([](const Arguments& a) -> Value { return members_from(a); })},
          {"raise_exception", Function([](const Arguments& a) -> Value { throw TemplateError(a.get(0, "message").str()); })}};
}

}  // namespace command::chat
