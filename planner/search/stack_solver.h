// Labels for a stack whose last run has one variant: what stack.h is made of.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/search/stack.h"

namespace stw {

using Parts = std::vector<StackChoice::Part>;

// Runs the segments through: their time and peak.
StackChoice measured(const std::vector<SegmentRun>& runs, std::vector<Parts> parts);

// The choice that keeps the least under a limit: every run's segments one variant after the other. Where there is none, the least of the
// peaks that were next_peak the limit: below it nothing changes.
struct LeastKept {
  std::optional<StackChoice> choice;
  int64_t next_peak = INT64_MAX;
};
LeastKept least_kept(const std::vector<SegmentRun>& runs, int64_t limit);

// `to_beat`: a choice is there that takes this long; only faster ones are wanted. `tolerance`: what is faster by no more than this share of the time
// need not be found where to find it takes long; the bound then tells of it.
StackAnswer solve(const std::vector<SegmentRun>& runs, int64_t limit, size_t most_labels, uint64_t to_beat, double tolerance);

}  // namespace stw
