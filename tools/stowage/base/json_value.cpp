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

using Kind = JsonValue::Kind;

constexpr int deepest = 64;

JsonValue read_value(JsonReader& reader, int depth) {
  if (depth > deepest) reader.fail("nested too deeply");
  JsonValue value;
  if (reader.take('{')) {
    value.kind = Kind::object;
    if (reader.take('}')) return value;
    do {
      std::string key = reader.text();
      reader.expect(':');
      value.members.push_back({std::move(key), read_value(reader, depth + 1)});
    } while (reader.take(','));
    reader.expect('}');
  } else if (reader.take('[')) {
    value.kind = Kind::array;
    if (reader.take(']')) return value;
    do value.elements.push_back(read_value(reader, depth + 1));
    while (reader.take(','));
    reader.expect(']');
  } else if (reader.is_next('"')) {
    value.kind = Kind::string;
    value.text = reader.text();
  } else if (reader.take_word("true")) {
    value.kind = Kind::boolean;
    value.boolean = true;
  } else if (reader.take_word("false")) {
    value.kind = Kind::boolean;
  } else if (!reader.take_word("null")) {
    value.kind = Kind::number;
    const std::string_view not_finite = reader.take_not_finite();
    value.text = not_finite.empty() ? reader.number() : not_finite;
  }
  return value;
}

JsonValue skipped_value(JsonReader& reader) {
  JsonValue value;
  value.kind = reader.is_next('{') ? Kind::object : reader.is_next('[') ? Kind::array : Kind::string;
  value.is_skipped = true;
  reader.skip();
  return value;
}

}  // namespace

bool operator==(const JsonValue& a, const JsonValue& b) {
  return a.kind == b.kind && a.boolean == b.boolean && a.text == b.text && a.elements == b.elements &&
         std::is_permutation(
             a.members.begin(), a.members.end(), b.members.begin(), b.members.end(),
             [](const JsonMember& x, const JsonMember& y) { return x.key == y.key && x.value == y.value; });
}

JsonValue text_value(std::string text) {
  JsonValue value;
  value.kind = Kind::string;
  value.text = std::move(text);
  return value;
}

JsonValue read_json(std::string_view text, const std::string& path) {
  require_utf8_file(text, path);
  JsonReader reader(without_mark(text), path + ": damaged");
  JsonValue value = read_value(reader, 0);
  if (!reader.at_end()) reader.fail("expected the end of the text");
  return value;
}

JsonValue read_object(std::string_view text, const std::string& path,
                      const std::function<bool(std::string_view key)>& is_used) {
  JsonReader reader(text, path + ": damaged");
  const auto read = [&](bool is_kept) {
    const bool is_small = !reader.is_next('{') && !reader.is_next('[') && !reader.is_next('"');
    return is_kept || is_small ? read_value(reader, 1) : skipped_value(reader);
  };
  JsonValue value;
  if (reader.is_next('{')) {
    value.kind = Kind::object;
    reader.list('{', '}', [&] {
      std::string key = reader.text();
      reader.expect(':');
      const bool is_kept = is_used && is_used(key);
      value.members.push_back({std::move(key), read(is_kept)});
    });
  } else {
    value = read(false);
  }
  if (!reader.at_end()) reader.fail("expected the end of the text");
  return value;
}

void JsonView::fail(std::string_view expected) const {
  // A place that ends in ": " is a whole file or line.
  const char* const colon = place_.ends_with(": ") ? "" : ": ";
  throw Failure(exit_failed, fmt::format("{}{}expected {}", place_, colon, expected));
}

void JsonView::require(Kind kind, std::string_view expected) const {
  if (value_->kind != kind) fail(expected);
  if (value_->is_skipped)
    throw Failure(exit_failed, fmt::format("{}: is needed, but was skipped when the file was read", place_));
}

JsonView JsonView::at(std::string_view key) const {
  static const JsonValue null;
  std::string place = fmt::format("{}{}{}", place_, place_.ends_with(": ") ? "" : ".", key);
  if (is_null()) return JsonView(null, std::move(place));
  const auto& all = members();
  // the last one counts
  const auto found =
      std::find_if(all.rbegin(), all.rend(), [&](const JsonMember& member) { return member.key == key; });
  return JsonView(found == all.rend() ? null : found->value, std::move(place));
}

const std::vector<JsonMember>& JsonView::members() const {
  require(Kind::object, "an object");
  return value_->members;
}

const std::vector<JsonValue>& JsonView::raw_elements() const {
  require(Kind::array, "an array");
  return value_->elements;
}

std::vector<JsonView> JsonView::elements() const {
  std::vector<JsonView> views;
  for (const JsonValue& element : raw_elements())
    views.emplace_back(element, fmt::format("{}[{}]", place_, views.size()));
  return views;
}

const std::string& JsonView::text() const {
  require(Kind::string, "a string");
  return value_->text;
}

std::string JsonView::word() const {
  if (is_text()) return text();
  switch (value_->kind) {
    case Kind::number:
      if (value_->text.find_first_of("Nn") != std::string::npos)
        fail(fmt::format("a string or a finite number, found {}", value_->text));
      return value_->text;
    case Kind::boolean: return value_->boolean ? "true" : "false";
    default: fail("a string or a number");
  }
}

uint64_t JsonView::integer(uint64_t largest) const {
  const std::string_view digits = value_->text;
  uint64_t whole = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), whole);
  if (value_->kind != Kind::number || read.ec != std::errc() || read.ptr != digits.data() + digits.size() ||
      whole > largest)
    fail(fmt::format("a whole number up to {}", largest));
  return whole;
}

bool JsonView::flag_or(bool otherwise) const {
  if (is_null()) return otherwise;
  require(Kind::boolean, "true or false");
  return value_->boolean;
}

std::string JsonView::text_or(std::string_view otherwise) const {
  return is_null() ? std::string(otherwise) : text();
}

}  // namespace command
