// How two plans differ: `stowage plan --compare`.
#pragma once
#include <string>

namespace command {

// Prints the figures of two files that `stowage plan --json` wrote next to each other.
void compare_plans(const std::string& first, const std::string& second);

}  // namespace command
