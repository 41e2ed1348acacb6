// Finds weights that cannot be read, and weights in the place of other files.
#pragma once
#include <string>

#include "planner/base/result.h"

namespace stw {

// An error where a folder without safetensors has weights in another format, in a subfolder, or from an
// incomplete download. Without this check random weights would replace them. ok() where there is no sign of
// weights: training may start from scratch.
Status check_absent_weights(const std::string& folder);

// Errors: unsupported, corrupt if by its name a file has weights in another format than safetensors, or only
// a part of them.
Status check_weights_file(const std::string& path);
// Errors: those of check_weights_file; bad_argument if by its name a file has weights, not a model's config.
Status check_config_file(const std::string& path);

}  // namespace stw
