// JSON of which only parts are known. It is read whole and then queried.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/base/json.h"

namespace command {

using stw::Json;

// Reads JSON as Python's json does: NaN and Infinity are numbers. (No field here accepts them.) Numbers are
// kept as they are written. All members with one name are kept; the last one counts. A byte-order mark at the
// beginning is skipped. Throws a Failure that begins with `path`, also if values are nested deeper than 64 or
// the text is not UTF-8.
Json read_json(std::string_view text, const std::string& path);
// The same, but skips all members of the object except those for which `is_used` is true: they may be large.
// If the text is not an object, all of it is skipped, and the result is null.
Json read_object(std::string_view text, const std::string& path,
                 const std::function<bool(std::string_view key)>& is_used);

// The names and kinds of an object's members, without their values. Throws as read_json does.
struct Outline {
  bool is_object = false;
  std::vector<std::pair<std::string, Json::Kind>> members;
  Json::Kind kind_of(std::string_view key) const;  // null if there is no such member
  bool has(std::string_view key) const { return kind_of(key) != Json::Kind::null; }
};
Outline read_outline(std::string_view text, const std::string& path);

bool is_number(const Json& value);
// A string, or a number as it is written. Empty for other values.
std::string_view text_of(const Json& value);
// members in any order; numbers are compared as they are written
bool is_equal(const Json& a, const Json& b);

// A value and its place ("tokenizer.json: model.vocab"), which every Failure names. The value must outlive
// the view.
class JsonView {
 public:
  JsonView(const Json& value, std::string place) : value_(&value), place_(std::move(place)) {}

  const std::string& place() const { return place_; }
  bool is_null() const { return value_->is_null(); }
  bool is_text() const { return value_->is_string(); }
  bool is_array() const { return value_->is_array(); }
  bool is_negative() const { return is_number(*value_) && text_of(*value_).starts_with('-'); }
  // A view of null if there is no such member or if this is null.
  JsonView at(std::string_view key) const;
  // These throw a Failure if the value is of another kind.
  const Json::Object& members() const;
  std::vector<JsonView> elements() const;
  const Json::Array& raw_elements() const;
  const std::string& text() const;
  std::string word() const;  // a string, a number or a boolean, as it is written
  const Json& raw() const { return *value_; }
  uint64_t integer(uint64_t largest) const;
  // The same, but null gives a default.
  bool flag_or(bool otherwise) const;
  std::string text_or(std::string_view otherwise) const;

  [[noreturn]] void fail(std::string_view expected) const;

 private:
  const Json* value_;
  std::string place_;
};

}  // namespace command
