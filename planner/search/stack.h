// The exact choice of save-sets and tiles for a stack of segments and a number of bytes.
//
// While segment s runs backward, what the segments before it keep is alive, and its own peak on top. So a choice fits
// exactly where for every segment the sum of `kept` before it plus its `peak` is at most the limit. Blocks that are alike
// and follow each other may take their variants in any order; the best order is by decreasing (peak - kept): whoever needs
// much and leaves little goes first (exchange two neighbours: of max(p1, k1 + p2) and max(p2, k2 + p1) the first is not
// larger where p1 - k1 >= p2 - k2). So only how many blocks take a variant matters.
//
// Labels (blocks placed, bytes kept, time) are extended segment by segment and variant by variant. One that keeps and
// takes no less than another is dropped, and so is one that cannot beat the best known choice even if the rest is chosen
// by the linear relaxation (Lagrange's bound for the one constraint on all that is kept), and where a tolerance is given and
// runs are many by the tables of rest_times.h.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/search/segment_run.h"

namespace stw {

struct StackChoice {
  uint64_t picoseconds = 0;
  int64_t peak = 0;
  // For every run how many of its segments take which variant, in order.
  struct Part { int variant; int64_t count; };
  std::vector<std::vector<Part>> parts;
};

struct StackAnswer {
  std::optional<StackChoice> choice;
  uint64_t bound_picoseconds = UINT64_MAX;   // no choice that fits takes less; that of the choice where it is proven
  size_t labels = 0;                         // that were made for it: what it cost
};

// The choices of one stack for limits that are asked for one after the other: what an answer says of smaller limits is kept.
class StackChoices {
 public:
  // Runs are normalised, the last one has one segment. `most_labels`: beyond that many an answer may not be the best; its bound_picoseconds
  // then tells by how much. So it does of what is faster by no more than the share `tolerance`, and was not looked for because that takes long.
  explicit StackChoices(std::vector<SegmentRun> runs, double tolerance = 0, size_t most_labels = 1000000);

  // A fastest choice whose peak is at most `limit`, if it takes less than `to_beat`. Where later calls will ask for choices of a little more time, up
  // to `ahead` is looked for now, at the price of one search for all of them.
  StackAnswer fastest(int64_t limit, uint64_t to_beat = UINT64_MAX, uint64_t ahead = 0);
  const std::vector<SegmentRun>& runs() const { return runs_; }

 private:
  // What is known of a variant of the last run.
  struct LastAnswer {
    int64_t limit = INT64_MIN;            // within it, and so within less,
    uint64_t picoseconds = 0;             // no choice takes less,
    std::optional<StackChoice> choice;    // and this one takes that
  };
  StackAnswer fastest_of(size_t variant, int64_t limit, uint64_t to_beat, uint64_t ahead);

  std::vector<SegmentRun> runs_, one_;       // `one_`: with one variant of the last run
  double tolerance_;
  size_t most_labels_;
  std::vector<LastAnswer> last_answers_;
};

// The same for one limit.
StackAnswer choose(const std::vector<SegmentRun>& runs, int64_t limit, uint64_t to_beat = UINT64_MAX,
                   size_t most_labels = 1000000);

// No choice within the limit is faster: the linear relaxation.
uint64_t relaxed_picoseconds(const std::vector<SegmentRun>& runs, int64_t limit);

// The smallest peak of any choice; it takes no search.
int64_t least_peak(const std::vector<SegmentRun>& runs);

// The choice with that peak, of equal ones a fast one.
StackChoice smallest(const std::vector<SegmentRun>& runs);

}  // namespace stw
