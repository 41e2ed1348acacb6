// Further answers of `stowage plan`: what other budgets would get, what would just fit, how two plans differ.
#pragma once
#include <string>
#include <vector>

#include "flags.h"

namespace command {

// Tokens/s against memory as a table with bars; the knees are marked, and the plan's own line.
void print_frontier(const Plan& plan, bool json);

// The longest sequence that fits with otherwise these options.
void print_longest_sequence(const Model& model, const stw_plan_options& options, bool json);

// The preset with the most parameters that fits with otherwise these options. A sequence that was not asked for is cut to
// a preset's positions.
// `adapters`: of which its flags of new ones count.
void print_largest_model(const ModelFlags& adapters, stw_plan_options options, bool sequence_given, bool json);

// Two files that `stowage plan --json` wrote, side by side.
void compare_plans(const std::string& first, const std::string& second);

}  // namespace command
