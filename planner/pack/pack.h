// Offset allocation ("dynamic storage allocation"): buffers with lifetimes get offsets so that those alive at the same
// time do not overlap, within a capacity or as low as possible.
//
// Greedy orders first; where they miss the bound, a search that either finds a placement, or proves that there is none,
// or reaches its node limit, and greedy orders that learn from each other. Deterministic: no clock, and the same answer on every machine.
#pragma once
#include <cstdint>
#include <vector>

namespace stw {

// Half-open lifetime [lower, upper) and size. An empty lifetime or a size of 0 takes no space.
struct Interval { int64_t lower, upper; uint64_t size; };

struct PackOptions {
  uint64_t capacity = 0;    // bytes to fit into; 0: as low as possible
  uint64_t node_limit = 0;  // decisions the search may make; 0: greedy orders only
  uint64_t enough = 0;      // without a capacity: greedy orders that get down to this end it. Above it, all is as without
};

enum class PackStatus {
  optimal,     // no placement is lower
  fits,        // within the capacity; without one: a placement that may not be the lowest
  infeasible,  // proven: no placement reaches the capacity
  unknown,     // none was found within the node limit, and none was ruled out
};

struct Packing {
  std::vector<uint64_t> offsets;  // as the intervals are numbered: of the lowest placement found, whatever the status
  uint64_t height = 0;            // its largest offset + size; at `size_limit` sizes saturated and the offsets are void
  uint64_t bound = 0;             // proven: no placement is lower
  uint64_t nodes = 0;
  PackStatus status = PackStatus::optimal;
};

Packing pack(const std::vector<Interval>& intervals, const PackOptions& options);

}  // namespace stw
