// The filters that templates may apply.
#pragma once
#include <string>

#include "chat/value.h"

namespace command::chat {

// Throws a TemplateError for a name that is not known here, and for what the filter cannot take.
Value apply_filter(const std::string& name, const Value& value, const Arguments& arguments);

}  // namespace command::chat
