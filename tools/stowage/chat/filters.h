// The filters that templates can apply.
#pragma once
#include <string>

#include "chat/value.h"

namespace command::chat {

// Throws a TemplateError for an unknown name and for a value or argument that the filter does not accept.
Value apply_filter(const std::string& name, const Value& value, const Arguments& arguments);

}  // namespace command::chat
