#include "planner/search/remaining_times.h"

namespace stw {

static constexpr size_t most_times = size_t{1} << 22;  // 32 MiB
static constexpr int64_t most_steps = 4096, least_steps = 512;

std::optional<RemainingTimes> RemainingTimes::make(const std::vector<SegmentRun>& runs, int64_t limit) {
  RemainingTimes result;
  size_t rows = 0;
  for (const SegmentRun& run : runs) {
    if (std::any_of(run.variants.begin(), run.variants.end(), [](const Variant& v) { return v.kept < 0; }))
      return std::nullopt;
    result.extents_.push_back({rows, run.variants.size(), run.count});
    rows += run.variants.size() * static_cast<size_t>(run.count);
  }
  const int64_t steps = std::min(most_steps, static_cast<int64_t>(most_times / std::max<size_t>(rows, 1)));
  if (steps < least_steps || limit <= 0) return std::nullopt;
  while (limit >> result.shift_ >= steps) ++result.shift_;
  result.steps_ = (limit >> result.shift_) + 1;
  result.times_.resize(rows * static_cast<size_t>(result.steps_));
  for (size_t i = runs.size(); i-- > 0;)
    for (size_t v = runs[i].variants.size(); v-- > 0;)
      for (int64_t placed = runs[i].count; placed-- > 0;)
        result.fill(runs[i].variants[v], limit, i, v, placed);
  return result;
}

size_t RemainingTimes::at(size_t run, size_t variant, int64_t placed) const {
  const Extent& e = extents_[run];
  return (e.first_row + variant * static_cast<size_t>(e.count) + static_cast<size_t>(placed)) *
         static_cast<size_t>(steps_);
}

RemainingTimes::Row RemainingTimes::row(size_t run, size_t variant, int64_t placed) const {
  if (placed == extents_[run].count) ++run, variant = 0, placed = 0;
  Row row;
  if (run == extents_.size()) row.constant_ = 0;
  else if (variant < extents_[run].variants)
    row.times_ = &times_[at(run, variant, placed)], row.last_ = steps_ - 1, row.shift_ = shift_;
  return row;
}

// Takes the lesser of two times: either no more segments take this variant, or one more does, if its peak
// fits. Numbers of bytes beyond the last step count as the last step.
void RemainingTimes::fill(const Variant& own, int64_t limit, size_t run, size_t variant, int64_t placed) {
  const Row without = row(run, variant + 1, placed), next = row(run, variant, placed + 1);
  uint64_t* const times = &times_[at(run, variant, placed)];
  if (without.times_ == nullptr) std::fill_n(times, steps_, never);
  else std::copy_n(without.times_, steps_, times);
  const int64_t further = own.kept >> shift_,
                fitting = own.peak > limit ? 0 : std::min(steps_, ((limit - own.peak) >> shift_) + 1);
  const int64_t inside = next.times_ == nullptr ? 0 : std::clamp<int64_t>(steps_ - further, 0, fitting);
  const auto take = [&](int64_t step, uint64_t rest) {
    times[step] = std::min(times[step], std::min(never, own.picoseconds + rest));
  };
  for (int64_t step = 0; step < inside; ++step) take(step, next.times_[step + further]);
  for (int64_t step = inside; step < fitting; ++step)
    take(step, next.times_ == nullptr ? next.constant_ : next.times_[steps_ - 1]);
}

}  // namespace stw
