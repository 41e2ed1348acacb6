// Further answers of `stowage plan`: what other budgets would get, how long sequences may be.
#pragma once
#include "flags.h"

namespace command {

// Tokens/s against memory as a table with bars; the knees are marked, and the plan's own line.
void print_frontier(const Plan& plan, bool json);

// The longest sequence that fits with otherwise these options.
void print_longest_sequence(const Model& model, const stw_plan_options& options, bool json);

}  // namespace command
