// Checks of `stowage train` that go beyond single flags and the planner's own checks. Each throws a Failure.
#pragma once
#include <span>
#include <string>

#include "base/handles.h"
#include "run/train.h"
#include "run/training_run.h"

namespace command {

// --min-lr must be at most the rate from which it falls: --lr, or the default of the plan's optimizer if that
// is known.
void check_min_rate(const RunSettings& run, const std::string& optimizer = "");
// Warm-up and decay, given or by default, must fit into the steps.
void check_schedule(const TrainFlags& flags);
// The plan's optimizer and precision must have the settings that were given. `json` is the plan's text.
// the model's task, STW_TASK_*
void check_settings(const TrainFlags& flags, const stw_plan_info& plan, const std::string& json,
                    uint32_t task);
// Evaluations of the model must have the --metric.
void check_metric(const TrainFlags& flags, uint32_t task, std::span<const std::string> labels);
// For a resumed run: the labels must have the same names. Checkpoints store only the number of labels.
void check_labels_of_run(const TrainFlags& flags, const Model& model);

// Checks after the run. The run must have applied at least one step,
void require_a_step(const stw_progress& before, const stw_progress& now, bool is_fp16);
// and its model must not have diverged.
void require_finite(const TrainingRun& run, bool is_fp16);

}  // namespace command
