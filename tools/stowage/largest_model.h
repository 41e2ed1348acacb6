// The largest preset that `stowage plan` finds room for.
#pragma once
#include "flags.h"

namespace command {

// The preset with the most parameters that fits with otherwise these options. A sequence that was not asked for is cut to
// a preset's positions.
// `adapters`: of which its flags of new ones count.
void print_largest_model(const ModelFlags& adapters, stw_plan_options options, bool sequence_given, bool json);

}  // namespace command
