// If no plan fits, lists changes to the request that would help, with the figures of the plans that follow.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/search/search_space.h"

namespace stw {

// The fastest of the plans with the smallest arena. (smallest() does not consider time.)
Candidate fastest_of_smallest(SearchSpace& space);

// What search_alone() does besides finding a plan.
struct Wanted {
  // How minimum_bytes of a plan that fits is found. none: it is 0. rough: it may be a little too large.
  enum class Minimum : uint8_t { none, rough, exact } minimum = Minimum::exact;
  // Otherwise of all bytes only those of the arena, of the host and of the peak are set.
  bool programs = true;
  // If a plan fits, limits the request's host memory to what the plan takes, in whole MiB, and plans again.
  bool tight_host = false;
};
// The plan of search(), without its bound, relaxations and next_gib_picoseconds. `like`: a search space for
// the same batch and device; what it knows need not be computed again.
Result<Plan> search_alone(const GraphSource& source, const Request& request, const SearchSpace& like,
                          Wanted wanted);

struct Advice {
  std::vector<Relaxation> relaxations;  // at most eight
  std::string shortage;                 // Plan::shortage
};

// The relaxations that fit, the closest to the request first: those that keep the trained bits, cheaper
// number formats, adapters, shorter samples, and smaller models. A combination that contains one that fits is
// left out. If none fits, those that come closest. `space` holds the smallest plans of the request, none of
// which fits in `arena_budget` bytes.
Advice relaxations(const GraphSource& source, const Request& request, const Alternatives& alternatives,
                   SearchSpace& space, uint64_t arena_budget);

}  // namespace stw
