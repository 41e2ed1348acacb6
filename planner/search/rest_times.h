// A bound of the time that what is not placed yet of a stack (stack.h) takes, by what the segments before it keep.
//
// The linear relaxation knows one constraint, on all that is kept. Where blocks differ, the peaks of late segments bind too, and it stays
// percents below what can be had. Here every segment's peak counts, and bytes kept are rounded down to one of some thousand steps: fewer of
// them never take more time, so that this is a bound still, and a close one.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/base/sizes.h"
#include "planner/search/segment_run.h"

namespace stw {

class RestTimes {
 public:
  static constexpr uint64_t never = size_limit;   // picoseconds of what does not fit

  // Nothing for stacks of so many segments and variants that steps would be coarse, or where something keeps less than nothing.
  static std::optional<RestTimes> make(const std::vector<SegmentRun>& runs, int64_t limit);

  // By bytes kept.
  class Row {
   public:
    // Picoseconds that no choice undercuts.
    uint64_t operator()(int64_t kept) const { return times_ == nullptr ? constant_ : times_[std::min(kept >> shift_, last_)]; }

   private:
    friend class RestTimes;
    const uint64_t* times_ = nullptr;
    uint64_t constant_ = never;
    int64_t last_ = 0;
    int shift_ = 0;
  };
  // Of a run's segments behind the first `placed`, of which each takes `variant` or a later one, and of all runs behind it.
  Row row(size_t run, size_t variant, int64_t placed) const;

 private:
  struct Extent { size_t first_row, variants; int64_t count; };   // of a run
  RestTimes() = default;
  size_t at(size_t run, size_t variant, int64_t placed) const;
  void fill(const Variant& own, int64_t limit, size_t run, size_t variant, int64_t placed);

  int shift_ = 0;
  int64_t steps_ = 0;
  std::vector<Extent> extents_;
  std::vector<uint64_t> times_;
};

}  // namespace stw
