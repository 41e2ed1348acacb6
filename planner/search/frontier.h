// The Pareto frontier of speed against bytes: the plans that larger and smaller budgets would get.
#pragma once
#include <vector>

#include "planner/plan/plan.h"

namespace stw {

// A plan that no other plan beats in both time and bytes.
struct ParetoPoint {
  uint64_t peak_bytes = 0;  // arena and reserve: the smallest budget that gets this plan
  uint64_t step_picoseconds = 0;
  Decisions decisions;
  bool is_knee = false;  // beyond this point, more memory brings much less speed
};

// The plans for `budgets` budgets (at least two), from the smallest budget that works to the budget beyond
// which no plan is faster. They are sorted by peak, and each is faster than all plans before it. All have the
// numerics of `plan`, although with another budget search() might choose another format of the optimizer's
// states.
std::vector<ParetoPoint> frontier(const GraphSource& source, const Plan& plan, int budgets);

// Whether any plan fits. Errors: those of search().
Result<bool> anything_fits(const GraphSource& source, const Request& request);

}  // namespace stw
