// A trained model, ready for evaluation or generation. It is opened with a plan and a trainer as for
// training, because the library has no other way. By default it uses the smallest memory that works.
#pragma once
#include "base/handles.h"
#include "flags/flags.h"

namespace command {

struct Inference {
  Model model;
  Device device;
  Plan plan;
  Trainer trainer;
};

// Takes the batch, sequence and precision that were not given from plan.json in the model's folder, which
// `train` wrote. An evaluation then repeats that of the run.
void take_defaults_of_run(const ModelFlags& model, PlanFlags& flags);
// Warns if the run was trained on documents, but no token that ends a document is known.
void warn_of_documents(const ModelFlags& model, const PlanFlags& flags);

// `flags.batch` and `flags.sequence` must be set.
Inference open_inference(const ModelFlags& model, const PlanFlags& flags,
                         const PreferenceFlags& preference = {});

}  // namespace command
