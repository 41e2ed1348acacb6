// Learning rates over the steps of a run.
#pragma once
#include <cstdint>

namespace stw {

enum class ScheduleKind : uint8_t { cosine, linear, constant, warmup_stable_decay, inverse_root };

// `step` is the number of successful updates so far. The rate first rises linearly from rate / warmup to
// rate. After this warm-up it depends on the kind:
//   cosine, linear        down to min_rate at step `total`
//   constant              rate
//   warmup_stable_decay   rate; in the last `decay` steps before `total` linearly down to min_rate
//   inverse_root          rate · sqrt(w / (step + 1)) with w = max(warmup, 1), but not below min_rate
struct Schedule {
  ScheduleKind kind = ScheduleKind::cosine;
  double rate = 3e-4, min_rate = 3e-5;
  uint64_t warmup = 0, total = 0, decay = 0;

  double at(uint64_t step) const;
};

// Scales the rate by the square root of the batch size. n times as many samples have 1/sqrt(n) of the
// gradient noise, and this rule keeps the noise of AdamW's updates the same (Malladi et al. 2022,
// arXiv:2205.10287).
double scaled_rate(double rate, uint64_t base_batch, uint64_t batch);

}  // namespace stw
