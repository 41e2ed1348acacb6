#include "flags/optimizers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "stowage.h"

namespace command {

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const OptimizerRow& row : optimizer_rows) names.emplace_back(row.name);
  return names;
}

const OptimizerRow* find_optimizer(std::string_view name) {
  const auto found = std::find_if(std::begin(optimizer_rows), std::end(optimizer_rows),
                                  [&](const OptimizerRow& row) { return row.name == name; });
  return found == std::end(optimizer_rows) ? nullptr : found;
}

uint32_t optimizer_of(const std::string& name) {
  if (name.empty()) return STW_OPTIMIZER_ADAMW;
  const OptimizerRow* const row = find_optimizer(name);
  return static_cast<uint32_t>((row ? row : std::end(optimizer_rows)) - std::begin(optimizer_rows));
}

std::string optimizers_with(OptimizerSetting setting) {
  std::vector<std::string> names;
  for (const OptimizerRow& row : optimizer_rows)
    if (row.*setting) names.emplace_back(row.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string defaults_of(OptimizerSetting setting) {
  // each value and the names of the optimizers that have it
  std::vector<std::pair<double, std::string>> values;
  for (const OptimizerRow& row : optimizer_rows) {
    if (!(row.*setting)) continue;
    const auto same = std::find_if(values.begin(), values.end(),
                                   [&](const auto& value) { return value.first == *(row.*setting); });
    if (same == values.end()) values.emplace_back(*(row.*setting), row.name);
    else same->second += fmt::format(", {}", row.name);
  }
  std::vector<std::string> texts;
  for (const auto& [value, names] : values) texts.push_back(fmt::format("{} {:g}", names, value));
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace command
