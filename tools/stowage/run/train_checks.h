// Checks of `stowage train` that go beyond single flags and the planner's own checks. Each throws a Failure.
#pragma once
#include <string>

#include "base/handles.h"
#include "run/train_run.h"
#include "run/training_run.h"

namespace command {

// --min-lr must be at most the rate from which it falls: --lr, or the default of the plan's optimizer if that
// is known.
void check_min_rate(const RunFlags& run, const std::string& optimizer = "");
// Warm-up and decay, given or by default, must fit into the steps.
void check_schedule(const RunSettings& run);
// The plan's optimizer and precision must have the settings that were given. `json` is the plan's text.
void check_settings(const TrainRun& run, const stw_plan_info& plan, const std::string& json);
// Evaluations of the model must have the --metric.
void check_metric(const TrainRun& run);
// For a run that resumes the one in this folder: the labels must have the same names. Checkpoints store only
// the number of labels. `data` is the name of the data.
void check_labels_of_run(const std::string& resume, const std::string& data, const Model& model);

// Check after the run: it must have applied at least one step.
void require_a_step(const stw_progress& before, const stw_progress& now, bool is_fp16);
// Check after the run: its model must not have diverged.
void require_finite(const TrainingRun& run, bool is_fp16);

}  // namespace command
