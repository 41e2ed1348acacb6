// Segments that are alike and follow each other, and what each of them may choose.
#pragma once
#include <cstdint>
#include <vector>

#include "planner/search/segment_profile.h"

namespace stw {

// Consecutive segments that are alike, and what each of them may choose.
struct SegmentRun {
  int64_t count = 1;
  std::vector<Variant> variants;
  // Figures of all variants, set by `normalise` and `sum_up`.
  int64_t least_on_top = 0, most_kept = 0;   // the least (peak - kept), the most kept
  std::vector<int> hull = {};                // lower convex hull of (kept, picoseconds), fewest bytes first
};

// Drops variants that another one equals or beats in kept, peak and time; puts the rest into the order in which stack.h takes
// them, by falling (peak - kept); sums them up.
void normalise(SegmentRun& run);
// Keeps the variants that are best at some exchange of bytes for time: those on a lower convex hull of time over kept, over peak,
// or over the sum of both. The variant with the least (peak - kept) stays, too.
void thin(SegmentRun& run);
// Sets the run's figures, and leaves the variants as they are.
void sum_up(SegmentRun& run);

}  // namespace stw
