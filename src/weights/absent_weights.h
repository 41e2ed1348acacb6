// A model's folder without weights that are read here, and what lies there in their place.
#pragma once
#include <string>

#include "planner/base/result.h"

namespace stw {

// An error where a folder without safetensors has the weights in another format, in a folder of its own, or not to their end: random
// ones would take their place. ok() where there is no sign of weights: a folder to begin from.
Status check_absent_weights(const std::string& folder);

}  // namespace stw
