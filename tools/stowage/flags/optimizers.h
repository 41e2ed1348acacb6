// The command's knowledge of the optimizers, for help texts and checks. The library has its own defaults
// (planner/graph/optimizer.cpp). tests/tools/flags/optimizers_test.cpp compares the two.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace command {

struct OptimizerRow {
  const char* name;
  // Defaults. Unset: the optimizer has no such setting. nesterov: 0 is off.
  std::optional<double> learning_rate, beta1, beta2, momentum, nesterov, weight_decay;
};
using OptimizerSetting = std::optional<double> OptimizerRow::*;

inline constexpr OptimizerRow optimizer_rows[] = {
    // by STW_OPTIMIZER_*, from 0
    {"adamw", 3e-4, 0.9, 0.95, {}, {}, 0.1}, {"sgd", 1e-2, {}, {}, 0.9, 0, 0},
    {"lion", 1e-4, 0.9, 0.99, {}, {}, 0.1},  {"muon", 3e-4, 0.9, 0.95, 0.95, {}, 0.1},
    {"adafactor", 1e-2, {}, {}, {}, {}, 0},
};

std::vector<std::string> optimizer_names();
// The library's number for "sgd", …; that of the default for an empty name.
uint32_t optimizer_of(const std::string& name);
// Null if the name is unknown, as in a plan of a newer library.
const OptimizerRow* find_optimizer(std::string_view name);

// The optimizers that have the setting: "sgd, muon".
std::string optimizers_with(OptimizerSetting setting);
// The defaults of the setting: "adamw, muon 0.95; lion 0.99".
std::string defaults_of(OptimizerSetting setting);

}  // namespace command
