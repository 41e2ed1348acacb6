// Solves a stack whose last run has one variant, by labels. See stack.h.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/search/stack.h"

namespace stw {

using Parts = std::vector<StackChoice::Part>;

// Computes the time and the peak of a choice.
StackChoice measured(const std::vector<SegmentRun>& runs, std::vector<Parts> parts);

// The choice that keeps the fewest bytes within a limit. If there is none, next_peak is the smallest peak
// that exceeded the limit: with any smaller limit there is no choice either.
struct LeastKept {
  std::optional<StackChoice> choice;
  int64_t next_peak = INT64_MAX;
};
LeastKept least_kept(const std::vector<SegmentRun>& runs, int64_t limit);
// Only the peak of the choice of least_kept(). Quicker than least_kept().
struct LeastPeak {
  std::optional<int64_t> peak;
  int64_t next_peak = INT64_MAX;
};
LeastPeak peak_of_least_kept(const std::vector<SegmentRun>& runs, int64_t limit);

// `to_beat`: picoseconds of a known choice; only faster ones are wanted. `tolerance`: a choice that is faster
// by no more than this share of the time may be missed where finding it takes long. The bound then accounts
// for that.
StackAnswer solve(const std::vector<SegmentRun>& runs, int64_t limit, size_t most_labels, uint64_t to_beat,
                  double tolerance);

}  // namespace stw
