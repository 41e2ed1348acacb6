// JSON that Python or a person wrote: config.json and the like. It is read as Python's json module reads it.
#pragma once
#include <string_view>

#include "planner/base/json.h"

namespace stw {

// Parses as parse_json does, with these differences: if several members have one name, the last one counts.
// NaN, Infinity and -Infinity are numbers, but no typed member accepts them. A byte-order mark at the
// beginning is skipped. Text in UTF-16 gets an error message of its own.
Result<Json> parse_python_json(std::string_view text);

}  // namespace stw
