// What the command says and checks of the optimizers. The library computes with defaults of its own (planner/graph/optimizer.cpp);
// tests/tools/optimizers_test.cpp holds these against them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace command {

struct OptimizerRow {
  const char* name;
  // Its defaults; nothing: a setting that is not for it. nesterov: 0 is off.
  std::optional<double> learning_rate, beta1, beta2, momentum, nesterov, weight_decay;
};
using OptimizerSetting = std::optional<double> OptimizerRow::*;

inline constexpr OptimizerRow optimizer_rows[] = {   // STW_OPTIMIZER_*, from 0
    {"adamw", 3e-4, 0.9, 0.95, {}, {}, 0.1},
    {"sgd", 1e-2, {}, {}, 0.9, 0, 0},
    {"lion", 1e-4, 0.9, 0.99, {}, {}, 0.1},
    {"muon", 3e-4, 0.9, 0.95, 0.95, {}, 0.1},
    {"adafactor", 1e-2, {}, {}, {}, {}, 0},
};

std::vector<std::string> optimizer_names();
// The library's number for "sgd", …; for nothing that of the default.
uint32_t optimizer_of(const std::string& name);
// Null: one that only a newer library knows, in a plan of its own.
const OptimizerRow* find_optimizer(std::string_view name);

// Whom a setting is for: "sgd, muon".
std::string takers_of(OptimizerSetting setting);
// What it is where it is not said: "adamw, muon 0.95; lion 0.99".
std::string defaults_of(OptimizerSetting setting);

}  // namespace command
