// What could be given up where no plan fits, and what each of it would bring and cost.
#pragma once
#include <cstdint>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/search/search_space.h"

namespace stw {

// The fastest of the plans with the smallest arena: smallest() asks for bytes alone.
Candidate fastest_of_smallest(SearchSpace& space);

// Each tried by itself; those that keep the bits first, then by cost. `space` holds the plans of the request, of which none fits in
// `arena_budget` bytes; `base` is the fastest of its smallest ones.
std::vector<Relaxation> relaxations(const GraphSource& source, const Request& request, const DeviceProfile& device, SearchSpace& space,
                                    const Candidate& base, uint64_t arena_budget);

}  // namespace stw
