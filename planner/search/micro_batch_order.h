// Visits micro-batches in the order of lower bounds of their time, so that few of them need a search.
//
// A bound for a whole range of micro-batches (SegmentProfile::least_figures) costs as much as one for a
// single micro-batch. Most micro-batches of a large batch are in ranges whose bound already shows that they
// are too slow, or too large.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "planner/search/pricing.h"

namespace stw {

// Lower bounds of picoseconds. UINT64_MAX: nothing fits.
struct MicroBatchBounds {
  std::function<uint64_t(const MicroBatches&)> of_range;
  std::function<uint64_t(int64_t)> of_ops;   // of one micro-batch, computed fast
  std::function<uint64_t(int64_t)> relaxed;  // of one micro-batch, and closer
};

// Calls visit(micro-batch, bound) for the first `count` of these ascending micro-batches, least bound first;
// among equal bounds the largest micro-batch comes first. `visit` returns the limit from then on: the visit
// ends when no bound is below the limit. The ranges depend on `all` alone, so that their bounds can be kept.
void visit_micro_batches(const std::vector<int64_t>& all, size_t count, const MicroBatchBounds& bounds,
                         uint64_t limit, const std::function<uint64_t(int64_t, uint64_t)>& visit);

// The least bound of the first `count` micro-batches. UINT64_MAX if it is not below `limit`, or nothing fits.
uint64_t least_bound(const std::vector<int64_t>& all, size_t count, const MicroBatchBounds& bounds,
                     uint64_t limit = UINT64_MAX);

}  // namespace stw
