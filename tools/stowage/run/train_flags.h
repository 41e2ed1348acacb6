// The command line of `stowage train`. Only resolve_run() reads it (run/train_run.h).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "data/data.h"
#include "flags/flags.h"
#include "run/training_run.h"

namespace command {

// The flags of the optimizer and of the losses. Unset or 0: the library's defaults.
struct TrainerFlags {
  std::optional<float> beta1, beta2, momentum, weight_decay;
  bool nesterov = false;
  PreferenceFlags preference;
  float label_smoothing = 0, z_loss = 0, outlier_limit = 0;
  std::optional<double> loss_scale;
  std::string non_finite = "skip";
};

struct TrainFlags {
  ModelFlags model;
  PlanFlags plan;
  DataFlags data;
  RunFlags run;
  TrainerFlags trainer;
  uint64_t steps = 0;            // 0: not given
  std::optional<double> epochs;  // an alternative to steps
  std::string out, resume, plan_file;
  std::vector<std::string> evaluation_files;
  std::string profile;  // file for the timeline of a step; empty: none
  uint64_t shown = 0;   // number of examples to show instead of training
  // An alternative to plan.batch, in examples. A sample may hold several.
  std::optional<uint64_t> batch_examples;
  bool overwrite = false;
  bool seed_given = false;  // the seed was given and is not the default
  std::string program;      // how the command was called
};

// The files of --data and their kind, which decides some settings of the plan (find_examples).
struct FoundData {
  DataFlags data;
  PlanFlags plan;
};

}  // namespace command
