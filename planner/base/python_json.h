// JSON that Python wrote or people did: config.json and the like, read as Python's json reads it.
#pragma once
#include <string_view>

#include "planner/base/json.h"

namespace stw {

// As parse_json, but of members with one name the last one counts, NaN, Infinity and -Infinity are numbers, which no typed member takes, and a byte-order
// mark in front is no part of the text. Text in UTF-16 is named as such.
Result<Json> parse_python_json(std::string_view text);

}  // namespace stw
