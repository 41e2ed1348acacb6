// Chooses save-sets and tiles for a stack of segments within a number of bytes. The choice is exact.
//
// While segment s runs its backward pass, the bytes that the segments before it keep are alive, in addition
// to its own peak. So a choice fits if, for every segment, the sum of `kept` before it plus its `peak` is at
// most the limit. Blocks that are equal and follow each other may take their variants in any order. The best
// order is by decreasing (peak - kept): a block with a high peak that keeps little goes first. (Exchange two
// neighbours: of max(p1, k1 + p2) and max(p2, k2 + p1) the first is not larger if p1 - k1 >= p2 - k2.) So it
// only matters how many blocks take each variant.
//
// Labels (blocks placed, bytes kept, time) are extended segment by segment and variant by variant. A label is
// dropped if another one keeps no more and takes no more time. It is also dropped if it cannot beat the best
// known choice even when the linear relaxation chooses the rest (Lagrange's bound for one constraint on the
// sum of `kept`). If there is a tolerance and there are many runs, the tables of remaining_times.h serve to
// drop labels, too.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/search/segment_run.h"

namespace stw {

struct StackChoice {
  uint64_t picoseconds = 0;
  int64_t peak = 0;
  // For every run, in order: how many of its segments take which variant.
  struct Part {
    int variant;
    int64_t count;
  };
  std::vector<std::vector<Part>> parts;
};

struct StackAnswer {
  std::optional<StackChoice> choice;
  // No choice that fits takes less time. Equals the time of `choice` if that is proven optimal.
  uint64_t bound_picoseconds = UINT64_MAX;
  size_t labels = 0;  // number of labels that were made, a measure of the work
};

// Answers for one stack and a series of limits. Keeps answers that also hold for smaller limits.
class StackChoices {
 public:
  // The runs must be normalised, and the last run must have one segment. After `most_labels` labels the
  // search stops, and its answer may not be the best. `tolerance`: where a search would take long, it may
  // miss a choice that is faster by at most this share. bound_picoseconds is a valid lower bound in both
  // cases.
  explicit StackChoices(std::vector<SegmentRun> runs, double tolerance = 0, size_t most_labels = 1000000);

  // A fastest choice whose peak is at most `limit`. Empty if none takes less time than `to_beat`. `ahead`:
  // later calls will ask for choices that take up to this much more time; one search then serves all of these
  // calls.
  StackAnswer fastest(int64_t limit, uint64_t to_beat = UINT64_MAX, uint64_t ahead = 0);
  const std::vector<SegmentRun>& runs() const { return runs_; }

 private:
  // The last answer for one variant of the last run: no choice within `limit`, and therefore none within a
  // smaller limit, takes less time than `picoseconds`. `choice` takes exactly that time, if it is set.
  struct LastAnswer {
    int64_t limit = INT64_MIN;
    uint64_t picoseconds = 0;
    std::optional<StackChoice> choice;
  };
  StackAnswer fastest_of(size_t variant, int64_t limit, uint64_t to_beat, uint64_t ahead);

  std::vector<SegmentRun> runs_, one_;  // `one_`: the same runs, but the last run has a single variant
  double tolerance_;
  size_t most_labels_;
  std::vector<LastAnswer> last_answers_;
};

// Answers for a single limit, without a tolerance.
StackAnswer choose(const std::vector<SegmentRun>& runs, int64_t limit, uint64_t to_beat = UINT64_MAX,
                   size_t most_labels = 1000000);

// A lower bound of the time of every choice within the limit, by the linear relaxation.
uint64_t relaxed_picoseconds(const std::vector<SegmentRun>& runs, int64_t limit);

// The smallest peak of any choice. It needs no search.
int64_t least_peak(const std::vector<SegmentRun>& runs);

// A fast choice with the smallest peak.
StackChoice smallest(const std::vector<SegmentRun>& runs);

}  // namespace stw
