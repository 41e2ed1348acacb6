#include "run/best.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "base/files.h"
#include "base/json_fields.h"
#include "base/lines.h"
#include "evaluation/entities.h"
#include "stowage.h"

namespace command {
namespace {

constexpr MetricRow metric_rows[] = {
    {"loss", false, false},   {"accuracy", true, false}, {"rmse", false, false},   {"f1", true, true},
    {"f1_macro", true, true}, {"f1_micro", true, true},  {"matthews", true, true}, {"precision", true, true},
    {"recall", true, true},   {"pearson", true, true},   {"spearman", true, true}, {"mse", false, true},
    {"mae", false, true},     {"exact", true, true},
};

}  // namespace

const MetricRow& metric_row(const std::string& name) {
  return *std::find_if(std::begin(metric_rows), std::end(metric_rows),
                       [&](const MetricRow& row) { return name == row.name; });
}

std::vector<std::string> metric_names() {
  std::vector<std::string> names;
  for (const MetricRow& row : metric_rows) names.emplace_back(row.name);
  return names;
}

std::vector<std::string> metrics_of_task(uint32_t task, std::span<const std::string> labels, bool has_pairs) {
  const bool has_entities = task == STW_TASK_TOKEN_LABEL && are_entity_tags(labels);
  std::vector<std::string> names{"loss"};
  const auto add = [&](std::initializer_list<const char*> more) {
    names.insert(names.end(), more.begin(), more.end());
  };
  if (task == STW_TASK_SPANS) add({"exact", "f1"});
  else if (task == STW_TASK_NUMBER) add({"rmse", "mse", "mae", "pearson", "spearman"});
  else if (has_pairs || task == STW_TASK_MASKED_LANGUAGE_MODEL || !labels.empty()) add({"accuracy"});
  if (has_entities) add({"f1", "precision", "recall"});
  else if (task == STW_TASK_LABEL || task == STW_TASK_TOKEN_LABEL) add({"f1_macro", "f1_micro", "matthews"});
  else if (task == STW_TASK_LABELS) add({"f1_macro", "f1_micro"});
  if (!has_entities && labels.size() == 2 && (task == STW_TASK_LABEL || task == STW_TASK_TOKEN_LABEL))
    add({"f1"});
  return names;
}

BestEvaluation best_evaluation(const std::string& metrics, const MetricRow& metric, uint64_t from) {
  const std::string field = std::string("eval_") + metric.name;
  BestEvaluation found;
  for_lines(metrics, [&](uint64_t, std::string_view line) {
    const auto step = json_integer(line, "", "step");
    if (!step || *step < from || line.find("\"eval_loss\"") == std::string_view::npos ||
        line.find("\"skip_reason\"") != std::string_view::npos)
      return true;
    const auto value = json_number(line, "", field);
    ++found.after;
    if (!value || !std::isfinite(*value)) return true;
    const double best = found.best ? found.best->value : 0;
    if (found.best && !(metric.is_more_better ? *value > best : *value < best)) return true;
    found.best = {*step, *value};
    found.after = 0;
    return true;
  });
  return found;
}

}  // namespace command
