// A run of `stowage train`: TrainRun holds everything that is decided before the plan is made, PlannedRun
// the plan. Neither changes after it was made. The code that trains, evaluates, saves and reports reads only
// these structs.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/handles.h"
#include "data/data.h"
#include "flags/flags.h"
#include "run/train_flags.h"
#include "run/training_run.h"

namespace CLI {
class App;
}

namespace command {

struct TrainRun {
  // Folders and files.
  std::string resume;          // --resume, the folder of the run that continues; empty: a new run
  std::string out;             // the folder to write into: --out, else `resume`
  bool overwrite;              // --overwrite: replaces the run in `out`
  std::string plan_file;       // --plan; empty: a plan is made from `plan`
  std::string profile;         // --profile, the file for the timeline of a step; empty: none
  std::string options;         // for settings.json: the given options, with the token that ends examples
  std::string resume_command;  // the command line that continues this run
  // The model. A resumed run has the seed of its checkpoint. The labels and the task of a new head are those
  // of the data.
  ModelFlags model;
  Model opened;                     // `model`, opened by the library
  stw_model_info about;             // of `opened`
  std::vector<std::string> labels;  // of `opened`; empty: it has none
  // The data.
  DataFlags data;                             // --data, with the kind of its content
  std::vector<std::string> evaluation_files;  // --eval-data; empty: a part of `data` is held out
  std::string evaluation;                     // the name of these files, for messages
  Learned learned;                            // what steps learn, by the model's task and the data's kind
  // The request for a plan. `batch` is in samples, from --batch, else from --batch-examples. A resumed run
  // has its own batch, sequence and numerics. The kind of the data decides `examples`. It also decides
  // `preference` and `document_end` if they are not given.
  PlanFlags plan;
  std::optional<uint64_t> batch_examples;  // --batch-examples, in examples; unset: not given
  DeviceChoice device;                     // --device, or the default of this machine
  // The steps.
  uint64_t steps;                // --steps, in global batches; 0: `epochs` decides
  std::optional<double> epochs;  // --epochs: how often to go over the data; unset: `steps` decides
  RunFlags loop;                 // schedule, evaluations, checkpoints
  std::string schedule_change;   // options of the schedule that differ from the resumed run's; empty: none
  TrainerFlags trainer;          // optimizer and losses

  bool resumes() const { return !resume.empty(); }
  bool evaluates() const { return loop.evaluation_batches > 0; }
};

// Resolves the command line, and the folder of the run that it resumes. `line` is the parsed command line.
// Throws a Failure if something is missing, contradicts something else, or would change the bits of the
// resumed run. Writes nothing.
TrainRun resolve_run(const TrainFlags& flags, const CLI::App& line);

// The same for --show-examples, which needs less.
struct ShownExamples {
  uint64_t count;     // --show-examples
  DataFlags data;     // as in TrainRun
  ModelFlags model;   // as in TrainRun
  Model opened;       // `model`, opened by the library
  uint64_t sequence;  // tokens of a sample: of --plan, else --seq, else the resumed run's, else the default
  std::optional<uint32_t> document_end;  // the token that ends a document; unset: documents are not separated
};
ShownExamples resolve_shown(const TrainFlags& flags);

// The plan of a run.
struct PlannedRun {
  Plan plan;
  stw_plan_info info;  // of `plan`: batch, micro-batch, sequence, precision, bytes
  std::string json;    // the text of plan.json
  uint32_t threads;    // number of threads for which scratch memory was planned; 0: a device without threads
};
// Makes the plan, or reads that of --plan. Throws a Failure if it does not fit, is not one of the resumed
// run's plans, or lacks a setting that was given.
PlannedRun plan_run(const TrainRun& run);

// The data that a run trains on and evaluates on.
struct RunData {
  OpenData training;
  OpenData evaluation;  // --eval-data; empty: evaluations use the part that `training` holds out
  const OpenData& held_out() const { return evaluation.dataset ? evaluation : training; }
};
Tokenization tokenization_of(const DataFlags& data, const ModelFlags& model, const Model& opened);
RunData open_run_data(const TrainRun& run, const Tokenization& tokenization, const stw_plan_info& plan);

// The settings of the loop. Converts --epochs into a number of steps by the data and the plan. Throws a
// Failure if the schedule does not fit into the steps.
RunSettings loop_settings(const TrainRun& run, const PlannedRun& planned, const OpenData& training);

}  // namespace command
