// Segments that are alike and follow each other, and what each of them may choose.
#pragma once
#include <cstdint>
#include <vector>

#include "planner/segment_profile.h"

namespace stw {

// Consecutive segments that are alike, and what each of them may choose.
struct Stretch {
  int64_t count = 1;
  std::vector<Variant> variants;
  // Of them all, set by `normalise` and `sum_up`.
  int64_t least_on_top = 0, most_kept = 0;   // of (peak - kept), of kept
  std::vector<int> hull = {};                // lower convex hull of (kept, picoseconds), fewest bytes first
};

// Drops variants that another one beats in all three respects, puts the rest into the order of their use, sums them up.
void normalise(Stretch& run);
// Of many variants those that are worth most by some exchange of bytes for time: on a lower convex hull of time and bytes kept, at the peak,
// or both.
void thin(Stretch& run);
// Sums up variants as they are.
void sum_up(Stretch& run);

}  // namespace stw
