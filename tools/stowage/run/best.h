// Which evaluation of a run was the best one. It is told from the run's metrics, so that a run that goes on tells the same.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace command {

// A metric of evaluations, which lines of metrics.jsonl have as "eval_NAME".
struct MetricRow {
  const char* name;
  bool is_more_better;
  bool needs_answers;   // is told only where all that is held out is answered to
};
const MetricRow& metric_row(const std::string& name);   // must be one of them
std::vector<std::string> metric_names();

// Those that evaluations of a model have, of a task (STW_TASK_*) with these labels.
std::vector<std::string> metrics_of_task(uint32_t task, std::span<const std::string> labels, bool has_pairs);

struct BestEvaluation {
  struct Found { uint64_t step; double value; };
  std::optional<Found> best;   // the first one of those that no other one beats; a number that is not finite beats none
  uint64_t after = 0;          // evaluations with a target that came after it; without a best one, all of these
};
// `metrics`: the text of metrics.jsonl. `from`: earlier steps do not count.
BestEvaluation best_evaluation(const std::string& metrics, const MetricRow& metric, uint64_t from = 0);

}  // namespace command
