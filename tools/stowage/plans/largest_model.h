// The largest preset that fits a budget: `stowage plan --max model`.
#pragma once
#include "flags/flags.h"

namespace command {

// Prints the preset with the most parameters that fits with these options. If no sequence is given, each
// preset gets the default sequence, or its number of positions if that is smaller. Of `adapters`, only the
// flags about new adapters are used.
void print_largest_model(const ModelFlags& adapters, stw_plan_options options, bool sequence_given,
                         bool json);

}  // namespace command
