// Going on with a run: its numbers decide its bits, so they are taken from it and nothing else may be given.
#pragma once
#include "run/train.h"

namespace command {

// Whether the bits of a run depend on this option of `train`, so that a run goes on with the value that it has.
bool is_of_the_bits(std::string_view name);

// For a --resume: fills in batch, sequence, seed, precision, optimizer and state formats from the run in that folder. Throws
// where a flag asks for another batch, sequence, seed or cut into documents than the run has, or for other weights.
void keep_numbers_of_run(TrainFlags& flags);

// The same for a plan that comes from a file.
void check_plan_of_run(const TrainFlags& flags, const stw_plan_info& plan);

// That a plan, wherever it comes from, computes as the run does: before anything is allocated or written, what restoring would refuse.
void check_numerics_of_run(const TrainFlags& flags, const std::string& plan_json);

// The options that decide on learning rates and have other values than the run had, such as "--steps 40 (before: 20)". Of a run that begins none.
std::vector<std::string> changed_schedule(const TrainFlags& flags);
// That the run's own plan is as it was written: its fingerprint says so. One of another version is not looked at.
void check_fingerprint_of_run(const TrainFlags& flags, const Model& model, const std::string& plan_json);

}  // namespace command
