// Offset allocation ("dynamic storage allocation"): gives offsets to buffers with lifetimes, so that buffers
// that are alive at the same time do not overlap. The height is within a capacity, or as low as possible.
//
// Greedy orders come first. If they miss the bound, three methods follow: rounds of passes from the bottom up
// that learn from earlier ones (rounds.h), greedy orders that learn (greedy.h), and a search that finds a
// placement, proves that there is none, or reaches its node limit (search.h). More than 4,096 buffers are
// packed in rounds only. No limit is a time, so the answer is the same on every machine.
#pragma once
#include <cstdint>
#include <vector>

namespace stw {

// Half-open lifetime [lower, upper), and size in bytes. An interval with an empty lifetime or size 0 takes no
// space.
struct Interval {
  int64_t lower, upper;
  uint64_t size;
};

struct PackOptions {
  uint64_t capacity = 0;  // bytes to fit into; 0: as low as possible
  // Decisions that the search may make, and pairs of placements in rounds. 0: greedy orders only.
  uint64_t node_limit = 0;
  // Without a capacity: the packing ends at once if a greedy order or a round reaches at most this height.
  uint64_t enough = 0;
};

enum class PackStatus {
  optimal,     // no placement is lower
  fits,        // within the capacity; without a capacity: maybe not the lowest
  infeasible,  // proven: no placement fits the capacity
  unknown,     // the node limit was reached: no placement was found, and none was ruled out
};

struct Packing {
  // Offsets of the lowest placement found, whatever the status; in the order of the intervals.
  std::vector<uint64_t> offsets;
  // Largest offset + size. If it is `size_limit`, sizes saturated and offsets are not valid.
  uint64_t height = 0;
  uint64_t bound = 0;  // proven: no placement is lower
  uint64_t nodes = 0;
  PackStatus status = PackStatus::optimal;
};

Packing pack(const std::vector<Interval>& intervals, const PackOptions& options);

// An upper bound of the height of pack() without a capacity, whatever its other options. Much quicker.
uint64_t height_by_begin(const std::vector<Interval>& intervals);

}  // namespace stw
