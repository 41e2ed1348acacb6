// The value: construction, comparison and typed access.
#include "planner/base/json.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace stw {

Json::Json(const Json& other) {
  switch (other.kind()) {
    case Kind::string: value_.emplace<5>(*other.as_string()); break;
    case Kind::array: value_.emplace<6>(*other.as_array()); break;
    case Kind::object: value_.emplace<7>(*other.as_object()); break;
    case Kind::written_number: value_.emplace<8>(*other.as_written_number()); break;
    default: value_ = other.value_;  // scalars do not throw
  }
}

const Json::Array& Json::elements() const {
  static const Array empty;
  const Array* array = as_array();
  return array ? *array : empty;
}

const Json::Object& Json::members() const {
  static const Object empty;
  const Object* object = as_object();
  return object ? *object : empty;
}

const Json* Json::find(std::string_view key) const {
  for (const auto& [name, value] : members())
    if (name == key) return &value;
  return nullptr;
}

void Json::erase(std::string_view key) {
  if (Object* object = std::get_if<7>(&value_))
    std::erase_if(*object, [&](const auto& member) { return member.first == key; });
}

Json& Json::set(std::string key, Json value) {
  if (is_null()) value_.emplace<7>();
  Object* object = std::get_if<7>(&value_);
  assert(object);
  for (auto& [name, held] : *object) {
    if (name != key) continue;
    held = std::move(value);
    return *this;
  }
  object->emplace_back(std::move(key), std::move(value));
  return *this;
}

void Json::push(Json value) {
  if (is_null()) value_.emplace<6>();
  assert(is_array());
  std::get_if<6>(&value_)->push_back(std::move(value));
}

bool operator==(const Json& a, const Json& b) { return a.value_ == b.value_; }

std::string_view kind_name(Json::Kind kind) {
  switch (kind) {
    case Json::Kind::null: return "null";
    case Json::Kind::boolean: return "a boolean";
    case Json::Kind::integer:
    case Json::Kind::unsigned_integer: return "an integer";
    case Json::Kind::number:
    case Json::Kind::written_number: return "a number";
    case Json::Kind::string: return "a string";
    case Json::Kind::array: return "an array";
    case Json::Kind::object: return "an object";
  }
  return "nothing";
}

const Json* find_present(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  return value && !value->is_null() ? value : nullptr;
}

namespace {

std::string quoted(std::string_view key) {
  std::string text(1, '"');
  text.append(key).push_back('"');
  return text;
}

Error missing(const Json& object, std::string_view key) {
  if (!object.is_object())
    return {Code::corrupt,
            "expected an object with " + quoted(key) + ", found " + std::string(kind_name(object.kind()))};
  return {Code::corrupt, quoted(key) + " is missing"};
}

Error mismatch(const Json& value, std::string_view key, std::string_view expected) {
  std::string found(kind_name(value.kind()));
  if (value.is_scalar() && !value.is_null()) {
    const double* real = value.as_double();
    std::string text = real && !std::isfinite(*real) ? "NaN or Infinity" : to_string(value, 0);
    if (text.size() <= 60) found += " (" + text + ")";
  }
  return {Code::corrupt, quoted(key) + ": expected " + std::string(expected) + ", found " + found};
}

Result<bool> to_bool(const Json& value, std::string_view key) {
  if (const bool* held = value.as_bool()) return *held;
  return mismatch(value, key, "a boolean");
}

Result<int64_t> to_int(const Json& value, std::string_view key) {
  if (const int64_t* held = value.as_int()) return *held;
  return mismatch(value, key, "an integer of 64 bits");
}

Result<uint64_t> to_uint(const Json& value, std::string_view key) {
  if (const uint64_t* held = value.as_large_uint()) return *held;
  if (const int64_t* held = value.as_int(); held && *held >= 0) return static_cast<uint64_t>(*held);
  return mismatch(value, key, "an integer of 64 bits that is not negative");
}

Result<double> to_double(const Json& value, std::string_view key) {
  if (const double* held = value.as_double())
    return std::isfinite(*held) ? Result<double>(*held) : mismatch(value, key, "a finite number");
  if (const int64_t* held = value.as_int()) return static_cast<double>(*held);
  if (const uint64_t* held = value.as_large_uint()) return static_cast<double>(*held);
  return mismatch(value, key, "a number");
}

Result<std::string> to_text(const Json& value, std::string_view key) {
  if (const std::string* held = value.as_string()) return *held;
  return mismatch(value, key, "a string");
}

template <class T>
Result<T> get(const Json& object, std::string_view key, Result<T> (*convert)(const Json&, std::string_view)) {
  const Json* value = find_present(object, key);
  if (!value) return missing(object, key);
  return convert(*value, key);
}

template <class T>
Result<T> get(const Json& object, std::string_view key, T absent,
              Result<T> (*convert)(const Json&, std::string_view)) {
  if (!object.is_object()) return missing(object, key);
  const Json* value = find_present(object, key);
  if (!value) return absent;
  return convert(*value, key);
}

}  // namespace

Result<bool> get_bool(const Json& object, std::string_view key) { return get(object, key, to_bool); }
Result<bool> get_bool(const Json& object, std::string_view key, bool absent) {
  return get(object, key, absent, to_bool);
}
Result<int64_t> get_int(const Json& object, std::string_view key) { return get(object, key, to_int); }
Result<int64_t> get_int(const Json& object, std::string_view key, int64_t absent) {
  return get(object, key, absent, to_int);
}
Result<uint64_t> get_uint(const Json& object, std::string_view key) { return get(object, key, to_uint); }
Result<uint64_t> get_uint(const Json& object, std::string_view key, uint64_t absent) {
  return get(object, key, absent, to_uint);
}
Result<double> get_double(const Json& object, std::string_view key) { return get(object, key, to_double); }
Result<double> get_double(const Json& object, std::string_view key, double absent) {
  return get(object, key, absent, to_double);
}
Result<std::string> get_string(const Json& object, std::string_view key) { return get(object, key, to_text); }
Result<std::string> get_string(const Json& object, std::string_view key, std::string_view absent) {
  return get(object, key, std::string(absent), to_text);
}

Result<const Json*> get_array(const Json& object, std::string_view key) {
  const Json* value = find_present(object, key);
  if (!value) return missing(object, key);
  if (!value->is_array()) return mismatch(*value, key, "an array");
  return value;
}

Result<const Json*> get_object(const Json& object, std::string_view key) {
  const Json* value = find_present(object, key);
  if (!value) return missing(object, key);
  if (!value->is_object()) return mismatch(*value, key, "an object");
  return value;
}

Json canonical(const Json& json) {
  constexpr double largest_whole = 9007199254740992;  // 2^53
  if (const double* x = json.as_double(); x && std::fabs(*x) <= largest_whole && *x == std::trunc(*x))
    return Json(static_cast<int64_t>(*x));
  if (json.is_array()) {
    Json::Array elements;
    for (const Json& element : json.elements()) elements.push_back(canonical(element));
    return Json(std::move(elements));
  }
  if (!json.is_object()) return json;
  Json::Object members;
  for (const auto& [key, value] : json.members()) members.emplace_back(key, canonical(value));
  std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return Json(std::move(members));
}

}  // namespace stw
