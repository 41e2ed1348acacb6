// Everything that templates can call except filters: tests, methods of values, and functions.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "chat/value.h"

namespace command::chat {

// All functions throw a TemplateError for arguments that they do not accept. apply_test also throws for an
// unknown name.
bool apply_test(const std::string& name, const Value& value, const Arguments& arguments);
// Method of a string, a mapping or a list. Empty if the value has no such method.
std::optional<Value> method_of(const Value& value, const std::string& name);
// Throws unless all arguments match these parameters: names in order, separated by spaces. A parameter whose
// name begins with _ is positional only.
void check_arguments(const std::string& of, const Arguments& given, std::string_view parameters);
// The functions range, namespace, dict and raise_exception.
Members known_functions();

}  // namespace command::chat
