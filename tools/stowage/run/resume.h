// Resuming a run. Its numbers determine the trained bits, so they are taken from the run and cannot be
// changed.
#pragma once
#include "run/train.h"

namespace command {

// Whether the trained bits depend on this option of `train`. A resumed run keeps the value of such an option.
bool is_of_the_bits(std::string_view name);

// With --resume: takes batch, sequence, seed, precision, optimizer and state formats from the run in that
// folder. Throws a Failure if a flag asks for other weights, or for another batch, sequence, seed or division
// into documents than the run has.
void keep_numbers_of_run(TrainFlags& flags);

// The same check for a plan that comes from a file.
void check_plan_of_run(const TrainFlags& flags, const stw_plan_info& plan);

// Checks that the plan computes as the run does. It finds what restoring would refuse, before anything is
// allocated or written.
void check_numerics_of_run(const TrainFlags& flags, const std::string& plan_json);

// The options that affect the learning rate and differ from those of the resumed run, such as "--steps 40
// (before: 20)". Empty for a new run.
std::vector<std::string> changed_schedule(const TrainFlags& flags);
// Checks by its fingerprint that the run's plan is as it was written. Plans of other versions are not
// checked.
void check_fingerprint_of_run(const TrainFlags& flags, const Model& model, const std::string& plan_json);

}  // namespace command
