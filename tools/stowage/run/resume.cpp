#include "run/resume.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json_fields.h"
#include "base/json_reader.h"
#include "base/json_value.h"
#include "base/kept_options.h"
#include "run/checkpoint_header.h"
#include "run/run_folder.h"
#include "run/train_run.h"

namespace command {
namespace {

// A command line with --resume, and the run that it resumes.
struct Resumption {
  const TrainFlags& flags;
  const FoundData& found;
  std::optional<std::string> header;  // of the checkpoint; empty: restoring reports the error

  const std::string& folder() const { return flags.resume; }
  // A plan file is checked after it has been read.
  bool has_plan_file() const { return !flags.plan_file.empty(); }
  std::optional<std::string> text(const char* field) const {
    return header ? json_string(*header, "identity", field) : std::nullopt;
  }
};

[[noreturn]] void refuse(const std::string& folder, const std::string& what, uint64_t of_run,
                         uint64_t given) {
  throw Failure(exit_failed,
                fmt::format("{}: the run in {} has {}, found {}; another value would change the trained bits",
                            what, folder, of_run, given));
}

[[noreturn]] void refuse_flag(const std::string& folder, const char* flag, bool run_has_it) {
  throw Failure(
      exit_failed,
      fmt::format("{}: the run in {} was trained {} it; changing this would change the trained bits", flag,
                  folder, run_has_it ? "with" : "without"));
}

std::optional<uint64_t> number_of_run(const std::string& folder, const char* field) {
  const auto plan = read_text_if_there(RunFolder(folder).plan());
  return plan ? json_integer(*plan, "request", field) : std::nullopt;
}

// When this is called, the flags that the user did not give have the values of the run.
void check_weights(const Resumption& run) {
  const std::string& given = run.flags.model.weights;
  const std::string of_run = setting_of_run(run.folder(), "weights").value_or("");
  if (!given.empty() && given != of_run && !is_same(given, of_run))
    throw Failure(
        exit_usage,
        fmt::format(
            "--weights: --resume {} continues with the weights of its checkpoint; leave one of them out",
            run.folder()));
}

// The held-out part depends on --eval-data: with a file for evaluations, the run trains on all of its data.
bool has_evaluation_files(const Resumption& run) {
  return setting_of_run(run.folder(), "eval-data").has_value();
}

void check_evaluation_files(const Resumption& run) {
  const bool of_run = has_evaluation_files(run);
  if (of_run == run.flags.evaluation_files.empty()) refuse_flag(run.folder(), "--eval-data", of_run);
}

void check_held_out(const Resumption& run) {
  if (has_evaluation_files(run)) return;
  const auto batches = setting_of_run(run.folder(), "eval-batches");
  const bool run_held_out = !batches || batches->find_first_not_of('0') != std::string::npos;
  if (run_held_out != (run.flags.run.evaluation_batches > 0))
    throw Failure(
        exit_failed,
        fmt::format("--eval-batches {}: the run in {} {}; a change of that would change the trained bits",
                    run.flags.run.evaluation_batches, run.folder(),
                    run_held_out ? "holds a tenth of its data out, and with 0 it would train on it too; "
                                   "--eval-every 0 evaluates only after the last batch"
                                 : "was trained on all of its data"));
}

void check_tail(const Resumption& run) {
  if (has_evaluation_files(run)) return;
  const bool given = run.flags.data.holds_out_tail;
  if (run_has_option(run.folder(), "eval-tail") != given) refuse_flag(run.folder(), "--eval-tail", !given);
}

// A model without --dropout has the rates of its config, which a checkpoint identifies by a hash.
void check_dropout(const Resumption& run) {
  const auto of_run = setting_of_run(run.folder(), "dropout");
  const std::optional<float>& given = run.flags.model.dropout;
  if (of_run && given && std::stof(*of_run) != *given)
    throw Failure(
        exit_failed,
        fmt::format("--dropout: the run in {} has {}, found {}; another value would change the trained bits",
                    run.folder(), *of_run, *given));
}

// The checkpoint identifies the model and its task, but not which tokens are hidden.
void check_task(const Resumption& run) {
  const auto of_run = setting_of_run(run.folder(), "task");
  if (of_run && *of_run != run.flags.model.task)
    throw Failure(exit_failed, fmt::format("--task: the run in {} has {}, found {}", run.folder(), *of_run,
                                           run.flags.model.task));
}

void check_masks(const Resumption& run) {
  if (run.found.data.masks) check_masks_of_run(run.found.data.mask, run.folder());
}

// The resumed run keeps the batch in samples that it made of this option, whatever the data is now.
void check_batch_of_examples(const Resumption& run) {
  const auto of_run = setting_of_run(run.folder(), "batch-examples");
  const std::optional<uint64_t>& given = run.flags.batch_examples;
  if (given && fmt::format("{}", *given) != of_run.value_or(""))
    throw Failure(
        exit_failed,
        fmt::format(
            "--batch-examples: the run in {} has {}, found {}; another value would change the trained bits",
            run.folder(), of_run.value_or("none"), *given));
}

void check_number(const Resumption& run, const char* flag, const char* field,
                  const std::optional<uint64_t>& given) {
  if (run.has_plan_file()) return;
  const auto of_run = number_of_run(run.folder(), field);
  if (of_run && given && *given != *of_run) refuse(run.folder(), flag, *of_run, *given);
}

void check_batch(const Resumption& run) {
  check_number(run, "--batch", "global_batch", run.found.plan.batch);
}

void check_sequence_of_run(const Resumption& run) {
  check_number(run, "--seq", "sequence", run.found.plan.sequence);
}

// `data` is the name of the data, for messages.
void check_documents(const std::string& folder, const std::string& data, const PlanFlags& given) {
  if (is_there(RunFolder(folder).labels()) && !given.examples)
    throw Failure(exit_failed, fmt::format("--data {}: the run in {} is of a classifier: expected a .csv or "
                                           ".jsonl file of texts with labels, or a .conll file",
                                           data, folder));
  const auto plan = read_text_if_there(RunFolder(folder).plan());
  if (plan && has_documents(*plan) != given.keeps_documents())
    refuse_flag(folder, "--document-end", has_documents(*plan));
  if (const auto end = setting_of_run(folder, "document-end"); end && given.document_end)
    if (const std::string found = fmt::format("{}", *given.document_end); found != *end)
      throw Failure(
          exit_failed,
          fmt::format(
              "--document-end: the run in {} has {}, found {}; another value would change the trained bits",
              folder, *end, found));
}

void check_document_end(const Resumption& run) {
  if (!run.has_plan_file()) check_documents(run.folder(), run.found.data.path, run.found.plan);
}

std::optional<uint64_t> seed_of_run(const Resumption& run) {
  return run.header ? json_integer(*run.header, "", "seed") : std::nullopt;
}

void check_seed(const Resumption& run) {
  const auto of_run = seed_of_run(run);
  if (run.flags.seed_given && of_run && *of_run != run.flags.model.seed)
    refuse(run.folder(), "--seed", *of_run, run.flags.model.seed);
}

void check_preference_of_run(const Resumption& run) {
  if (!run.header) return;
  const std::string of_run = run.text("preference").value_or("none"), &given = run.found.plan.preference;
  if (of_run == (given == "auto" ? "none" : given)) return;
  const std::string goes_on =
      fmt::format("the run in {} learns {}; a change of that would change the trained bits", run.folder(),
                  of_run == "none" ? "no preference" : "the preference " + of_run);
  const DataFlags& data = run.found.data;
  if (!data.has_pairs)
    throw Failure(exit_failed, fmt::format("--data {}: expected a .jsonl file of pairs of answers: {}",
                                           data.path, goes_on));
  if (of_run == "none")
    throw Failure(exit_failed, fmt::format("--data {}: it has pairs of answers: {}", data.path, goes_on));
  if (!run.has_plan_file()) throw Failure(exit_failed, fmt::format("--preference {}: {}", given, goes_on));
}

void take_fused_update(const std::string& header, PlanFlags& plan) {
  if (json_bool(header, "identity", "fused_update").value_or(false)) plan.fused_update = true;
}

void take_texts(const std::string& header, PlanFlags& plan) {
  if (!plan.texts) plan.texts = json_integer(header, "identity", "texts").value_or(0);
}

void take_states(const std::string& header, PlanFlags& plan) {
  if (plan.states != "auto") return;
  if (const auto bits = json_integer(header, "identity", "state_bits"))
    plan.states = fmt::format("{}", *bits);
}

// In fast mode, the bits depend on the micro-batch too.
void take_mode(const std::string& header, PlanFlags& plan) {
  if (plan.exact || json_bool(header, "identity", "exact").value_or(true)) return;
  plan.fast = true;
  if (plan.micro_batch != 0) return;
  if (const auto samples = json_integer(header, "identity", "micro_batch"))
    plan.micro_batch = static_cast<uint32_t>(*samples);
}

enum class OnResume {
  not_kept,  // belongs to one command line; the run does not keep it
  fixed,     // the bits depend on it: the run's value holds, and --no-NAME is refused
  checked,   // `check` may refuse another value; --no-NAME is allowed
  schedule,  // may change; if the learning rate changes with it, the run says so
};

// How a setting of the plan that was not given is read from the header of the checkpoint: `setting` becomes
// the text of the row's field, or `missing` if the header has no such field.
struct Taken {
  std::string PlanFlags::*setting = nullptr;  // null: `take` reads the setting
  const char* missing = "";
  // For settings of other types, instead of `setting`.
  void (*take)(const std::string& header, PlanFlags& plan) = nullptr;
};

struct ResumeRow {
  const char* option;
  OnResume rule;
  void (*check)(const Resumption& run) = nullptr;  // refuses another value; null: nothing is checked here
  // For an option that affects the bits through the plan: its field in the "numerics" of a plan and in the
  // "identity" of a checkpoint. check_numerics_of_run() compares the two.
  const char* field = nullptr;
  Taken taken = {};
};

constexpr ResumeRow numerics(const char* option, const char* field, Taken taken = {}) {
  return {option, OnResume::fixed, nullptr, field, taken};
}

// The rules for the options of `train` when a run is resumed. An option without a row keeps the run's value
// until the command line gives another one. The checks are made in this order.
constexpr ResumeRow resume_rows[] = {
    {"out", OnResume::not_kept},
    {"resume", OnResume::not_kept},
    {"overwrite", OnResume::not_kept},
    {"profile", OnResume::not_kept},
    {"show-examples", OnResume::not_kept},
    {"help", OnResume::not_kept},
    {"steps", OnResume::schedule},
    {"epochs", OnResume::schedule},
    {"lr", OnResume::schedule},
    {"min-lr", OnResume::schedule},
    {"warmup", OnResume::schedule},
    {"schedule", OnResume::schedule},
    {"decay-steps", OnResume::schedule},
    {"lr-batch", OnResume::schedule},
    {"weights", OnResume::checked, check_weights},
    {"eval-data", OnResume::fixed, check_evaluation_files},
    {"eval-batches", OnResume::checked, check_held_out},
    {"eval-tail", OnResume::fixed, check_tail},
    {"dropout", OnResume::checked, check_dropout},
    {"task", OnResume::fixed, check_task},
    {"mask-rate", OnResume::fixed, check_masks},
    {"mask-whole-words", OnResume::fixed},  // check_masks checks this option too
    {"batch-examples", OnResume::fixed, check_batch_of_examples},
    {"batch", OnResume::fixed, check_batch},
    {"seq", OnResume::fixed, check_sequence_of_run},
    {"document-end", OnResume::fixed, check_document_end},
    {"seed", OnResume::fixed, check_seed},
    {"preference", OnResume::fixed, check_preference_of_run},
    {"lora", OnResume::fixed},
    {"lora-alpha", OnResume::fixed},
    {"lora-targets", OnResume::fixed},
    {"lora-dropout", OnResume::fixed},
    {"rslora", OnResume::fixed},
    {"text-field", OnResume::fixed},
    {"pair-field", OnResume::fixed},
    {"label-field", OnResume::fixed},
    {"label-names", OnResume::fixed},
    {"label-separator", OnResume::fixed},
    {"doc-stride", OnResume::fixed},
    {"skip-bad-questions", OnResume::fixed},
    {"token-type", OnResume::fixed},
    numerics("precision", "precision", {&PlanFlags::precision, ""}),
    numerics("master", "master", {&PlanFlags::master, ""}),
    numerics("gradients", "gradients", {&PlanFlags::gradients, "fp32"}),
    numerics("fused-update", "fused_update", {.take = take_fused_update}),
    numerics("optimizer", "optimizer", {&PlanFlags::optimizer, ""}),
    numerics("texts", "texts", {.take = take_texts}),
    numerics("states", "state_bits", {.take = take_states}),
    numerics("fast", "exact", {.take = take_mode}),
    numerics("kernels", "kernels", {&PlanFlags::kernels, "auto"}),
    numerics("attention", "attention", {&PlanFlags::attention, "own"}),
    numerics("quantize", "quantize", {&PlanFlags::quantize, "none"}),
    numerics("quantize-embeddings", "quantize_embeddings", {&PlanFlags::quantize_embeddings, "none"}),
    numerics("freeze", "groups"),
    numerics("group", "groups"),
};

bool has_rule(std::string_view option, OnResume rule) {
  return std::any_of(std::begin(resume_rows), std::end(resume_rows),
                     [&](const ResumeRow& row) { return row.option == option && row.rule == rule; });
}

// The budget may have determined the numerics of the run. Another budget must not change them.
void take_numerics(const Resumption& run, PlanFlags& plan) {
  if (!run.header || run.has_plan_file()) return;
  for (const ResumeRow& row : resume_rows) {
    const Taken& taken = row.taken;
    if (taken.take) taken.take(*run.header, plan);
    if (!taken.setting) continue;
    std::string& setting = plan.*taken.setting;
    if (setting.empty() || setting == "auto") setting = run.text(row.field).value_or(taken.missing);
  }
}

// The value in JSON notation.
std::string shown(const Json& value) {
  std::vector<std::string> parts;
  for (const Json& element : value.elements()) parts.push_back(shown(element));
  for (const auto& [name, member] : value.members())
    parts.push_back(fmt::format("\"{}\":{}", name, shown(member)));
  if (value.is_array()) return fmt::format("[{}]", fmt::join(parts, ","));
  if (value.is_object()) return fmt::format("{{{}}}", fmt::join(parts, ","));
  return value.is_string() ? '"' + *value.as_string() + '"' : stw::to_string(value, 0);
}

}  // namespace

bool is_kept_by_run(std::string_view option) { return !has_rule(option, OnResume::not_kept); }

bool is_of_the_bits(std::string_view option) { return has_rule(option, OnResume::fixed); }

std::vector<std::string> options_with_resume_rule() {
  std::vector<std::string> options;
  for (const ResumeRow& row : resume_rows) options.emplace_back(row.option);
  return options;
}

std::vector<std::string> options_of_numerics() {
  std::vector<std::string> options;
  for (const ResumeRow& row : resume_rows)
    if (row.field) options.emplace_back(row.option);
  return options;
}

KeptNumbers numbers_of_run(const TrainFlags& flags, const FoundData& found) {
  KeptNumbers kept{flags.model.seed, found.plan};
  if (flags.resume.empty()) return kept;
  const Resumption run{flags, found, checkpoint_header(RunFolder(flags.resume).checkpoint())};
  for (const ResumeRow& row : resume_rows)
    if (row.check) row.check(run);
  kept.seed = seed_of_run(run).value_or(kept.seed);
  if (!run.has_plan_file()) {
    if (const auto batch = number_of_run(run.folder(), "global_batch")) kept.plan.batch = batch;
    if (const auto sequence = number_of_run(run.folder(), "sequence")) kept.plan.sequence = sequence;
  }
  take_numerics(run, kept.plan);
  return kept;
}

std::vector<std::string> changed_schedule(const std::string& resume, const std::string& options) {
  if (resume.empty()) return {};
  // the last value of each option; names of files may not be UTF-8
  std::map<std::string, std::string> given;
  JsonReader reader(options, "the options");
  reader.object(
      [&](const std::string& name) { reader.list('[', ']', [&] { given[name] = reader.bytes(); }); });
  std::vector<std::string> changed;
  for (const ResumeRow& row : resume_rows) {
    if (row.rule != OnResume::schedule) continue;
    const std::string now = given[row.option], before = setting_of_run(resume, row.option).value_or("");
    if (now != before)
      changed.push_back(fmt::format("--{} {} (before: {})", row.option, now.empty() ? "left out" : now,
                                    before.empty() ? "left out" : before));
  }
  return changed;
}

void check_plan_of_run(const TrainRun& run, const stw_plan_info& plan) {
  if (!run.resumes()) return;
  check_documents(run.resume, run.data.path, run.plan);
  const std::string name = "--plan " + run.plan_file;
  const auto batch = number_of_run(run.resume, "global_batch"),
             sequence = number_of_run(run.resume, "sequence");
  if (batch && *batch != plan.global_batch) refuse(run.resume, name + ": batch", *batch, plan.global_batch);
  if (sequence && *sequence != plan.sequence)
    refuse(run.resume, name + ": sequence", *sequence, plan.sequence);
}

void check_fingerprint_of_run(const TrainRun& run, const std::string& plan_json) {
  if (!run.resumes()) return;
  const std::string path = RunFolder(run.resume).plan();
  const auto text = read_text_if_there(path);
  // A plan of another version cannot be read here. Only its numbers are compared, with the checkpoint.
  if (!text || json_integer(*text, "", "version") != json_integer(plan_json, "", "version")) return;
  read_json(*text, path);  // throws if the text is not JSON
  stw_plan* loaded = nullptr;
  auto error = sized<stw_error>();
  const stw_status status = stw_plan_load(&loaded, run.opened.get(), text->data(), text->size(), &error);
  if (status == STW_OK) return stw_plan_destroy(loaded);
  if (status == STW_CORRUPT || json_string(*text, "", "format") != "stowage-plan")
    throw Failure(exit_failed,
                  fmt::format("{}: damaged, or changed since the run wrote it: {}", path, error.message));
}

void check_numerics_of_run(const TrainRun& run, const std::string& plan_json) {
  if (!run.resumes()) return;
  const std::string checkpoint = RunFolder(run.resume).checkpoint();
  const auto header = checkpoint_header(checkpoint);
  if (!header) return;  // restoring reports the error
  const Json plan = read_json(plan_json, "the plan"), fields_of_run = read_json(*header, checkpoint);
  const JsonView given = JsonView(plan, "the plan").at("numerics"),
                 of_run = JsonView(fields_of_run, checkpoint).at("fields").at("identity");
  for (const ResumeRow& row : resume_rows) {
    if (!row.field) continue;
    const JsonView expected = given.at(row.field), found = of_run.at(row.field);
    if (expected.is_null() || found.is_null() || is_equal(expected.raw(), found.raw())) continue;
    throw Failure(exit_failed,
                  fmt::format("{}: {}: expected {}, found {}; the run keeps its own value{}", checkpoint,
                              row.field, shown(expected.raw()), shown(found.raw()),
                              !run.plan_file.empty()
                                  ? fmt::format(", and --plan {} is not one of its plans", run.plan_file)
                              : !expected.is_array() ? fmt::format(": leave out --{}", row.option)
                              : expected.raw().elements().empty() ? ": give its --freeze and --group"
                                                                  : ": leave out --freeze and --group"));
  }
}

}  // namespace command
