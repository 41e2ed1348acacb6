// If no plan fits, lists changes to the request that would save memory, with their savings and costs.
#pragma once
#include <cstdint>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/search/search_space.h"

namespace stw {

// The fastest of the plans with the smallest arena. (smallest() does not consider time.)
Candidate fastest_of_smallest(SearchSpace& space);

// Tries each change alone. Changes that keep the trained bits come first; within each group, changes that
// cost less time come first. `space` holds the plans of the request, none of which fits in `arena_budget`
// bytes. `base` is fastest_of_smallest(space).
std::vector<Relaxation> relaxations(const GraphSource& source, const Request& request,
                                    const DeviceProfile& device, SearchSpace& space, const Candidate& base,
                                    uint64_t arena_budget);

}  // namespace stw
