// Finds signs of weights in a model's folder that has no readable weights.
#pragma once
#include <string>

#include "planner/base/result.h"

namespace stw {

// An error where a folder without safetensors has weights in another format, in a subfolder, or from an
// incomplete download. Without this check random weights would replace them. ok() where there is no sign of
// weights: training may start from scratch.
Status check_absent_weights(const std::string& folder);

}  // namespace stw
