// JSON values for every text file that the project reads or writes: plans, config.json, headers of
// safetensors and checkpoints. There is one strict parser and one deterministic writer, so that a fingerprint
// of the text identifies the value.
//
// Integers stay exact over the ranges of int64 and uint64. Only an integer beyond both becomes a double.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "planner/base/result.h"

namespace stw {

class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;  // in insertion order, keys unique

  // In the order of the alternatives of `value_`. An unsigned_integer is always above the range of int64. A
  // written_number is a number that is kept as text and compared as text. The parsers below make none, and
  // the typed members below accept none.
  enum class Kind : uint8_t {
    null,
    boolean,
    integer,
    unsigned_integer,
    number,
    string,
    array,
    object,
    written_number
  };

  Json() = default;
  // Not defaulted: if copying a variant of strings and vectors throws, libstdc++ 12 destroys a variant that
  // was never constructed.
  Json(const Json& other);
  Json(Json&&) = default;
  Json& operator=(const Json& other) { return *this = Json(other); }
  Json& operator=(Json&&) = default;
  ~Json() = default;
  Json(std::nullptr_t) {}
  Json(std::same_as<bool> auto value) : value_(std::in_place_index<1>, value) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) Json(T value) {
    if (std::in_range<int64_t>(value)) value_.emplace<2>(static_cast<int64_t>(value));
    else value_.emplace<3>(static_cast<uint64_t>(value));
  }
  Json(double value) : value_(std::in_place_index<4>, value) {}
  Json(const char* value) : value_(std::in_place_index<5>, value) {}
  Json(std::string_view value) : value_(std::in_place_index<5>, value) {}
  Json(std::string value) : value_(std::in_place_index<5>, std::move(value)) {}
  Json(Array value) : value_(std::in_place_index<6>, std::move(value)) {}
  Json(Object value) : value_(std::in_place_index<7>, std::move(value)) {}  // keys must be unique
  static Json array() { return Json(Array{}); }
  static Json object() { return Json(Object{}); }
  static Json written_number(std::string text) {
    Json json;
    json.value_.emplace<8>(std::move(text));
    return json;
  }

  Kind kind() const { return static_cast<Kind>(value_.index()); }
  bool is_null() const { return kind() == Kind::null; }
  bool is_string() const { return kind() == Kind::string; }
  bool is_array() const { return kind() == Kind::array; }
  bool is_object() const { return kind() == Kind::object; }
  bool is_scalar() const { return !is_array() && !is_object(); }

  // Null if the value has another kind, or does not fit.
  const bool* as_bool() const { return std::get_if<1>(&value_); }
  const int64_t* as_int() const { return std::get_if<2>(&value_); }
  const uint64_t* as_large_uint() const { return std::get_if<3>(&value_); }
  const double* as_double() const { return std::get_if<4>(&value_); }
  const std::string* as_string() const { return std::get_if<5>(&value_); }
  const Array* as_array() const { return std::get_if<6>(&value_); }
  const Object* as_object() const { return std::get_if<7>(&value_); }
  const std::string* as_written_number() const {
    const Written* written = std::get_if<8>(&value_);
    return written ? &written->text : nullptr;
  }

  // Elements or members. Empty if this is neither an array nor an object.
  const Array& elements() const;
  const Object& members() const;

  // The member with that name. Null if there is none, or if this is not an object. Time: linear in the
  // members.
  const Json* find(std::string_view key) const;

  // Replaces the member or appends it. This must be an object (null becomes one). Returns *this, for
  // chaining.
  Json& set(std::string key, Json value);
  // Removes the member, if there is one.
  void erase(std::string_view key);
  // Appends an element. This must be an array (null becomes one).
  void push(Json value);

  friend bool operator==(const Json& a, const Json& b);

 private:
  friend class JsonParser;
  struct Written {
    std::string text;
    explicit Written(std::string written) : text(std::move(written)) {}
    bool operator==(const Written&) const = default;
  };
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, Array, Object, Written> value_;
};

// "an integer", "a string", ...: for messages.
std::string_view kind_name(Json::Kind kind);

inline constexpr int json_depth_limit = 128;  // levels of nested arrays and objects

// Parses exactly one RFC 8259 value. Refuses any other text around it, keys that appear twice, text that is
// not UTF-8, lone surrogates, numbers outside the range of a double, and nesting beyond the limit. Errors:
// corrupt, with line and column (both from 1, columns in bytes). Time: O(n log n).
Result<Json> parse_json(std::string_view text);

// Writes one line if indent is 0. Otherwise every level of nesting is indented by `indent` spaces; arrays of
// scalars stay on one line. A finite double is written as the shortest text that parses to the same value,
// with ".0" if it is integral. A double that is not finite is written as null. Bytes in strings that are not
// UTF-8 are written as U+FFFD, so that the text always parses.
std::string to_string(const Json& value, int indent);

// The canonical form of a value: members are sorted by key, and integral doubles become integers. Different
// tools write the same settings in different orders, and some write 0.0 where others write 0; their canonical
// forms are equal.
Json canonical(const Json& value);

// The member. Null if it is absent or JSON null.
const Json* find_present(const Json& object, std::string_view key);

// Typed members of an object. JSON null counts as absent. Without a value for `absent`, an absent member is
// an error. Wrong types, and integers that do not fit, are errors. get_double takes integers too. Errors:
// corrupt, naming the key and the value found.
Result<bool> get_bool(const Json& object, std::string_view key);
Result<bool> get_bool(const Json& object, std::string_view key, bool absent);
Result<int64_t> get_int(const Json& object, std::string_view key);
Result<int64_t> get_int(const Json& object, std::string_view key, int64_t absent);
Result<uint64_t> get_uint(const Json& object, std::string_view key);
Result<uint64_t> get_uint(const Json& object, std::string_view key, uint64_t absent);
Result<double> get_double(const Json& object, std::string_view key);
Result<double> get_double(const Json& object, std::string_view key, double absent);
Result<std::string> get_string(const Json& object, std::string_view key);
Result<std::string> get_string(const Json& object, std::string_view key, std::string_view absent);
// Borrowed from `object`; never null.
Result<const Json*> get_array(const Json& object, std::string_view key);
Result<const Json*> get_object(const Json& object, std::string_view key);

}  // namespace stw
