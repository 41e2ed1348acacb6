// JSON of which only parts are known: read whole, then asked for what it should have.
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
  bool is_skipped = false;   // of read_object: its kind is known, and nothing else
  std::string text;   // of a string; a number as it is written
  std::vector<JsonValue> elements;
  std::vector<JsonMember> members;
};
struct JsonMember {
  std::string key;
  JsonValue value;
};

bool operator==(const JsonValue& a, const JsonValue& b);   // members in any order, numbers as they are written
JsonValue text_value(std::string text);

// As Python's json: of members with one name the last one counts, and NaN and Infinity are numbers, which nothing here takes.
// A byte-order mark in front is no part of it. Throws a Failure that begins with `path`, also for what is nested deeper than 64, or not UTF-8.
JsonValue read_json(std::string_view text, const std::string& path);
// The same, but of an object strings, arrays and objects are skipped, but for members that `is_used` says, and of what is no object all.
JsonValue read_object(std::string_view text, const std::string& path, const std::function<bool(std::string_view key)>& is_used);

// A value and where it lies ("tokenizer.json: model.vocab"), which every Failure names. The value must outlive it.
class JsonView {
 public:
  JsonView(const JsonValue& value, std::string place) : value_(&value), place_(std::move(place)) {}

  const std::string& place() const { return place_; }
  bool is_null() const { return value_->kind == JsonValue::Kind::null; }
  bool is_text() const { return value_->kind == JsonValue::Kind::string; }
  bool is_array() const { return value_->kind == JsonValue::Kind::array; }
  bool is_negative() const { return value_->kind == JsonValue::Kind::number && value_->text.starts_with('-'); }
  // Null where there is no such member, or this is null itself.
  JsonView at(std::string_view key) const;
  // Throw where this is of another kind.
  const std::vector<JsonMember>& members() const;
  std::vector<JsonView> elements() const;
  const std::vector<JsonValue>& raw_elements() const;
  const std::string& text() const;
  std::string word() const;   // a string, a number or a truth, as it is written
  const JsonValue& raw() const { return *value_; }
  uint64_t whole(uint64_t largest) const;
  // The same, but null has a default.
  bool flag_or(bool otherwise) const;
  std::string text_or(std::string_view otherwise) const;

  [[noreturn]] void fail(std::string_view expected) const;

 private:
  void require(JsonValue::Kind kind, std::string_view expected) const;
  const JsonValue* value_;
  std::string place_;
};

}  // namespace command
