// Which numbers a text may have as its values: of labels how much it has of each, of numbers any.
#pragma once
#include <cmath>

#include "planner/graph/task.h"

namespace stw {

inline bool is_value(Task task, float x) { return task == Task::labels ? x >= 0 && x <= 1 : std::isfinite(x); }
inline const char* values_of(Task task) { return task == Task::labels ? "0 to 1" : "a finite number"; }   // in messages

}  // namespace stw
