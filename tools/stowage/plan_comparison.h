// How two plans differ: `stowage plan --compare`.
#pragma once
#include <string>

namespace command {

// Two files that `stowage plan --json` wrote, side by side.
void compare_plans(const std::string& first, const std::string& second);

}  // namespace command
