#include "base/json_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/failure.h"
#include "base/foreign_file.h"
#include "base/json_reader.h"
#include "base/lines.h"

namespace command {
namespace {

using Kind = Json::Kind;

constexpr int deepest = 64;

// Calls member(key) for each member of an object, which must read the value.
template <class Member>
void each_member(JsonReader& reader, const Member& member) {
  reader.list('{', '}', [&] {
    std::string key = reader.text();
    reader.expect(':');
    member(std::move(key));
  });
}

// The value of the last member with that name, which counts. Null if there is none.
template <class Members>
auto last_member(const Members& members, std::string_view key) {
  const auto found =
      std::find_if(members.rbegin(), members.rend(), [&](const auto& member) { return member.first == key; });
  return found == members.rend() ? nullptr : &found->second;
}

Json read_value(JsonReader& reader, int depth) {
  if (depth > deepest) reader.fail("nested too deeply");
  if (reader.is_next('{')) {
    Json::Object members;
    each_member(reader, [&](std::string key) {
      members.emplace_back(std::move(key), read_value(reader, depth + 1));
    });
    return members;
  }
  if (reader.is_next('[')) {
    Json::Array elements;
    reader.list('[', ']', [&] { elements.push_back(read_value(reader, depth + 1)); });
    return elements;
  }
  if (reader.is_next('"')) return reader.text();
  if (reader.take_word("true")) return true;
  if (reader.take_word("false")) return false;
  if (reader.take_word("null")) return {};
  const std::string_view not_finite = reader.take_not_finite();
  return Json::written_number(std::string(not_finite.empty() ? reader.number() : not_finite));
}

// Calls each_member for a whole text. Skips a text that is not an object. Returns whether it is one.
template <class Member>
bool for_members(JsonReader& reader, const Member& member) {
  const bool is_object = reader.is_next('{');
  if (!is_object) reader.skip();
  else each_member(reader, member);
  if (!reader.at_end()) reader.fail("expected the end of the text");
  return is_object;
}

Kind kind_of_written(std::string_view value) {
  switch (value.front()) {
    case '{': return Kind::object;
    case '[': return Kind::array;
    case '"': return Kind::string;
    case 't':
    case 'f': return Kind::boolean;
    case 'n': return Kind::null;
    default: return Kind::written_number;
  }
}

}  // namespace

Json read_json(std::string_view text, const std::string& path) {
  require_utf8_file(text, path);
  JsonReader reader(without_mark(text), path + ": damaged");
  Json value = read_value(reader, 0);
  if (!reader.at_end()) reader.fail("expected the end of the text");
  return value;
}

Json read_object(std::string_view text, const std::string& path,
                 const std::function<bool(std::string_view key)>& is_used) {
  JsonReader reader(text, path + ": damaged");
  Json::Object members;
  const bool is_object = for_members(reader, [&](std::string key) {
    if (is_used(key)) members.emplace_back(std::move(key), read_value(reader, 1));
    else reader.skip();
  });
  return is_object ? Json(std::move(members)) : Json();
}

Outline read_outline(std::string_view text, const std::string& path) {
  JsonReader reader(text, path + ": damaged");
  Outline outline;
  outline.is_object = for_members(reader, [&](std::string key) {
    outline.members.emplace_back(std::move(key), kind_of_written(reader.skip()));
  });
  return outline;
}

Kind Outline::kind_of(std::string_view key) const {
  const Kind* const kind = last_member(members, key);
  return kind ? *kind : Kind::null;
}

bool is_number(const Json& value) { return value.kind() == Kind::written_number; }

std::string_view text_of(const Json& value) {
  const std::string* const text = value.is_string() ? value.as_string() : value.as_written_number();
  return text ? *text : std::string_view();
}

bool is_equal(const Json& a, const Json& b) {
  if (a.is_array() && b.is_array()) return std::ranges::equal(a.elements(), b.elements(), is_equal);
  if (a.is_object() && b.is_object())
    return std::ranges::is_permutation(a.members(), b.members(), [](const auto& x, const auto& y) {
      return x.first == y.first && is_equal(x.second, y.second);
    });
  return a == b;
}

void JsonView::fail(std::string_view expected) const {
  // A place that ends in ": " is a whole file or line.
  const char* const colon = place_.ends_with(": ") ? "" : ": ";
  throw Failure(exit_failed, fmt::format("{}{}expected {}", place_, colon, expected));
}

JsonView JsonView::at(std::string_view key) const {
  static const Json null;
  std::string place = fmt::format("{}{}{}", place_, place_.ends_with(": ") ? "" : ".", key);
  if (is_null()) return JsonView(null, std::move(place));
  const Json* const value = last_member(members(), key);
  return JsonView(value ? *value : null, std::move(place));
}

const Json::Object& JsonView::members() const {
  if (!value_->is_object()) fail("an object");
  return value_->members();
}

const Json::Array& JsonView::raw_elements() const {
  if (!value_->is_array()) fail("an array");
  return value_->elements();
}

std::vector<JsonView> JsonView::elements() const {
  std::vector<JsonView> views;
  for (const Json& element : raw_elements())
    views.emplace_back(element, fmt::format("{}[{}]", place_, views.size()));
  return views;
}

const std::string& JsonView::text() const {
  if (!is_text()) fail("a string");
  return *value_->as_string();
}

std::string JsonView::word() const {
  const std::string_view written = text_of(*value_);
  if (is_number(*value_) && written.find_first_of("Nn") != std::string_view::npos)
    fail(fmt::format("a string or a finite number, found {}", written));
  if (is_text() || is_number(*value_)) return std::string(written);
  if (const bool* const truth = value_->as_bool()) return *truth ? "true" : "false";
  fail("a string or a number");
}

uint64_t JsonView::integer(uint64_t largest) const {
  const std::string_view digits = text_of(*value_);
  uint64_t whole = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), whole);
  if (!is_number(*value_) || read.ec != std::errc() || read.ptr != digits.data() + digits.size() ||
      whole > largest)
    fail(fmt::format("a whole number up to {}", largest));
  return whole;
}

bool JsonView::flag_or(bool otherwise) const {
  if (is_null()) return otherwise;
  const bool* const truth = value_->as_bool();
  if (!truth) fail("true or false");
  return *truth;
}

std::string JsonView::text_or(std::string_view otherwise) const {
  return is_null() ? std::string(otherwise) : text();
}

}  // namespace command
