#include "run/train_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/files.h"
#include "base/foreign_file.h"
#include "base/json_fields.h"
#include "base/messages.h"
#include "base/units.h"
#include "data/label_head.h"
#include "run/resume.h"
#include "run/run_folder.h"
#include "run/run_settings.h"
#include "run/train_checks.h"

namespace command {
namespace {

FoundData find_data(const TrainFlags& flags) {
  FoundData found{flags.data, flags.plan};
  find_examples(found.plan, found.data, flags.model);
  return found;
}

// Checks the flags that can be checked before any file of a run is read.
void check_flags(const TrainFlags& flags, const std::string& out) {
  if (!flags.steps && !flags.epochs)
    throw Failure(exit_usage, "--steps is required: the number of global batches to train on; or --epochs");
  if (out.empty()) throw Failure(exit_usage, "--out is required: the folder to write into");
  const bool compares = flags.run.keeps_best || flags.run.patience;
  if (compares && flags.run.evaluation_batches == 0)
    throw Failure(exit_usage,
                  fmt::format("{}: with --eval-batches 0 there are no evaluations; leave one of them out",
                              flags.run.keeps_best ? "--keep-best" : "--patience"));
  if (!compares && flags.run.metric != "loss")
    throw Failure(exit_usage,
                  fmt::format("--metric {}: is for --keep-best and --patience", flags.run.metric));
  if (flags.data.holds_out_tail && flags.run.evaluation_batches == 0)
    throw Failure(exit_usage,
                  "--eval-tail: with --eval-batches 0 nothing is held out; leave one of them out");
  check_min_rate(flags.run);
  if (flags.steps) check_schedule({flags.run, flags.steps});
}

ModelFlags model_of(const TrainFlags& flags, uint64_t seed, const DataFlags& data) {
  ModelFlags model = flags.model;
  model.seed = seed;
  take_labels(model, data);
  return model;
}

void require_trainable(const TrainFlags& flags, const stw_model_info& about) {
  if (about.adapter_rank == 0 && flags.resume.empty()) require_weights(flags.model, about);
  if (about.adapter_rank && !about.has_weights)
    throw Failure(exit_usage, fmt::format("--lora: {} has no weights, and adapters of random weights are "
                                          "useless; give --model a folder with weights",
                                          flags.model.source));
}

RunData open_files(const DataFlags& data, const std::vector<std::string>& evaluation_files, bool evaluates,
                   DataRequest request) {
  const bool has_files = evaluates && !evaluation_files.empty();
  request.evaluates = evaluates && !has_files;
  if (!request.evaluates) request.held_out = 0;
  RunData opened;
  opened.training = open_data(data, data.source, request);
  request.held_out = 1, request.evaluates = true, request.before = nullptr;
  if (has_files) opened.evaluation = open_data(data, DataSource(evaluation_files, reading_of(data)), request);
  return opened;
}

// The batch in samples. For --batch-examples, this is the number of samples that hold that many examples on
// average, rounded. A resumed run keeps its own batch.
std::optional<uint64_t> batch_of(const TrainFlags& flags, const DataFlags& data, const PlanFlags& plan,
                                 const ModelFlags& model, const Model& opened) {
  if (!flags.batch_examples || plan.batch) return plan.batch;
  if (!plan.examples)
    throw Failure(exit_usage, fmt::format("--batch-examples {}: is for files of examples, and --data {} is "
                                          "one text; give --batch, in samples",
                                          *flags.batch_examples, data.path));
  const Tokenization tokenization = tokenization_of(data, model, opened);
  const stw_model_info about = query(opened);
  const uint64_t sequence = sequence_of(model, about, plan);
  const RunData files =
      open_files(data, flags.evaluation_files, flags.run.evaluation_batches > 0,
                 {tokenization, model, opened, sequence, texts_of(about, plan, sequence), plan.document_end});
  return std::max<uint64_t>(1, static_cast<uint64_t>(std::llround(static_cast<double>(*flags.batch_examples) /
                                                                  examples_of_sample(files.training))));
}

Learned learned_by(const stw_model_info& about, const DataFlags& data) {
  return about.task == STW_TASK_TOKEN_LABEL ? Learned::words
         : about.task == STW_TASK_NUMBER    ? Learned::numbers
         : about.task == STW_TASK_SPANS     ? Learned::answers
         : about.labels > 0                 ? Learned::texts
         : data.masks                       ? Learned::masked_tokens
         : data.has_pairs                   ? Learned::pairs
                                            : Learned::tokens;
}

std::string command_to_continue(const TrainFlags& flags, const std::string& out) {
  return shell_word(flags.program) + " train --resume " + shell_word(RunFolder(out).path());
}

// Settings that a relaxation must keep, because this run would refuse others.
uint32_t kept_settings(const TrainRun& run) {
  const TrainerFlags& flags = run.trainer;
  uint32_t keep = 0;
  if (run.resumes()) keep |= STW_KEEP_NUMERICS;
  if (flags.outlier_limit > 0) keep |= STW_KEEP_CLIPPING;
  if (flags.loss_scale) keep |= STW_KEEP_PRECISION;
  if (flags.beta1 || flags.beta2 || flags.momentum || flags.nesterov) keep |= STW_KEEP_OPTIMIZER;
  if (!run.about.has_weights) keep |= STW_KEEP_ADAPTERS;
  return keep;
}

Plan make_plan(const TrainRun& run) {
  stw_plan_options options = plan_options(run.model, run.about, run.plan, run.device);
  options.keep |= kept_settings(run);
  PlanAnswer answer = create_plan(run.opened, run.model.source, options);
  for (const std::string& line : answer.advice) tell("{}\n", line);
  return require_plan(std::move(answer));
}

Plan read_plan(const TrainRun& run) {
  if (!run.device.profile.empty())
    throw Failure(exit_usage, fmt::format("--device {}: the plan has its own profile; leave one of them out",
                                          run.plan.device));
  Plan plan = load_plan(run.opened, run.plan_file);
  const stw_plan_info info = query(plan);
  if (!info.fits)
    throw Failure(
        exit_does_not_fit,
        fmt::format("{}: this plan does not fit in its budget of {}: the smallest budget that works is {}",
                    run.plan_file, human_bytes(info.budget), exact_bytes(info.minimum_bytes)));
  check_plan_of_run(run, info);
  return plan;
}

// The number of threads for which the plan has scratch memory.
uint32_t threads_of(const TrainRun& run, const std::string& plan_json) {
  if (run.plan.threads) return run.plan.threads;
  if (run.plan_file.empty()) return run.device.threads;
  return static_cast<uint32_t>(json_number(plan_json, "request", "threads").value_or(run.device.threads));
}

}  // namespace

TrainRun resolve_run(const TrainFlags& flags, const CLI::App& line) {
  const std::string& out = flags.out.empty() ? flags.resume : flags.out;
  FoundData found = find_data(flags);
  check_flags(flags, out);
  KeptNumbers kept = numbers_of_run(flags, found);
  const std::string options = options_json(line, found.plan.document_end);
  const std::string schedule_change =
      fmt::format("{}", fmt::join(changed_schedule(flags.resume, options), ", "));
  DeviceChoice device = choose_device(kept.plan.device);
  const ModelFlags model = model_of(flags, kept.seed, found.data);
  Model opened = open_model(model);
  check_labels_of_run(flags.resume, found.data.path, opened);
  const stw_model_info about = query(opened);
  require_trainable(flags, about);
  kept.plan.batch = batch_of(flags, found.data, kept.plan, model, opened);
  const Learned learned = learned_by(about, found.data);
  std::vector<std::string> labels = labels_of(opened);
  return {.resume = flags.resume,
          .out = out,
          .overwrite = flags.overwrite,
          .plan_file = flags.plan_file,
          .profile = flags.profile,
          .options = options,
          .resume_command = command_to_continue(flags, out),
          .model = model,
          .opened = std::move(opened),
          .about = about,
          .labels = std::move(labels),
          .data = std::move(found.data),
          .evaluation_files = flags.evaluation_files,
          .evaluation = name_of_files(flags.evaluation_files),
          .learned = learned,
          .plan = std::move(kept.plan),
          .batch_examples = flags.batch_examples,
          .device = std::move(device),
          .steps = flags.steps,
          .epochs = flags.epochs,
          .loop = flags.run,
          .schedule_change = schedule_change,
          .trainer = flags.trainer};
}

ShownExamples resolve_shown(const TrainFlags& flags) {
  FoundData found = find_data(flags);
  const KeptNumbers kept = numbers_of_run(flags, found);
  const ModelFlags model = model_of(flags, kept.seed, found.data);
  Model opened = open_model(model);
  check_labels_of_run(flags.resume, found.data.path, opened);
  const uint64_t sequence = flags.plan_file.empty() ? sequence_of(model, query(opened), kept.plan)
                                                    : query(load_plan(opened, flags.plan_file)).sequence;
  return {.count = flags.shown,
          .data = std::move(found.data),
          .model = model,
          .opened = std::move(opened),
          .sequence = sequence,
          .document_end = kept.plan.document_end};
}

PlannedRun plan_run(const TrainRun& run) {
  Plan plan = run.plan_file.empty() ? make_plan(run) : read_plan(run);
  const stw_plan_info info = query(plan);
  const std::string json = stw_plan_json(plan.get());
  check_numerics_of_run(run, json);
  check_fingerprint_of_run(run, json);
  check_settings(run, info, json);
  return {std::move(plan), info, json, threads_of(run, json)};
}

Tokenization tokenization_of(const DataFlags& data, const ModelFlags& model, const Model& opened) {
  return Tokenization::of_file(data.tokenizer, data.path, data.source.has_tokens(), run_of(model),
                               query(opened).vocabulary);
}

RunData open_run_data(const TrainRun& run, const Tokenization& tokenization, const stw_plan_info& plan) {
  const auto before = run.resumes() ? held_out_of_run(run.resume) : std::nullopt;
  DataRequest request{tokenization, run.model, run.opened, plan.sequence, plan.texts, run.plan.document_end};
  request.before = before ? &*before : nullptr;
  return open_files(run.data, run.evaluation_files, run.evaluates(), request);
}

RunSettings loop_settings(const TrainRun& run, const PlannedRun& planned, const OpenData& training) {
  if (!run.epochs) return {run.loop, run.steps};
  const auto samples = static_cast<double>(samples_of_epoch(training, planned.info.sequence));
  const RunSettings settings{
      run.loop, static_cast<uint64_t>(
                    std::ceil(*run.epochs * samples / static_cast<double>(planned.info.global_batch)))};
  check_schedule(settings);
  return settings;
}

}  // namespace command
