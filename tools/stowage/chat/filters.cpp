// Filters. Each is a function of a value and its arguments. The table at the end maps names to functions.
#include "chat/filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "chat/functions.h"
#include "chat/letters.h"
#include "chat/numbers.h"
#include "chat/texts.h"
#include "tokenizer/unicode.h"

namespace command::chat {
namespace {

using K = Value::Kind;

// ---- texts
template <std::string (*of)(const std::string&)>
Value of_text(const Value& v, const Arguments&) {
  return of(v.str());
}
Value as_text(const Value& v, const Arguments&) { return v.str(); }
// Splits words as Jinja does: at runs of white space, hyphens and opening brackets. Capitalizes the first
// character of each.
Value titled(const Value& v, const Arguments&) {
  const std::string text = v.str();
  const auto is_between = [](uint32_t c) {
    return is_white(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
  };
  std::string result;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t first_bytes = first_character(rest).bytes;
    const bool is_gap = is_between(first_character(rest).code);
    size_t end = first_bytes;
    for (Character c;
         end < rest.size() && is_between((c = first_character(rest.substr(end))).code) == is_gap;)
      end += c.bytes;
    result += upper(std::string(rest.substr(0, first_bytes))) +
              lower(std::string(rest.substr(first_bytes, end - first_bytes)));
    rest.remove_prefix(end);
  }
  return result;
}
Value trimmed(const Value& v, const Arguments& a) {
  return stripped(v.str(), text_or_nothing(a.get(0, "chars")), true, true);
}
Value with_replaced(const Value& v, const Arguments& a) {
  return replaced(v.str(), a.get(0, "old").text(), a.get(1, "new").text(), integer_or(a.get(2, "count"), -1));
}
Value with_indent(const Value& v, const Arguments& a) {
  const Value width = a.get(0, "width");
  const std::string by =
      width.is(K::string)
          ? width.text()
          : std::string(static_cast<size_t>(std::clamp<int64_t>(integer_or(width, 4), 0, 1000)), ' ');
  return indented(v.str(), by, a.get(1, "first").is_true(), a.get(2, "blank").is_true());
}

// ---- numbers
Value absolute(const Value& v, const Arguments&) {
  if (v.is(K::real)) return std::fabs(v.real());
  const int64_t whole = v.integer();
  if (whole == INT64_MIN) throw TemplateError("a whole number is too large");
  return whole < 0 ? -whole : whole;
}
// Jinja reads a text that is not an integer as a float ("1.9" gives 1).
Value whole_number(const Value& v, const Arguments& a) {
  Value otherwise = a.get(0, "default");
  if (otherwise.is(K::undefined)) otherwise = int64_t{0};
  if (v.is(K::undefined)) return v.integer();  // throws
  const auto value_or = [&](std::optional<int64_t> whole) { return whole ? Value(*whole) : otherwise; };
  if (v.is(K::real)) return value_or(whole_part(v.real()));
  if (v.is_number()) return v.integer();
  if (!v.is(K::string)) return otherwise;
  if (const auto whole = read_integer(v.text(), integer_or(a.get(1, "base"), 10))) return *whole;
  const auto real = read_real(v.text());
  return value_or(real && std::isfinite(*real) ? whole_part(*real) : std::nullopt);
}
Value real_number(const Value& v, const Arguments& a) {
  if (v.is_number() || v.is(K::undefined)) return v.real();  // throws for an undefined value
  if (v.is(K::string))
    if (const auto real = read_real(v.text())) return *real;
  const Value otherwise = a.get(0, "default");
  return otherwise.is(K::undefined) ? Value(0.0) : otherwise;
}
Value to_digits(const Value& v, const Arguments& a) {
  const Value method = a.get(1, "method");
  const int64_t digits = integer_or(a.get(0, "precision"), 0);
  const std::string how = method.is(K::undefined) ? "common" : method.text();
  if (how == "common")
    return v.is(K::real) ? Value(rounded(v.real(), digits)) : Value(rounded(v.integer(), digits));
  if (how != "ceil" && how != "floor") throw TemplateError(fmt::format("round knows no '{}'", how));
  constexpr int64_t most = 22;  // 10^22 is the largest power of ten that a double holds exactly
  if (digits > most || digits < -most)
    throw TemplateError(fmt::format("round by {} with more than {} digits is not supported", how, most));
  const double scale = std::pow(10.0, static_cast<double>(digits)), scaled = v.real() * scale;
  if (!std::isfinite(scaled))
    throw TemplateError(fmt::format("round by {} needs a number that is finite", how));
  return (how == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale + 0.0;  // + 0.0 turns -0 into 0
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
    const int64_t place = at.is(K::list) ? read_integer(part.text(), 10).value_or(-1) : -1;
    const Value* found = at.is(K::mapping) ? at.member(part.text()) : nullptr;
    if (place >= 0 && place < static_cast<int64_t>(at.element_count()))
      found = &at.list()[static_cast<size_t>(place)];
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
// Writes JSON as transformers' tojson does.
Value as_json(const Value& v, const Arguments& a) {
  const Value indent = a.get(1, "indent"), separators = a.get(2, "separators");
  Value::JsonForm form{{}, a.get(0, "ensure_ascii").is_true()};
  if (indent.is(K::string)) form.indent = indent.text();
  else if (!indent.is(K::undefined) && !indent.is(K::none))
    form.indent = std::string(static_cast<size_t>(std::clamp<int64_t>(indent.integer(), 0, 100)), ' ');
  if (form.indent) form.between = ",";
  if (!separators.is(K::undefined) && !separators.is(K::none)) {
    if (separators.list().size() != 2) throw TemplateError("expected two separators");
    form.between = separators.list()[0].text();
    form.after_name = separators.list()[1].text();
  }
  return (a.get(3, "sort_keys").is_true() ? with_sorted_keys(v) : v).json(form);
}

// ---- lists
Value first(const Value& v, const Arguments&) {
  const List list = v.is(K::string) ? List() : v.elements();
  if (v.is(K::string) && v.is_true()) return v.text().substr(0, first_character(v.text()).bytes);
  return list.empty() ? Value::undefined("the first element of an empty value") : list.front();
}
Value last(const Value& v, const Arguments&) {
  if (v.is(K::list)) v.list();  // throws for series whose elements come one at a time
  const List list = v.is(K::string) ? List() : v.elements();
  if (v.is(K::string) && v.is_true())
    return v.text().substr(v.text().size() - last_character(v.text()).bytes);
  return list.empty() ? Value::undefined("the last element of an empty value") : list.back();
}
Value elements(const Value& v, const Arguments&) { return v.elements(); }
Value one_by_one(List list) { return Value::series(std::move(list), Value::Series::once); }
Value items(const Value& v, const Arguments&) { return one_by_one(items_of(v)); }
Value items_in_order(const Value& v, const Arguments& a) {
  const Value by = a.get(1, "by");
  if (!by.is(K::undefined) && by.text() != "key" && by.text() != "value")
    throw TemplateError("dictsort knows 'key' and 'value'");
  const bool by_value = !by.is(K::undefined) && by.text() == "value",
             keeps_case = a.get(0, "case_sensitive").is_true(), is_reversed = a.get(2, "reverse").is_true();
  List list = items_of(v);
  const auto key = [&](const Value& item) {
    const Value& of = item.list()[by_value ? 1 : 0];
    return of.is(K::string) && !keeps_case ? Value(lower(of.text())) : of;
  };
  std::stable_sort(list.begin(), list.end(), [&](const Value& x, const Value& y) {
    return is_reversed ? key(y) < key(x) : key(x) < key(y);
  });
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
  const bool is_one_by_one = v.is(K::list) && v.is_series();
  List list = v.elements();
  std::reverse(list.begin(), list.end());
  if (v.is(K::string)) return joined(list, "");
  return is_one_by_one ? Value(std::move(list)) : one_by_one(std::move(list));
}
Value sum(const Value& v, const Arguments& a) {
  const Value by = a.get(0, "attribute"), start = a.get(1, "start");
  List items = v.elements();
  for (Value& item : items)
    if (by.is(K::string)) item = attribute_of(item, by.text());
  if (!start.is(K::undefined)) items.insert(items.begin(), start);
  double real = 0;
  int64_t whole = 0;
  bool is_real = false;
  for (const Value& item : items) {
    is_real |= item.is(K::real), real += item.real();
    if (__builtin_add_overflow(whole, item.is(K::real) ? 0 : item.integer(), &whole))
      throw TemplateError("a whole number is too large");
  }
  return is_real ? Value(real) : Value(whole);
}
Arguments arguments_from(const Arguments& arguments, size_t first) {
  Arguments rest;
  for (size_t i = first; i < arguments.values.size(); ++i) rest.values.push_back(arguments.values[i]);
  rest.named = arguments.named;
  return rest;
}
// Ignores case in texts unless case_sensitive is set. This is Jinja's default.
// `at`: index of the parameter case_sensitive, which comes before attribute
Value comparable(const Value& value, const Arguments& a, size_t at) {
  const Value by = a.get(at + 1, "attribute");
  const Value of = by.is(K::string) ? attribute_of(value, by.text()) : value;
  return of.is(K::string) && !a.get(at, "case_sensitive").is_true() ? Value(lower(of.text())) : of;
}
Value sorted_values(const Value& v, const Arguments& a) {
  std::vector<std::pair<Value, Value>> items;  // sort key and element
  for (const Value& item : v.elements()) items.emplace_back(comparable(item, a, 1), item);
  const bool is_reversed = a.get(0, "reverse").is_true();
  std::stable_sort(items.begin(), items.end(), [&](const auto& x, const auto& y) {
    return is_reversed ? y.first < x.first : x.first < y.first;
  });
  List list;
  for (auto& [key, item] : items) list.push_back(std::move(item));
  return list;
}
// A key that is equal for equal values only, so that duplicates are found without comparing all pairs.
std::string key_of(const Value& value) {
  switch (value.kind()) {
    case K::boolean:
    case K::integer: return fmt::format("{}", value.integer());
    case K::real: {
      const double real = value.real();
      return std::fabs(real) < 9e18 && real == std::floor(real)
                 ? fmt::format("{}", static_cast<int64_t>(real))
                 : value.repr();
    }
    case K::list: {
      if (!value.is_tuple()) throw TemplateError("unique cannot compare lists; Python has no hash of them");
      std::string key = "(";
      for (const Value& item : value.list()) check_length((key += key_of(item)) += ',');
      return key;
    }
    case K::mapping: throw TemplateError("unique cannot compare mappings; Python has no hash of them");
    default: return value.repr();
  }
}
Value unique(const Value& v, const Arguments& a) {
  List list;
  std::set<std::string> seen;
  for (const Value& item : v.elements())
    if (seen.insert(key_of(comparable(item, a, 0))).second) list.push_back(item);
  return one_by_one(std::move(list));
}
// The elements that a list filter iterates over. A value that counts as false has none, as in Jinja.
List elements_or_none(const Value& value) { return value.is_true() ? value.elements() : List(); }
// Implements select, reject, selectattr and rejectattr.
template <bool by_attribute, bool wanted>
Value chosen(const Value& v, const Arguments& a) {
  List list;
  const size_t test = by_attribute ? 1 : 0;
  for (const Value& item : elements_or_none(v)) {
    const Value of = by_attribute ? attribute_of(item, a.get(0, "").text()) : item;
    const bool holds = a.values.size() > test
                           ? apply_test(a.values[test].text(), of, arguments_from(a, test + 1))
                           : of.is_true();
    if (holds == wanted) list.push_back(item);
  }
  return one_by_one(std::move(list));
}
Value mapped(const Value& v, const Arguments& a) {
  List list;
  if (a.values.empty()) check_arguments("map", a, "attribute default");
  const Value attribute = a.get(100, "attribute"), standard = a.get(100, "default");
  for (const Value& item : elements_or_none(v)) {
    if (a.values.empty()) {
      const Value found = attribute_of(item, attribute.text());
      list.push_back(found.is(K::undefined) && !standard.is(K::undefined) ? standard : found);
    } else {
      list.push_back(apply_filter(a.values[0].text(), item, arguments_from(a, 1)));
    }
  }
  return one_by_one(std::move(list));
}
template <bool largest>
Value extreme(const Value& v, const Arguments& a) {
  const List list = v.elements();
  if (list.empty()) return Value::undefined("the smallest or largest element of an empty value");
  size_t best = 0;
  List keys;
  for (const Value& item : list) keys.push_back(comparable(item, a, 0));
  for (size_t i = 1; i < keys.size(); ++i)
    if (largest ? keys[best] < keys[i] : keys[i] < keys[best]) best = i;
  return list[best];
}

// `parameters`: the names as check_arguments takes them; null: the filter passes its arguments on to another
// filter or a test.
struct Filter {
  Value (*of)(const Value&, const Arguments&);
  const char* parameters = "";
};
const std::map<std::string, Filter>& filters() {
  static const std::map<std::string, Filter> all = {
      {"abs", {absolute}},
      {"attr", {attribute, "name"}},
      {"capitalize", {of_text<capitalize>}},
      {"count", {length}},
      {"d", {or_default, "default_value boolean"}},
      {"default", {or_default, "default_value boolean"}},
      {"dictsort", {items_in_order, "case_sensitive by reverse"}},
      {"first", {first}},
      {"float", {real_number, "default"}},
      {"indent", {with_indent, "width first blank"}},
      {"int", {whole_number, "default base"}},
      {"items", {items}},
      {"join", {in_one, "d attribute"}},
      {"last", {last}},
      {"length", {length}},
      {"list", {elements}},
      {"lower", {of_text<lower>}},
      {"map", {mapped, nullptr}},
      {"max", {extreme<true>, "case_sensitive attribute"}},
      {"min", {extreme<false>, "case_sensitive attribute"}},
      {"reject", {chosen<false, false>, nullptr}},
      {"rejectattr", {chosen<true, false>, nullptr}},
      {"replace", {with_replaced, "old new count"}},
      {"reverse", {reversed}},
      {"round", {to_digits, "precision method"}},
      {"safe", {as_text}},
      {"select", {chosen<false, true>, nullptr}},
      {"selectattr", {chosen<true, true>, nullptr}},
      {"sort", {sorted_values, "reverse case_sensitive attribute"}},
      {"string", {as_text}},
      {"sum", {sum, "attribute start"}},
      {"title", {titled}},
      {"tojson", {as_json, "ensure_ascii indent separators sort_keys"}},
      {"trim", {trimmed, "chars"}},
      {"unique", {unique, "case_sensitive attribute"}},
      {"upper", {of_text<upper>}},
  };
  return all;
}

}  // namespace

Value apply_filter(const std::string& name, const Value& value, const Arguments& arguments) {
  const auto found = filters().find(name);
  if (found == filters().end()) throw TemplateError(fmt::format("filter '{}' is not supported", name));
  if (found->second.parameters) check_arguments("filter '" + name + "'", arguments, found->second.parameters);
  return found->second.of(value, arguments);
}

}  // namespace command::chat
