// Resuming a run. Its numbers determine the trained bits, so they are taken from the run and cannot be
// changed.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/handles.h"
#include "run/train_flags.h"

namespace command {

struct TrainRun;

// The options of `train` that have a rule for resumed runs in the table of resume.cpp. All others keep the
// run's value until the command line gives another one.
std::vector<std::string> options_with_resume_rule();
// Whether a run keeps the option. It does not keep options that belong to one command line, such as --out.
bool is_kept_by_run(std::string_view option);
// Whether the trained bits depend on the option. A resumed run keeps the value of such an option.
bool is_of_the_bits(std::string_view option);
// The options that affect the trained bits through the plan. `train --plan` excludes them, because the plan
// has its own values.
std::vector<std::string> options_of_numerics();

// The numbers of a run.
struct KeptNumbers {
  uint64_t seed;
  PlanFlags plan;  // the request, with batch, sequence, precision, optimizer and state formats of the run
};
// With --resume: the numbers of the run in that folder, else those of the flags. Throws a Failure if a flag
// asks for other weights, or for another batch, sequence, seed or division into documents than the run has.
KeptNumbers numbers_of_run(const TrainFlags& flags, const FoundData& found);

// The same check for a plan that comes from a file.
void check_plan_of_run(const TrainRun& run, const stw_plan_info& plan);

// Checks that the plan computes as the resumed run does. It refuses the same runs as restoring does, but
// before anything is allocated or written.
void check_numerics_of_run(const TrainRun& run, const std::string& plan_json);

// The options that affect the learning rate and differ from those of the run in this folder, such as
// "--steps 40 (before: 20)". `options` is the text for settings.json. Empty for a new run.
std::vector<std::string> changed_schedule(const std::string& resume, const std::string& options);
// Checks by its fingerprint that the run's plan is as it was written. Plans of other versions are not
// checked.
void check_fingerprint_of_run(const TrainRun& run, const std::string& plan_json);

}  // namespace command
