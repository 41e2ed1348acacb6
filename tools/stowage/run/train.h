// The settings of `stowage train`.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "data/data.h"
#include "flags/flags.h"
#include "run/training_run.h"

namespace command {

struct TrainFlags {
  ModelFlags model;
  PlanFlags plan;
  DataFlags data;
  RunSettings run;
  std::string out, resume, plan_file;
  std::vector<std::string> evaluation_files;  // only for evaluations; empty: the end of the data is held out
  std::string evaluation;                     // the name of these files
  std::string schedule = "cosine";
  std::optional<float> beta1, beta2, momentum, weight_decay;
  bool nesterov = false;
  PreferenceFlags preference;
  float label_smoothing = 0, z_loss = 0, outlier_limit = 0;
  std::optional<double> loss_scale, epochs;  // epochs: an alternative to run.steps
  std::string non_finite = "skip";
  std::string profile;  // file for the timeline of a step; empty: none
  uint64_t shown = 0;   // number of examples to show instead of training
  // an alternative to plan.batch, in examples; a sample holds several
  std::optional<uint64_t> batch_examples;
  bool overwrite = false;
  bool seed_given = false;  // the seed was given and is not the default
  std::string options;      // all given options, for settings.json: options_json
  std::string again;        // the command line that continues this run
};

// Throws a Failure if the run cannot begin or fails.
void train(TrainFlags flags);

}  // namespace command
