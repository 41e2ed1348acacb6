#include "chat/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "chat/letters.h"
#include "chat/numbers.h"
#include "chat/texts.h"

namespace command::chat {
namespace {

using K = Value::Kind;

using Test = bool (*)(const Value&, const Arguments&);
const std::map<std::string, Test>& tests() {
  static const std::map<std::string, Test> all = {
      {"boolean", [](const Value& v, const Arguments&) { return v.is(K::boolean); }},
      {"callable", [](const Value& v, const Arguments&) { return v.is(K::function); }},
      {"defined", [](const Value& v, const Arguments&) { return !v.is(K::undefined); }},
      {"divisibleby",
       [](const Value& v, const Arguments& a) {
         const Value num = a.get(0, "num");
         if (num.real() == 0) throw TemplateError("division by 0");
         if (v.is(K::real) || num.is(K::real)) return floor_remainder(v.real(), num.real()) == 0;
         const int64_t by = num.integer();
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
      {"iterable",
       [](const Value& v, const Arguments&) {
         return v.is(K::string) || v.is(K::list) || (v.is(K::mapping) && !v.is_space()) || v.is(K::undefined);
       }},
      {"le", [](const Value& v, const Arguments& a) { return !(a.get(0, "b") < v); }},
      {"lower", [](const Value& v, const Arguments&) { return is_all_lower(v.str()); }},
      {"lt", [](const Value& v, const Arguments& a) { return v < a.get(0, "b"); }},
      {"mapping", [](const Value& v, const Arguments&) { return v.is(K::mapping) && !v.is_space(); }},
      {"ne", [](const Value& v, const Arguments& a) { return !(v == a.get(0, "b")); }},
      {"none", [](const Value& v, const Arguments&) { return v.is(K::none); }},
      {"number", [](const Value& v, const Arguments&) { return v.is_number(); }},
      {"odd", [](const Value& v, const Arguments&) { return std::fabs(std::fmod(v.real(), 2)) == 1; }},
      {"sequence",
       [](const Value& v, const Arguments&) {
         return v.is(K::string) || (v.is(K::list) && !v.is_series()) || (v.is(K::mapping) && !v.is_space()) ||
                v.is(K::undefined);
       }},
      {"string", [](const Value& v, const Arguments&) { return v.is(K::string); }},
      {"true", [](const Value& v, const Arguments&) { return v.is(K::boolean) && v.is_true(); }},
      {"undefined", [](const Value& v, const Arguments&) { return v.is(K::undefined); }},
      {"upper", [](const Value& v, const Arguments&) { return is_all_upper(v.str()); }},
  };
  return all;
}

// Resolves aliases.
std::string known_name(const std::string& name) {
  static const std::map<std::string, std::string> same = {
      {"==", "eq"}, {"equalto", "eq"},  {"!=", "ne"}, {">", "gt"}, {"greaterthan", "gt"},
      {"<", "lt"},  {"lessthan", "lt"}, {">=", "ge"}, {"<=", "le"}};
  const auto found = same.find(name);
  return found == same.end() ? name : found->second;
}

// `parameters`: the names, separated by spaces. A parameter whose name begins with _ is positional only.
struct Method {
  Value (*of)(const Value&, const Arguments&);
  const char* parameters = "";
};
using Methods = std::map<std::string, Method>;

// Methods of texts that look at or change the case of letters.
Methods letter_methods() {
  return {
      {"capitalize", {[](const Value& v, const Arguments&) -> Value { return capitalize(v.text()); }}},
      {"casefold", {[](const Value& v, const Arguments&) -> Value { return casefold(v.text()); }}},
      {"islower", {[](const Value& v, const Arguments&) -> Value { return is_all_lower(v.text()); }}},
      {"isupper", {[](const Value& v, const Arguments&) -> Value { return is_all_upper(v.text()); }}},
      {"lower", {[](const Value& v, const Arguments&) -> Value { return lower(v.text()); }}},
      {"swapcase", {[](const Value& v, const Arguments&) -> Value { return swapcase(v.text()); }}},
      {"title", {[](const Value& v, const Arguments&) -> Value { return title(v.text()); }}},
      {"upper", {[](const Value& v, const Arguments&) -> Value { return upper(v.text()); }}},
  };
}

// Methods of texts that search for a part or replace it.
Methods search_methods() {
  return {
      {"count",
       {[](const Value& v, const Arguments& a) -> Value { return count_of(a.get(0, "").text(), v.text()); },
        "_sub"}},
      {"endswith",
       {[](const Value& v, const Arguments& a) -> Value { return any_affix(v.text(), a.get(0, ""), false); },
        "_suffix"}},
      {"find",
       {[](const Value& v, const Arguments& a) -> Value {
          const size_t at = v.text().find(a.get(0, "").text());
          return at == std::string::npos
                     ? int64_t{-1}
                     : static_cast<int64_t>(characters(std::string_view(v.text()).substr(0, at)).size()) - 1;
        },
        "_sub"}},
      {"replace",
       {[](const Value& v, const Arguments& a) -> Value {
          return replaced(v.text(), a.get(0, "").text(), a.get(1, "").text(),
                          integer_or(a.get(2, "count"), -1));
        },
        "_old _new count"}},
      {"startswith",
       {[](const Value& v, const Arguments& a) -> Value { return any_affix(v.text(), a.get(0, ""), true); },
        "_prefix"}},
  };
}

// Methods of texts that cut a text into parts, take off its ends, or join texts.
Methods cut_methods() {
  return {
      {"join",
       {[](const Value& v, const Arguments& a) -> Value {
          const List parts = a.get(0, "").elements();
          for (const Value& part : parts) part.text();  // throws for other kinds; Python joins only strings
          return joined(parts, v.text());
        },
        "_iterable"}},
      {"lstrip",
       {[](const Value& v, const Arguments& a) -> Value {
          return stripped(v.text(), text_or_nothing(a.get(0, "")), true, false);
        },
        "_chars"}},
      {"removeprefix",
       {[](const Value& v, const Arguments& a) -> Value {
          const std::string affix = a.get(0, "").text();
          return v.text().starts_with(affix) ? v.text().substr(affix.size()) : v.text();
        },
        "_prefix"}},
      {"removesuffix",
       {[](const Value& v, const Arguments& a) -> Value {
          const std::string affix = a.get(0, "").text();
          return v.text().ends_with(affix) ? v.text().substr(0, v.text().size() - affix.size()) : v.text();
        },
        "_suffix"}},
      {"rsplit",
       {[](const Value& v, const Arguments& a) -> Value {
          return split_from_end(v.text(), text_or_nothing(a.get(0, "sep")),
                                integer_or(a.get(1, "maxsplit"), -1));
        },
        "sep maxsplit"}},
      {"rstrip",
       {[](const Value& v, const Arguments& a) -> Value {
          return stripped(v.text(), text_or_nothing(a.get(0, "")), false, true);
        },
        "_chars"}},
      {"split",
       {[](const Value& v, const Arguments& a) -> Value {
          return split(v.text(), text_or_nothing(a.get(0, "sep")), integer_or(a.get(1, "maxsplit"), -1));
        },
        "sep maxsplit"}},
      {"splitlines",
       {[](const Value& v, const Arguments& a) -> Value {
          return lines_of(v.text(), a.get(0, "keepends").is_true());
        },
        "keepends"}},
      {"strip",
       {[](const Value& v, const Arguments& a) -> Value {
          return stripped(v.text(), text_or_nothing(a.get(0, "")), true, true);
        },
        "_chars"}},
  };
}

const Methods& methods_of_texts() {
  static const Methods all = [] {
    Methods methods = letter_methods();
    methods.merge(search_methods());
    methods.merge(cut_methods());
    return methods;
  }();
  return all;
}

List values_of(const Value& mapping) {
  List list;
  for (const auto& [name, member] : mapping.members()) list.push_back(member);
  return list;
}

const Methods& methods_of_mappings() {
  using Series = Value::Series;
  static const Methods all = {
      {"get",
       {[](const Value& v, const Arguments& a) {
          const Value key = a.get(0, ""), standard = a.get(1, "");
          const Value* found = key.is(K::string) ? v.member(key.text()) : nullptr;
          return found ? *found : standard.is(K::undefined) ? Value::none() : standard;
        },
        "_key _default"}},
      {"items",
       {[](const Value& v, const Arguments&) -> Value { return Value::series(items_of(v), Series::items); }}},
      {"keys",
       {[](const Value& v, const Arguments&) -> Value { return Value::series(v.elements(), Series::keys); }}},
      {"values", {[](const Value& v, const Arguments&) -> Value {
         return Value::series(values_of(v), Series::values);
       }}},
  };
  return all;
}

const Methods& methods_of_lists() {
  static const Methods all = {
      {"count",
       {[](const Value& v, const Arguments& a) -> Value {
          return static_cast<int64_t>(std::count(v.list().begin(), v.list().end(), a.get(0, "")));
        },
        "_value"}},
      {"index",
       {[](const Value& v, const Arguments& a) -> Value {
          const auto found = std::find(v.list().begin(), v.list().end(), a.get(0, ""));
          if (found == v.list().end()) throw TemplateError("a list has no such value");
          return static_cast<int64_t>(found - v.list().begin());
        },
        "_value"}},
  };
  return all;
}

Value range(const Arguments& a) {
  constexpr auto longest = static_cast<int64_t>(longest_list);
  const bool has_one = a.values.size() < 2;
  const int64_t begin = has_one ? 0 : a.get(0, "").integer(), end = a.get(has_one ? 0 : 1, "").integer(),
                step = integer_or(a.get(2, ""), 1);
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

bool apply_test(const std::string& name, const Value& value, const Arguments& arguments) {
  const auto found = tests().find(known_name(name));
  if (found == tests().end()) throw TemplateError(fmt::format("test '{}' is not supported", name));
  return found->second(value, arguments);
}

void check_arguments(const std::string& of, const Arguments& given, std::string_view parameters) {
  const List known = split(std::string(parameters), {}, -1);
  if (given.values.size() > known.size())
    throw TemplateError(
        fmt::format("{} takes at most {} arguments here, found {}", of, known.size(), given.values.size()));
  for (const auto& [name, value] : given.named) {
    const auto found = std::find(known.begin(), known.end(), Value(name));
    if (found == known.end() || name.starts_with('_'))
      throw TemplateError(fmt::format("{} has no argument '{}' here", of, name));
    if (static_cast<size_t>(found - known.begin()) < given.values.size())
      throw TemplateError(fmt::format("{} has its argument '{}' twice", of, name));
  }
}

std::optional<Value> method_of(const Value& value, const std::string& name) {
  if (!value.is(K::string) && (!value.is(K::list) || value.is_series()) &&
      (!value.is(K::mapping) || value.is_space()))
    return std::nullopt;
  const auto& all = value.is(K::string) ? methods_of_texts()
                    : value.is(K::list) ? methods_of_lists()
                                        : methods_of_mappings();
  const auto found = all.find(name);
  if (found == all.end()) return std::nullopt;
  return Value(Function([value, name, method = found->second](const Arguments& a) {
    check_arguments(name + "()", a, method.parameters);
    return method.of(value, a);
  }));
}

Members known_functions() {
  return {{"range", Function(range)},
          {"namespace", Function([](const Arguments& a) { return Value::space(members_from(a)); })},
          {"dict", Function([](const Arguments& a) -> Value { return members_from(a); })},
          {"raise_exception",
           Function([](const Arguments& a) -> Value { throw TemplateError(a.get(0, "message").str()); })}};
}

}  // namespace command::chat
