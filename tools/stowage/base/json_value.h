// JSON of which only parts are known. It is read whole and then queried.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace command {

struct JsonMember;

struct JsonValue {
  enum class Kind { null, boolean, number, string, array, object };
  Kind kind = Kind::null;
  bool boolean = false;
  bool is_skipped = false;  // by read_object: only `kind` is set
  std::string text;         // a string, or a number as it is written
  std::vector<JsonValue> elements;
  std::vector<JsonMember> members;
};
struct JsonMember {
  std::string key;
  JsonValue value;
};

// members in any order; numbers are compared as they are written
bool operator==(const JsonValue& a, const JsonValue& b);
JsonValue text_value(std::string text);

// Reads JSON as Python's json does: the last of several members with one name counts, and NaN and Infinity
// are numbers. (No field here accepts them.) A byte-order mark at the beginning is skipped. Throws a Failure
// that begins with `path`, also if values are nested deeper than 64 or the text is not UTF-8.
JsonValue read_json(std::string_view text, const std::string& path);
// The same, but skips all strings, arrays and objects in the object except the members for which `is_used` is
// true. If the text is not an object, everything is skipped.
JsonValue read_object(std::string_view text, const std::string& path,
                      const std::function<bool(std::string_view key)>& is_used);

// A value and its place ("tokenizer.json: model.vocab"), which every Failure names. The value must outlive
// the view.
class JsonView {
 public:
  JsonView(const JsonValue& value, std::string place) : value_(&value), place_(std::move(place)) {}

  const std::string& place() const { return place_; }
  bool is_null() const { return value_->kind == JsonValue::Kind::null; }
  bool is_text() const { return value_->kind == JsonValue::Kind::string; }
  bool is_array() const { return value_->kind == JsonValue::Kind::array; }
  bool is_negative() const {
    return value_->kind == JsonValue::Kind::number && value_->text.starts_with('-');
  }
  // A view of null if there is no such member or if this is null.
  JsonView at(std::string_view key) const;
  // These throw a Failure if the value is of another kind.
  const std::vector<JsonMember>& members() const;
  std::vector<JsonView> elements() const;
  const std::vector<JsonValue>& raw_elements() const;
  const std::string& text() const;
  std::string word() const;  // a string, a number or a boolean, as it is written
  const JsonValue& raw() const { return *value_; }
  uint64_t integer(uint64_t largest) const;
  // The same, but null gives a default.
  bool flag_or(bool otherwise) const;
  std::string text_or(std::string_view otherwise) const;

  [[noreturn]] void fail(std::string_view expected) const;

 private:
  void require(JsonValue::Kind kind, std::string_view expected) const;
  const JsonValue* value_;
  std::string place_;
};

}  // namespace command
