// The values that a label may have: 0 to 1 for the task `labels`, otherwise any finite number.
#pragma once
#include <cmath>

#include "planner/graph/head.h"

namespace stw {

inline bool is_value(Task task, float x) {
  return task == Task::labels ? x >= 0 && x <= 1 : std::isfinite(x);
}
// For messages.
inline const char* values_of(Task task) { return task == Task::labels ? "0 to 1" : "a finite number"; }

}  // namespace stw
