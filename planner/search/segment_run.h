// Runs of equal segments.
#pragma once
#include <cstdint>
#include <vector>

#include "planner/search/segment_profile.h"

namespace stw {

// Equal segments that follow each other, and the variants that each of them may take.
struct SegmentRun {
  int64_t count = 1;
  std::vector<Variant> variants;
  // Figures over all variants. Set by `normalise` and `sum_up`.
  int64_t least_on_top = 0, most_kept = 0;  // the least (peak - kept) and the largest `kept` of all variants
  std::vector<int> hull = {};               // lower convex hull of (kept, picoseconds); fewest bytes first
};

// Drops variants that another variant equals or beats in kept, peak and time. Sorts the rest by decreasing
// (peak - kept), as stack.h needs them. Then calls sum_up.
void normalise(SegmentRun& run);
// Keeps the variants on a lower convex hull of time over kept, over peak, or over their sum: each is the best
// at some exchange rate of bytes for time. Also keeps the variant with the least (peak - kept).
void thin(SegmentRun& run);
// Sets the figures over all variants.
void sum_up(SegmentRun& run);

}  // namespace stw
