#include "run/resume.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json_reader.h"
#include "base/json_value.h"
#include "base/kept_options.h"
#include "flags/numerics_flags.h"
#include "run/checkpoint_header.h"
#include "run/run_settings.h"

namespace command {
namespace {

struct RunNumbers {
  std::optional<uint64_t> batch, sequence;
  std::optional<bool> documents;
};

RunNumbers numbers_of_run(const std::string& folder) {
  const auto plan = read_text_if_there(RunFolder(folder).plan());
  if (!plan) return {};
  return {json_whole(*plan, "request", "global_batch"), json_whole(*plan, "request", "sequence"),
          has_documents(*plan)};
}

[[noreturn]] void refuse(const TrainFlags& flags, const std::string& what, uint64_t of_run, uint64_t given) {
  throw Failure(exit_failed, fmt::format("{}: the run in {} has {}, found {}; another would change its bits",
                                         what, flags.resume, of_run, given));
}

void keep(const TrainFlags& flags, const char* flag, std::optional<uint64_t> of_run,
          std::optional<uint64_t>& given) {
  if (!of_run) return;
  if (given && *given != *of_run) refuse(flags, flag, *of_run, *given);
  given = of_run;
}

void check_documents(const TrainFlags& flags, const RunNumbers& run) {
  if (is_there(RunFolder(flags.resume).labels()) && !flags.plan.examples)
    throw Failure(exit_failed, fmt::format("--data {}: the run in {} is of a classifier: expected a .csv or "
                                           ".jsonl file of texts with labels, or a .conll file",
                                           flags.data.path, flags.resume));
  if (run.documents && *run.documents != flags.plan.keeps_documents())
    throw Failure(
        exit_failed,
        fmt::format("--document-end: the run in {} was trained {} it; another would change its bits",
                    flags.resume, *run.documents ? "with" : "without"));
  if (const auto end = setting_of_run(flags.resume, "document-end"); end && flags.plan.document_end)
    if (const std::string given = fmt::format("{}", *flags.plan.document_end); given != *end)
      throw Failure(
          exit_failed,
          fmt::format("--document-end: the run in {} has {}, found {}; another would change its bits",
                      flags.resume, *end, given));
}

// By now, settings of the run have replaced those that were not given.
void check_weights(const TrainFlags& flags) {
  const std::string& given = flags.model.weights;
  const std::string of_run = setting_of_run(flags.resume, "weights").value_or("");
  if (!given.empty() && given != of_run && !is_same(given, of_run))
    throw Failure(
        exit_usage,
        fmt::format(
            "--weights: --resume {} goes on with the weights of its checkpoint; leave one of them out",
            flags.resume));
}

// The held-out part depends on --eval-data: with a file for evaluations, the run trains on all of its data.
void check_evaluation(const TrainFlags& flags) {
  const bool of_run = setting_of_run(flags.resume, "eval-data").has_value();
  if (of_run == flags.evaluation.empty())
    throw Failure(exit_failed,
                  fmt::format("--eval-data: the run in {} was trained {} it; another would change its bits",
                              flags.resume, of_run ? "with" : "without"));
  if (of_run) return;
  const auto batches = setting_of_run(flags.resume, "eval-batches");
  const bool run_held_out = !batches || batches->find_first_not_of('0') != std::string::npos;
  if (run_held_out != (flags.run.evaluation_batches > 0))
    throw Failure(exit_failed,
                  fmt::format("--eval-batches {}: the run in {} {}; another would change its bits",
                              flags.run.evaluation_batches, flags.resume,
                              run_held_out ? "holds a tenth of its data out, which 0 would train on; "
                                             "--eval-every 0 evaluates after the last batch alone"
                                           : "was trained on all of its data"));
  if (run_has_option(flags.resume, "eval-tail") != flags.data.holds_out_tail)
    throw Failure(exit_failed,
                  fmt::format("--eval-tail: the run in {} was trained {} it; another would change its bits",
                              flags.resume, flags.data.holds_out_tail ? "without" : "with"));
}

// A model without --dropout has the rates of its config, which a checkpoint identifies by a hash.
void check_dropout(const TrainFlags& flags) {
  const auto of_run = setting_of_run(flags.resume, "dropout");
  if (of_run && flags.model.dropout && std::stof(*of_run) != *flags.model.dropout)
    throw Failure(exit_failed,
                  fmt::format("--dropout: the run in {} has {}, found {}; another would change its bits",
                              flags.resume, *of_run, *flags.model.dropout));
}

// The checkpoint identifies the model and its task, but not which tokens are hidden.
void check_task(const TrainFlags& flags) {
  const auto of_run = setting_of_run(flags.resume, "task");
  if (of_run && *of_run != flags.model.task)
    throw Failure(exit_failed, fmt::format("--task: the run in {} has {}, found {}", flags.resume, *of_run,
                                           flags.model.task));
  if (flags.data.masks) check_masks_of_run(flags.data.mask, flags.resume);
}

// The resumed run keeps the batch in samples that it made of this option, whatever the data is now.
void check_batch_of_examples(const TrainFlags& flags) {
  const auto of_run = setting_of_run(flags.resume, "batch-examples");
  if (flags.batch_examples && fmt::format("{}", *flags.batch_examples) != of_run.value_or(""))
    throw Failure(
        exit_failed,
        fmt::format("--batch-examples: the run in {} has {}, found {}; another would change its bits",
                    flags.resume, of_run.value_or("none"), *flags.batch_examples));
}

// The value in JSON notation.
std::string shown(const JsonValue& value) {
  std::vector<std::string> parts;
  for (const JsonValue& element : value.elements) parts.push_back(shown(element));
  for (const JsonMember& member : value.members)
    parts.push_back(fmt::format("\"{}\":{}", member.key, shown(member.value)));
  switch (value.kind) {
    case JsonValue::Kind::array: return fmt::format("[{}]", fmt::join(parts, ","));
    case JsonValue::Kind::object: return fmt::format("{{{}}}", fmt::join(parts, ","));
    case JsonValue::Kind::string: return '"' + value.text + '"';
    case JsonValue::Kind::boolean: return value.boolean ? "true" : "false";
    case JsonValue::Kind::null: return "null";
    case JsonValue::Kind::number: break;
  }
  return value.text;
}

}  // namespace

bool is_of_the_bits(std::string_view name) {
  constexpr std::string_view others[] = {
      "batch",      "batch-examples", "seq",          "seed",         "document-end",
      "lora",       "lora-alpha",     "lora-targets", "lora-dropout", "rslora",
      "preference", "text-field",     "label-field",  "label-names",  "label-separator",
      "task",       "eval-data",      "eval-tail",    "mask-rate",    "mask-whole-words",
      "token-type"};
  return std::any_of(std::begin(numerics_flags), std::end(numerics_flags),
                     [&](const NumericsFlag& flag) { return name == flag.name; }) ||
         std::find(std::begin(others), std::end(others), name) != std::end(others);
}

void keep_numbers_of_run(TrainFlags& flags) {
  if (flags.resume.empty()) return;
  check_weights(flags);
  check_evaluation(flags);
  check_dropout(flags);
  check_task(flags);
  check_batch_of_examples(flags);
  const std::string checkpoint = RunFolder(flags.resume).checkpoint();
  // A plan file is checked after it has been read.
  if (flags.plan_file.empty()) {
    const RunNumbers run = numbers_of_run(flags.resume);
    keep(flags, "--batch", run.batch, flags.plan.batch);
    keep(flags, "--seq", run.sequence, flags.plan.sequence);
    check_documents(flags, run);
  }
  const auto header = checkpoint_header(checkpoint);
  if (!header) return;  // restoring reports the error
  std::optional<uint64_t> seed;
  if (flags.seed_given) seed = flags.model.seed;
  keep(flags, "--seed", json_whole(*header, "", "seed"), seed);
  if (seed) flags.model.seed = *seed;
  if (const auto of_run = json_string(*header, "identity", "preference").value_or("none");
      of_run != (flags.plan.preference == "auto" ? "none" : flags.plan.preference)) {
    const std::string goes_on =
        fmt::format("the run in {} learns {}; another would change its bits", flags.resume,
                    of_run == "none" ? "no preference" : "the preference " + of_run);
    if (!flags.data.has_pairs)
      throw Failure(exit_failed, fmt::format("--data {}: expected a .jsonl file of pairs of answers: {}",
                                             flags.data.path, goes_on));
    if (of_run == "none")
      throw Failure(exit_failed,
                    fmt::format("--data {}: it has pairs of answers: {}", flags.data.path, goes_on));
    if (flags.plan_file.empty())
      throw Failure(exit_failed, fmt::format("--preference {}: {}", flags.plan.preference, goes_on));
  }
  if (!flags.plan_file.empty()) return;
  // The budget may have determined the numerics of the run. Another budget must not change them.
  if (flags.plan.precision.empty())
    flags.plan.precision = json_string(*header, "identity", "precision").value_or("");
  if (flags.plan.optimizer.empty())
    flags.plan.optimizer = json_string(*header, "identity", "optimizer").value_or("");
  if (flags.plan.kernels == "auto")
    flags.plan.kernels = json_string(*header, "identity", "kernels").value_or("auto");
  if (flags.plan.attention.empty())
    flags.plan.attention = json_string(*header, "identity", "attention").value_or("own");
  if (flags.plan.quantize == "auto")
    flags.plan.quantize = json_string(*header, "identity", "quantize").value_or("none");
  if (flags.plan.quantize_embeddings == "auto")
    flags.plan.quantize_embeddings = json_string(*header, "identity", "quantize_embeddings").value_or("none");
  if (!flags.plan.exact && !json_bool(*header, "identity", "exact").value_or(true)) {
    flags.plan.fast = true;
    if (flags.plan.micro_batch == 0)
      if (const auto samples = json_whole(*header, "identity", "micro_batch"))
        flags.plan.micro_batch = static_cast<uint32_t>(*samples);
  }
  if (flags.plan.master.empty())
    if (const auto master = json_string(*header, "identity", "master");
        master == "split8" || master == "stochastic")
      flags.plan.master = *master;
  if (flags.plan.gradients.empty())
    flags.plan.gradients = json_string(*header, "identity", "gradients").value_or("fp32");
  if (json_bool(*header, "identity", "fused_update").value_or(false)) flags.plan.fused_update = true;
  if (flags.plan.states == "auto")
    if (const auto bits = json_whole(*header, "identity", "state_bits"))
      flags.plan.states = fmt::format("{}", *bits);
}

std::vector<std::string> changed_schedule(const TrainFlags& flags) {
  if (flags.resume.empty()) return {};
  // the last value of each option; names of files may not be UTF-8
  std::map<std::string, std::string> given;
  JsonReader reader(flags.options, "the options");
  reader.object(
      [&](const std::string& name) { reader.list('[', ']', [&] { given[name] = reader.bytes(); }); });
  std::vector<std::string> changed;
  for (const char* name :
       {"steps", "epochs", "lr", "min-lr", "warmup", "schedule", "decay-steps", "lr-batch"}) {
    const std::string now = given[name], before = setting_of_run(flags.resume, name).value_or("");
    if (now != before)
      changed.push_back(fmt::format("--{} {} (before: {})", name, now.empty() ? "left out" : now,
                                    before.empty() ? "left out" : before));
  }
  return changed;
}

void check_plan_of_run(const TrainFlags& flags, const stw_plan_info& plan) {
  if (flags.resume.empty()) return;
  const RunNumbers run = numbers_of_run(flags.resume);
  check_documents(flags, run);
  const std::string name = "--plan " + flags.plan_file;
  if (run.batch && *run.batch != plan.global_batch)
    refuse(flags, name + ": batch", *run.batch, plan.global_batch);
  if (run.sequence && *run.sequence != plan.sequence)
    refuse(flags, name + ": sequence", *run.sequence, plan.sequence);
}

void check_fingerprint_of_run(const TrainFlags& flags, const Model& model, const std::string& plan_json) {
  if (flags.resume.empty()) return;
  const std::string path = RunFolder(flags.resume).plan();
  const auto text = read_text_if_there(path);
  // A plan of another version cannot be read here. Only its numbers are compared, with the checkpoint.
  if (!text || json_whole(*text, "", "version") != json_whole(plan_json, "", "version")) return;
  read_json(*text, path);  // throws if the text is not JSON
  stw_plan* loaded = nullptr;
  auto error = sized<stw_error>();
  const stw_status status = stw_plan_load(&loaded, model.get(), text->data(), text->size(), &error);
  if (status == STW_OK) return stw_plan_destroy(loaded);
  const bool is_edited =
      status == STW_CORRUPT && std::string_view(error.message).find("fingerprint") != std::string_view::npos;
  if (is_edited || json_string(*text, "", "format") != "stowage-plan")
    throw Failure(exit_failed,
                  fmt::format("{}: damaged, or changed since the run wrote it: {}", path, error.message));
}

void check_numerics_of_run(const TrainFlags& flags, const std::string& plan_json) {
  if (flags.resume.empty()) return;
  const std::string checkpoint = RunFolder(flags.resume).checkpoint();
  const auto header = checkpoint_header(checkpoint);
  if (!header) return;  // restoring reports the error
  const JsonValue plan = read_json(plan_json, "the plan"), fields_of_run = read_json(*header, checkpoint);
  const JsonView given = JsonView(plan, "the plan").at("numerics"),
                 of_run = JsonView(fields_of_run, checkpoint).at("fields").at("identity");
  for (const auto& [flag, field] : numerics_flags) {
    const JsonView expected = given.at(field), found = of_run.at(field);
    if (expected.is_null() || found.is_null() || expected.raw() == found.raw()) continue;
    throw Failure(exit_failed,
                  fmt::format("{}: {}: expected {}, found {}; the run goes on with what it has{}", checkpoint,
                              field, shown(expected.raw()), shown(found.raw()),
                              !flags.plan_file.empty()
                                  ? fmt::format(", and --plan {} is none of its plans", flags.plan_file)
                              : expected.is_array() ? ": give the --freeze and --group that it has"
                                                    : fmt::format(": leave out --{}", flag)));
  }
}

}  // namespace command
