#include "src/schedule.h"

#include "src/elementary.h"

namespace stw {

double Schedule::at(uint64_t step) const {
  if (step < warmup) return rate * static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (kind == ScheduleKind::constant) return rate;
  if (step >= total) return min_rate;
  const double done = static_cast<double>(step - warmup) / static_cast<double>(total - warmup);
  const double share = kind == ScheduleKind::linear ? 1 - done : 0.5 * (1 + portable_cos(3.141592653589793 * done));
  return min_rate + share * (rate - min_rate);
}

}  // namespace stw
