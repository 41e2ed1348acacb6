// What `stowage train` tells on standard output before and after its steps; messages.h and ProgressLine tell the rest.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/data.h"
#include "base/handles.h"
#include "run/run_folder.h"
#include "run/train.h"
#include "run/training_run.h"

namespace command {

// `apart`: the data to evaluate on, empty where that is a part of `data`. `json`: the plan's text.
void tell_beginning(const TrainFlags& flags, const Model& model, const OpenData& data, const OpenData& apart, const stw_plan_info& plan,
                    const std::string& json);
// What metrics say before the first step of examples that are left out; empty where there are none.
std::string left_out_line(const ExampleCounts& counts);
// For the table of the model card: what the run was.
std::vector<std::pair<std::string, std::string>> rows_of_card(const TrainFlags& flags, const Model& model, const OpenData& data, const OpenData& apart, const stw_plan_info& plan,
                                                              const std::string& json, const stw_progress& end);
// Bytes that the process has taken from `before` to `after` beside those of the plan; nothing where they are not known (0).
void tell_memory(uint64_t planned, uint64_t before, uint64_t after);
void tell_interrupted(const TrainFlags& flags, const stw_progress& now);
void tell_end(const RunFolder& out, const stw_progress& now, Learned learned);

}  // namespace command
