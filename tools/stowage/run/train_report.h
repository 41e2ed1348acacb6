// The output of `stowage train` on standard output before and after its steps. messages.h and ProgressLine
// write the rest.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/handles.h"
#include "data/data.h"
#include "run/run_folder.h"
#include "run/train_run.h"
#include "run/training_run.h"

namespace command {

void tell_beginning(const TrainRun& run, const RunSettings& settings, const PlannedRun& planned,
                    const RunData& data);
// The line of metrics, before the first step, about examples that are left out. Empty if there are none.
std::string left_out_line(const ExampleCounts& counts);
// The rows about the run for the table of the model card.
std::vector<std::pair<std::string, std::string>> rows_of_card(const TrainRun& run, const PlannedRun& planned,
                                                              const RunData& data, const stw_progress& end);
// Compares the bytes that the process took between `before` and `after` with those of the plan. Reports
// nothing if they are unknown (0).
void tell_memory(uint64_t planned, uint64_t before, uint64_t after);
// `steps` is the number of steps of the whole run.
void tell_interrupted(const TrainRun& run, uint64_t steps, const stw_progress& now);
void tell_end(const RunFolder& out, const stw_progress& now, Learned learned);

}  // namespace command
