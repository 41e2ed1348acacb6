// What more or less memory would bring: the frontier of speed against bytes, and what would just fit.
#pragma once
#include <vector>

#include "planner/plan/plan.h"

namespace stw {

// A plan that some budget gets.
struct ParetoPoint {
  uint64_t peak_bytes = 0;         // arena and reserve: the smallest budget that gets it
  uint64_t step_picoseconds = 0;
  Decisions decisions;
  bool is_knee = false;            // where more memory begins to bring much less
};

// From the smallest budget that works to the one beyond which nothing is gained, the answers to `budgets` budgets (two
// at least), by growing peak, each faster than all before it. Numerics as in the plan, not the state format that another
// budget might choose.
std::vector<ParetoPoint> frontier(const GraphSource& source, const Plan& plan, int budgets);

// Does anything fit? Errors: those of search().
Result<bool> anything_fits(const GraphSource& source, const Request& request);

}  // namespace stw
