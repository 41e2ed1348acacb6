// If no plan fits: the changes to the request that would save memory, with their savings and costs.
#pragma once
#include <cstdint>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/search/search_space.h"

namespace stw {

// The fastest plan with the smallest arena. (smallest() looks at bytes alone.)
Candidate fastest_of_smallest(SearchSpace& space);

// Tries each change alone. Changes that keep the bits come first, then cheaper ones before dearer ones.
// `space` holds the plans of the request, none of which fits in `arena_budget` bytes. `base` is
// fastest_of_smallest(space).
std::vector<Relaxation> relaxations(const GraphSource& source, const Request& request,
                                    const DeviceProfile& device, SearchSpace& space, const Candidate& base,
                                    uint64_t arena_budget);

}  // namespace stw
