// A lower bound of the time of the segments of a stack (stack.h) that are not placed yet, as a function of
// the bytes that the placed segments keep.
//
// The linear relaxation has one constraint, on the sum of the bytes kept. If blocks differ, the peaks of late
// segments are constraints too, and the relaxation is some percent below the time of the best choice. The
// bound here respects the peak of every segment. It is computed for a few thousand numbers of bytes kept; a
// number in between is rounded down. If fewer bytes are kept, the remaining segments never take more time, so
// the result is still a lower bound.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/contract/sizes.h"
#include "planner/search/segment_run.h"

namespace stw {

class RemainingTimes {
 public:
  static constexpr uint64_t never = size_limit;  // picoseconds of segments that do not fit

  // Empty if the stack has so many segments and variants that the rounding would be coarse, or if a variant
  // keeps a negative number of bytes.
  static std::optional<RemainingTimes> make(const std::vector<SegmentRun>& runs, int64_t limit);

  // The bounds of one state, by bytes kept.
  class Row {
   public:
    // Picoseconds; no choice takes less.
    uint64_t operator()(int64_t kept) const {
      return times_ == nullptr ? constant_ : times_[std::min(kept >> shift_, last_)];
    }

   private:
    friend class RemainingTimes;
    const uint64_t* times_ = nullptr;
    uint64_t constant_ = never;
    int64_t last_ = 0;
    int shift_ = 0;
  };
  // The bound for the segments of a run after the first `placed`, each of which takes `variant` or a later
  // one, and for all runs after it.
  Row row(size_t run, size_t variant, int64_t placed) const;

 private:
  // The rows of a run: the index of the first one, and the run's numbers of variants and of segments.
  struct Extent {
    size_t first_row, variants;
    int64_t count;
  };
  RemainingTimes() = default;
  size_t at(size_t run, size_t variant, int64_t placed) const;
  void fill(const Variant& own, int64_t limit, size_t run, size_t variant, int64_t placed);

  int shift_ = 0;
  int64_t steps_ = 0;
  std::vector<Extent> extents_;
  std::vector<uint64_t> times_;
};

}  // namespace stw
