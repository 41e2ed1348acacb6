// What can be wrong with a run of `stowage train`, beside what single flags and the planner refuse: each throws a Failure.
#pragma once
#include <span>
#include <string>

#include "base/handles.h"
#include "run/train.h"
#include "run/training_run.h"

namespace command {

// That --min-lr is at most the rate that it falls from: --lr, or the default of the plan's optimizer, if that is known.
void check_min_rate(const RunSettings& run, const std::string& optimizer = "");
// That warm-up and decay, said or by default, fit into the steps.
void check_schedule(const TrainFlags& flags);
// That the optimizer and the precision of the plan, wherever they come from, know what was set for them. `json`: the plan's text.
void check_settings(const TrainFlags& flags, const stw_plan_info& plan, const std::string& json, uint32_t task);   // STW_TASK_*, the model's
// That evaluations of the model have the --metric.
void check_metric(const TrainFlags& flags, uint32_t task, std::span<const std::string> labels);
// Of a run that goes on: checkpoints know how many labels there are, but not what they are called.
void check_labels_of_run(const TrainFlags& flags, const Model& model);

// After the run. One that changed nothing did not do what it was asked for, though nothing broke;
void require_a_step(const stw_progress& before, const stw_progress& now, bool is_fp16);
// nor did one whose model says nothing any more.
void require_finite(const TrainingRun& run, bool is_fp16);

}  // namespace command
