// What templates may call: filters, tests, methods of values, and functions by name.
#pragma once
#include <optional>
#include <string>

#include "value.h"

namespace command::chat {

// `call` carries out filters and tests by name, for those that take one (map, select, …). Throw a TemplateError for names that are not
// known here, and for what they cannot take.
Value apply_filter(const std::string& name, const Value& value, const Arguments& arguments);
bool apply_test(const std::string& name, const Value& value, const Arguments& arguments);
// Of a string, a mapping or a list; nothing where it has no such method.
std::optional<Value> method_of(const Value& value, const std::string& name);
// range, namespace, dict, raise_exception.
Members known_functions();

}  // namespace command::chat
