// The largest preset that fits a budget: `stowage plan --max model`.
#pragma once
#include "flags/flags.h"

namespace command {

// Prints the preset with the most parameters that fits with these options. Without a given sequence, the
// default is limited to a preset's positions. Of `adapters`, only the flags about new adapters are used.
void print_largest_model(const ModelFlags& adapters, stw_plan_options options, bool sequence_given,
                         bool json);

}  // namespace command
