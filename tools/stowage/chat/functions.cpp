#include "functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "texts.h"

namespace command::chat {
namespace {

using K = Value::Kind;

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
  static const std::map<std::string, std::string> same = {{"==", "eq"}, {"equalto", "eq"}, {"!=", "ne"}, {">", "gt"}, {"greaterthan", "gt"}, {"<", "lt"}, {"lessthan", "lt"},
                                                          {">=", "ge"}, {"<=", "le"}};
  const auto found = same.find(name);
  return found == same.end() ? name : found->second;
}

using Method = Value (*)(const Value&, const Arguments&);
const std::map<std::string, Method>& methods_of_texts() {
  static const std::map<std::string, Method> all = {
      {"capitalize", [](const Value& v, const Arguments&) -> Value { return capitalize(v.text()); }},
      {"count", [](const Value& v, const Arguments& a) -> Value { return count_of(a.get(0, "").text(), v.text()); }},
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
List values_of(const Value& mapping) {
  List list;
  for (const auto& [name, member] : mapping.members()) list.push_back(member);
  return list;
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
