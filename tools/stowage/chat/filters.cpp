// The filters, each a function of a value and its arguments; the table at the end only names them.
#include "filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "../tokenizer/unicode.h"
#include "functions.h"
#include "texts.h"

namespace command::chat {
namespace {

using K = Value::Kind;

// ---- texts
template <std::string (*of)(const std::string&)>
Value of_text(const Value& v, const Arguments&) { return of(v.str()); }
Value as_text(const Value& v, const Arguments&) { return v.str(); }
// Words as Jinja cuts them.
Value titled(const Value& v, const Arguments&) {
  return title(v.str(), [](uint32_t c) { return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<'; });
}
Value trimmed(const Value& v, const Arguments& a) { return stripped(v.str(), text_or_nothing(a.get(0, "chars")), true, true); }
Value with_replaced(const Value& v, const Arguments& a) { return replaced(v.str(), a.get(0, "old").text(), a.get(1, "new").text(), integer_or(a.get(2, "count"), -1)); }
Value with_indent(const Value& v, const Arguments& a) {
  const Value width = a.get(0, "width");
  const std::string by = width.is(K::string) ? width.text() : std::string(static_cast<size_t>(std::clamp<int64_t>(integer_or(width, 4), 0, 1000)), ' ');
  return indented(v.str(), by, a.get(1, "first").is_true(), a.get(2, "blank").is_true());
}

// ---- numbers
Value absolute(const Value& v, const Arguments&) {
  if (v.is(K::real)) return std::fabs(v.real());
  const int64_t whole = v.integer();
  if (whole == INT64_MIN) throw TemplateError("a whole number is too large");
  return whole < 0 ? -whole : whole;
}
Value whole_number(const Value& v, const Arguments& a) {
  const int64_t otherwise = integer_or(a.get(0, "default"), 0);
  if (v.is(K::real)) {
    if (!(std::fabs(v.real()) < 9.2e18)) throw TemplateError("a whole number is too large");
    return static_cast<int64_t>(v.real());
  }
  if (v.is_number()) return v.integer();
  if (!v.is(K::string)) return otherwise;
  const std::string text = stripped(v.text(), {}, true, true);
  int64_t whole = 0;
  const char* begin = text.data() + text.starts_with('+');
  const auto read = std::from_chars(begin, text.data() + text.size(), whole);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() ? whole : otherwise;
}
Value real_number(const Value& v, const Arguments&) {
  if (v.is_number()) return v.real();
  double real = 0;
  if (!v.is(K::string)) return 0.0;
  const std::string text = stripped(v.text(), {}, true, true);
  const auto read = std::from_chars(text.data(), text.data() + text.size(), real);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() ? real : 0.0;
}
Value rounded(const Value& v, const Arguments& a) {
  const Value method = a.get(1, "method");
  const int64_t digits = integer_or(a.get(0, "precision"), 0);
  const std::string how = method.is(K::undefined) ? "common" : method.text();
  if (how == "common" && !v.is(K::real)) return v.integer();
  const double scale = std::pow(10.0, static_cast<double>(digits)), scaled = v.real() * scale;
  if (how == "ceil") return std::ceil(scaled) / scale;
  if (how == "floor") return std::floor(scaled) / scale;
  if (how != "common") throw TemplateError(fmt::format("round knows no '{}'", how));
  return std::nearbyint(scaled) / scale;
}

// ---- any value
Value length(const Value& v, const Arguments&) {
  switch (v.kind()) {
    case K::undefined: return int64_t{0};
    case K::string: return static_cast<int64_t>(characters(v.text()).size()) - 1;
    case K::mapping: return static_cast<int64_t>(v.members().size());
    default: return static_cast<int64_t>(v.list().size());
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
Value attribute(const Value& v, const Arguments& a) { return attribute_of(v, a.get(0, "name").text()); }
Value or_default(const Value& v, const Arguments& a) {
  const bool is_missing = v.is(K::undefined) || (a.get(1, "boolean").is_true() && !v.is_true());
  const Value standard = a.get(0, "default_value");
  return !is_missing ? v : standard.is(K::undefined) ? Value("") : standard;
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
// As transformers has it.
Value as_json(const Value& v, const Arguments& a) {
  const Value indent = a.get(1, "indent");
  for (const auto& [name, value] : a.named)
    if (name == "separators" && value.is_true()) throw TemplateError("tojson with separators is not known here");
  return (a.get(3, "sort_keys").is_true() ? with_sorted_keys(v) : v)
      .json({indent.is(K::integer) ? static_cast<int>(std::clamp<int64_t>(indent.integer(), 0, 100)) : -1, a.get(0, "ensure_ascii").is_true()});
}

// ---- lists
Value first(const Value& v, const Arguments&) {
  const List list = v.is(K::string) ? List() : v.elements();
  if (v.is(K::string) && v.is_true()) return v.text().substr(0, first_character(v.text()).bytes);
  return list.empty() ? Value::undefined("the first of nothing") : list.front();
}
Value last(const Value& v, const Arguments&) {
  const List list = v.is(K::string) ? List() : v.elements();
  if (v.is(K::string) && v.is_true()) return v.text().substr(v.text().size() - last_character(v.text()).bytes);
  return list.empty() ? Value::undefined("the last of nothing") : list.back();
}
Value elements(const Value& v, const Arguments&) { return v.elements(); }
Value items(const Value& v, const Arguments&) { return items_of(v); }
Value items_by_name(const Value& v, const Arguments&) {
  List list = items_of(v);
  std::stable_sort(list.begin(), list.end(), [](const Value& x, const Value& y) { return lower(x.list()[0].text()) < lower(y.list()[0].text()); });
  return list;
}
Value in_one(const Value& v, const Arguments& a) {
  const Value by = a.get(0, "d"), attribute = a.get(1, "attribute");
  List list = v.elements();
  if (attribute.is(K::string))
    for (Value& item : list) item = attribute_of(item, attribute.text());
  return joined(list, by.is(K::undefined) ? "" : by.str());
}
Value reversed(const Value& v, const Arguments&) {
  List list = v.elements();
  std::reverse(list.begin(), list.end());
  return v.is(K::string) ? Value(joined(list, "")) : Value(list);
}
Value sum(const Value& v, const Arguments&) {
  double real = 0;
  int64_t whole = 0;
  bool is_real = false;
  for (const Value& item : v.elements()) {
    is_real |= item.is(K::real), real += item.real();
    if (__builtin_add_overflow(whole, item.is(K::real) ? 0 : item.integer(), &whole)) throw TemplateError("a whole number is too large");
  }
  return is_real ? Value(real) : Value(whole);
}
Arguments behind(const Arguments& arguments, size_t first) {
  Arguments rest;
  for (size_t i = first; i < arguments.values.size(); ++i) rest.values.push_back(arguments.values[i]);
  rest.named = arguments.named;
  return rest;
}
// Without regard to case, where texts are asked for so: Jinja's default.
Value comparable(const Value& value, const Arguments& a, size_t at) {
  const Value by = a.get(100, "attribute");
  const Value of = by.is(K::string) ? attribute_of(value, by.text()) : value;
  return of.is(K::string) && !a.get(at, "case_sensitive").is_true() ? Value(lower(of.text())) : of;
}
Value in_order(const Value& v, const Arguments& a) {
  std::vector<std::pair<Value, Value>> items;   // by what they are compared by
  for (const Value& item : v.elements()) items.emplace_back(comparable(item, a, 1), item);
  const bool is_reversed = a.get(0, "reverse").is_true();
  std::stable_sort(items.begin(), items.end(), [&](const auto& x, const auto& y) { return is_reversed ? y.first < x.first : x.first < y.first; });
  List list;
  for (auto& [key, item] : items) list.push_back(std::move(item));
  return list;
}
// Equal values have one, and others another: not to compare each with all before it.
std::string key_of(const Value& value) {
  switch (value.kind()) {
    case K::boolean: case K::integer: return fmt::format("{}", value.integer());
    case K::real: {
      const double real = value.real();
      return std::fabs(real) < 9e18 && real == std::floor(real) ? fmt::format("{}", static_cast<int64_t>(real)) : value.repr();
    }
    case K::list: {
      std::string key = value.is_tuple() ? "(" : "[";
      for (const Value& item : value.list()) check_length((key += key_of(item)) += ',');
      return key;
    }
    case K::mapping: {
      std::map<std::string, std::string> members;
      for (const auto& [name, member] : value.members()) members[Value(name).repr()] = key_of(member);
      std::string key = "{";
      for (const auto& [name, member] : members) check_length(((key += name) += member) += ',');
      return key;
    }
    default: return value.repr();
  }
}
Value unique(const Value& v, const Arguments& a) {
  List list;
  std::set<std::string> seen;
  for (const Value& item : v.elements())
    if (seen.insert(key_of(comparable(item, a, 0))).second) list.push_back(item);
  return list;
}
// What filters of lists go over: of anything that counts as false, nothing, as in Jinja.
List elements_or_none(const Value& value) { return value.is_true() ? value.elements() : List(); }
// select, reject, and the same by an attribute.
template <bool by_attribute, bool wanted>
Value chosen(const Value& v, const Arguments& a) {
  List list;
  const size_t test = by_attribute ? 1 : 0;
  for (const Value& item : elements_or_none(v)) {
    const Value of = by_attribute ? attribute_of(item, a.get(0, "").text()) : item;
    const bool holds = a.values.size() > test ? apply_test(a.values[test].text(), of, behind(a, test + 1)) : of.is_true();
    if (holds == wanted) list.push_back(item);
  }
  return list;
}
Value mapped(const Value& v, const Arguments& a) {
  List list;
  const Value attribute = a.get(100, "attribute"), standard = a.get(100, "default");
  for (const Value& item : elements_or_none(v)) {
    if (a.values.empty()) {
      const Value found = attribute_of(item, attribute.text());
      list.push_back(found.is(K::undefined) && !standard.is(K::undefined) ? standard : found);
    } else {
      list.push_back(apply_filter(a.values[0].text(), item, behind(a, 1)));
    }
  }
  return list;
}
template <bool largest>
Value extreme(const Value& v, const Arguments&) {
  const List list = v.elements();
  if (list.empty()) return Value::undefined("the smallest or largest of nothing");
  return largest ? *std::max_element(list.begin(), list.end()) : *std::min_element(list.begin(), list.end());
}

using Filter = Value (*)(const Value&, const Arguments&);
const std::map<std::string, Filter>& filters() {
  static const std::map<std::string, Filter> all = {
      {"abs", absolute}, {"attr", attribute}, {"capitalize", of_text<capitalize>}, {"count", length}, {"d", or_default}, {"default", or_default},
      {"dictsort", items_by_name}, {"first", first}, {"float", real_number}, {"indent", with_indent}, {"int", whole_number}, {"items", items},
      {"join", in_one}, {"last", last}, {"length", length}, {"list", elements}, {"lower", of_text<lower>}, {"map", mapped}, {"max", extreme<true>},
      {"min", extreme<false>}, {"reject", chosen<false, false>}, {"rejectattr", chosen<true, false>}, {"replace", with_replaced},
      {"reverse", reversed}, {"round", rounded}, {"safe", as_text}, {"select", chosen<false, true>}, {"selectattr", chosen<true, true>},
      {"sort", in_order}, {"string", as_text}, {"sum", sum}, {"title", titled}, {"tojson", as_json}, {"trim", trimmed}, {"unique", unique},
      {"upper", of_text<upper>},
  };
  return all;
}

}  // namespace

Value apply_filter(const std::string& name, const Value& value, const Arguments& arguments) {
  const auto found = filters().find(name);
  if (found == filters().end()) throw TemplateError(fmt::format("filter '{}' is not known here", name));
  return found->second(value, arguments);
}

}  // namespace command::chat
