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
// by the linear relaxation (Lagrange's bound for the one constraint on all that is kept).
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/stretch.h"

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

// A fastest choice whose peak is at most `limit`. Stretches are normalised. Of choices that take at least `known` nothing is
// said. `most_labels`: beyond that many the answer may not be the best; bound_picoseconds then tells by how much.
StackAnswer choose(const std::vector<Stretch>& runs, int64_t limit, uint64_t known = UINT64_MAX,
                   size_t most_labels = 1000000);

// No choice within the limit is faster: the linear relaxation.
uint64_t relaxed_picoseconds(const std::vector<Stretch>& runs, int64_t limit);

// The smallest peak of any choice; it takes no search.
int64_t least_peak(const std::vector<Stretch>& runs);

// The choice with that peak, of equal ones a fast one.
StackChoice smallest(const std::vector<Stretch>& runs);

}  // namespace stw
