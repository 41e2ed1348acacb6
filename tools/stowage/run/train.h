// What `stowage train` is told, apart from how it is carried out.
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
  std::vector<std::string> evaluation_files;   // for evaluations alone; none: the end of the data
  std::string evaluation;                      // their name
  std::string schedule = "cosine";
  std::optional<float> beta1, beta2, momentum, weight_decay;
  bool nesterov = false;
  PreferenceFlags preference;
  float label_smoothing = 0, z_loss = 0, outlier_limit = 0;
  std::optional<double> loss_scale, epochs;   // epochs: instead of run.steps
  std::string non_finite = "skip";
  std::string profile;   // the file of a step's timeline; empty: none
  uint64_t shown = 0;    // examples to show instead of a run
  std::optional<uint64_t> batch_examples;   // instead of plan.batch: in examples, of which a sample holds several
  bool overwrite = false;
  bool seed_given = false;  // rather than the default
  std::string options;   // all that was given, for the folder: options_json
  std::string again;     // the command line that continues this run
};

// Throws a Failure where the run cannot begin or fails.
void train(TrainFlags flags);

}  // namespace command
