// Finds the best evaluation of a run in its metrics. A resumed run therefore finds the same one.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace command {

// A metric of evaluations. Lines of metrics.jsonl call it "eval_NAME".
struct MetricRow {
  const char* name;
  bool is_more_better;
  bool needs_answers;  // known only if the whole held-out part was evaluated
};
const MetricRow& metric_row(const std::string& name);  // `name` must be one of metric_names()
std::vector<std::string> metric_names();

// The metrics that evaluations of a model have. `task` is its task (STW_TASK_*), `labels` are its labels.
std::vector<std::string> metrics_of_task(uint32_t task, std::span<const std::string> labels, bool has_pairs);

struct BestEvaluation {
  struct Found {
    uint64_t step;
    double value;
  };
  std::optional<Found> best;  // the earliest of equal ones; values that are not finite do not count
  // number of evaluations with a target since the best one; without a best one, all of them
  uint64_t after = 0;
};
// `metrics` is the text of metrics.jsonl. Steps before `from` do not count.
BestEvaluation best_evaluation(const std::string& metrics, const MetricRow& metric, uint64_t from = 0);

}  // namespace command
