// Learning rates over the steps of a run.
#pragma once
#include <cstdint>

namespace stw {

enum class ScheduleKind : uint8_t { cosine, linear, constant };

// Linear warm-up from rate / warmup to rate, then down to min_rate at step `total` (constant: no descent). A step is the
// number of successful updates before it.
struct Schedule {
  ScheduleKind kind = ScheduleKind::cosine;
  double rate = 3e-4, min_rate = 3e-5;
  uint64_t warmup = 0, total = 0;

  double at(uint64_t step) const;
};

}  // namespace stw
