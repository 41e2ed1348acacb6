// What templates may call beside filters: tests, methods of values, and functions by name.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "chat/value.h"

namespace command::chat {

// All throw a TemplateError for what they cannot take; this one also for a name that is not known here.
bool apply_test(const std::string& name, const Value& value, const Arguments& arguments);
// Of a string, a mapping or a list; nothing where it has no such method.
std::optional<Value> method_of(const Value& value, const std::string& name);
// That all arguments are among these parameters: names, apart by spaces, in their order; one that begins with _ cannot be given by its name.
void check_arguments(const std::string& of, const Arguments& given, std::string_view parameters);
// range, namespace, dict, raise_exception.
Members known_functions();

}  // namespace command::chat
