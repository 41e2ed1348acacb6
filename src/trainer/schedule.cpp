#include "src/trainer/schedule.h"

#include <algorithm>
#include <cmath>

#include "src/base/elementary.h"

namespace stw {

double Schedule::at(uint64_t step) const {
  if (step < warmup) return rate * static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (kind == ScheduleKind::constant) return rate;
  if (kind == ScheduleKind::inverse_root)
    return std::max(min_rate, rate * std::sqrt(static_cast<double>(std::max<uint64_t>(warmup, 1)) /
                                               static_cast<double>(step + 1)));
  if (step >= total) return min_rate;
  const uint64_t falls_from = kind == ScheduleKind::warmup_stable_decay ? total - decay : warmup;
  if (step <= falls_from) return rate;  // exactly `rate`, which the formula below may miss by rounding
  const double done = static_cast<double>(step - falls_from) / static_cast<double>(total - falls_from);
  const double share =
      kind == ScheduleKind::cosine ? 0.5 * (1 + portable_cos(3.141592653589793 * done)) : 1 - done;
  return min_rate + share * (rate - min_rate);
}

double scaled_rate(double rate, uint64_t base_batch, uint64_t batch) {
  return rate * std::sqrt(static_cast<double>(batch) / static_cast<double>(base_batch));
}

}  // namespace stw
