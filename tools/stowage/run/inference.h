// A trained model ready to be evaluated or to generate: opened through the same plan and trainer as training, because
// that is what the library offers, in the smallest memory unless told otherwise.
#pragma once
#include "flags/flags.h"
#include "base/handles.h"

namespace command {

struct Inference {
  Model model;
  Device device;
  Plan plan;
  Trainer trainer;
};

// Fills in from the plan.json that `train` left in the model's folder what was not said of batch, sequence and
// precision, so that an evaluation repeats the one of the run.
void take_defaults_of_run(const ModelFlags& model, PlanFlags& flags);
// Warns where the run was trained on documents, but nothing says which token ends them.
void warn_of_documents(const ModelFlags& model, const PlanFlags& flags);

// `flags.batch` and `flags.sequence` must be set.
Inference open_inference(const ModelFlags& model, const PlanFlags& flags, const PreferenceFlags& preference = {});

}  // namespace command
