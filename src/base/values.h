// The values that a label may have: 0 to 1 for the task `labels`, the index of a token for `spans`, otherwise
// any finite number.
#pragma once
#include <cmath>
#include <cstdint>

#include "planner/graph/head.h"

namespace stw {

inline bool is_value(Task task, float x) {
  constexpr float exact_end = 1 << 24;  // below it, fp32 holds every integer
  if (task == Task::spans) return x >= 0 && x < exact_end && x == std::floor(x);
  return task == Task::labels ? x >= 0 && x <= 1 : std::isfinite(x);
}
// Whether the values of a text of `tokens` tokens are an answer in it: the indices of its first and its last
// token.
inline bool is_span(const float* values, uint64_t tokens) {
  return values[0] <= values[1] && values[1] < static_cast<float>(tokens);
}
// For messages.
inline const char* values_of(Task task) {
  return task == Task::labels ? "0 to 1" : task == Task::spans ? "the index of a token" : "a finite number";
}

}  // namespace stw
