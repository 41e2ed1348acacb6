// Further answers of `stowage plan`: the plans of other budgets, and the longest sequence.
#pragma once
#include "flags/flags.h"

namespace command {

// Prints tokens/s against memory as a table with bars. Marks the knees and the line of the plan itself.
void print_frontier(const Plan& plan, bool json);

// Prints the longest sequence that fits with these options.
void print_longest_sequence(const Model& model, stw_plan_options options, bool json);

}  // namespace command
