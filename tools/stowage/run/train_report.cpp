#include "run/train_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "base/files.h"
#include "base/json_fields.h"
#include "base/messages.h"
#include "base/units.h"
#include "data/pairs.h"
#include "run/model_card.h"

namespace command {
namespace {

void tell_model(const ModelFlags& flags, const stw_model_info& about) {
  const std::string weights = about.has_codes     ? "weights read from files, in 4 bits"
                              : about.has_weights ? "weights read from files"
                                                  : fmt::format("random weights from seed {}", flags.seed);
  const char* const outputs = about.task == STW_TASK_NUMBER ? "number" : "label";
  const std::string head =
      !about.head_is_new             ? ""
      : about.task == STW_TASK_SPANS ? fmt::format(", and a new head for answers from seed {}", flags.seed)
      : about.labels > 0 ? fmt::format(", and a new head for {} {}{}", grouped(about.labels), outputs,
                                       about.labels == 1 ? "" : "s")
                         : fmt::format(", and a new head from seed {}", flags.seed);
  tell("model       {}: {}, {} layers, {} parameters, {}{}\n", flags.source, about.architecture, about.layers,
       grouped(about.parameters), weights, head);
  if (about.file_layers > about.layers)
    complain(
        "stowage: warning: {}: the config has {} layers, and the weights have {}: the others are left out",
        flags.source, about.layers, about.file_layers);
}

void tell_adapters(const stw_model_info& about, const std::string& json) {
  const std::string codes = json_string(json, "numerics", "quantize").value_or("none");
  const std::string embeddings = json_string(json, "numerics", "quantize_embeddings").value_or("none");
  tell("adapters    rank {}, {} parameters of the {} are trained{}{}{}\n", about.adapter_rank,
       grouped(about.trainable), grouped(about.parameters), about.labels ? ", with those of the head" : "",
       codes == "none" ? "" : fmt::format("; the matrices below them are {}", codes),
       embeddings == "none"
           ? ""
           : fmt::format("; embeddings{} are {}", about.labels ? "" : " and head", embeddings));
}

std::string held_out_part(const DataFlags& flags, const OpenData& data, const stw_model_info& about) {
  const uint64_t tokens = query(data.dataset).evaluation_tokens;
  if (tokens == 0) return "none held out";
  if (data.counts.examples == 0) return fmt::format("{} held out, the last ones", grouped(tokens));
  const char* const what = flags.has_pairs    ? "pairs"
                           : flags.masks      ? "pieces of texts"
                           : about.labels > 0 ? "texts"
                                              : "examples";
  return fmt::format("{} held out in {} {}{}, {}", grouped(tokens), grouped(data.held_out_examples),
                     flags.masks ? "" : fmt::format("of the {} ", grouped(data.counts.examples)), what,
                     flags.holds_out_tail ? "the last ones" : "drawn by a fixed seed");
}

void tell_examples(const TrainRun& run, const ExampleCounts& counts, const std::string& preference) {
  const stw_model_info& about = run.about;
  const std::string longer =
      counts.longer ? fmt::format("; {} cut to the length of a sample", grouped(counts.longer)) : "";
  const std::string out = left_out_suffix(counts, false);
  if (about.task == STW_TASK_TOKEN_LABEL)
    tell("examples    {}, with {} words that each have one of {} labels{}{}{}\n", grouped(counts.examples),
         grouped(counts.learned), grouped(about.labels), longer,
         counts.unlearned
             ? fmt::format("; {} words without a label, because samples contain none of their tokens",
                           grouped(counts.unlearned))
             : "",
         out);
  else if (about.task == STW_TASK_SPANS)
    tell("examples    {} texts with a question and its context{}{}{}\n", grouped(counts.examples),
         counts.longer ? fmt::format("; {} contexts are cut", grouped(counts.longer)) : "",
         counts.unlearned ? fmt::format("; {} answers are whole in no text", grouped(counts.unlearned)) : "",
         out);
  else if (about.task == STW_TASK_NUMBER)
    tell("examples    {}, each with {}{}{}\n", grouped(counts.examples),
         about.labels == 1 ? "a number" : grouped(about.labels) + " numbers", longer, out);
  else if (about.labels > 0)
    tell("examples    {}, each with {} of {} labels{}{}\n", grouped(counts.examples),
         about.task == STW_TASK_LABELS ? "any" : "one", grouped(about.labels), longer, out);
  else if (run.data.masks)
    tell("texts       {} with {} tokens, of which a share of {} is hidden{}{}{}\n", grouped(counts.examples),
         grouped(counts.learned), run.data.mask.rate.value_or(default_mask_rate),
         run.data.mask.whole_words ? ", by whole words" : "",
         counts.longer
             ? fmt::format("; {} longer than a sample, each cut into several", grouped(counts.longer))
             : "",
         out);
  else if (run.data.has_pairs)
    tell("pairs       {} of chosen and rejected answers, for {}; {} tokens are learned{}\n",
         grouped(counts.examples), preference, grouped(counts.learned), pairs_suffix(counts));
  else if (counts.examples)
    tell("examples    {}, of which {} tokens are learned{}{}\n", grouped(counts.examples),
         grouped(counts.learned), longer, out);
}

void tell_data(const TrainRun& run, const RunData& data) {
  tell("data        {}: {} tokens to train on, {}; read as {}\n", run.data.path,
       grouped(query(data.training.dataset).training_tokens),
       data.evaluation.dataset
           ? fmt::format("{} to evaluate on, in {}",
                         grouped(query(data.evaluation.dataset).evaluation_tokens), run.evaluation)
           : held_out_part(run.data, data.training, run.about),
       run.data.source.description());
}

void tell_plan(uint32_t threads, const stw_plan_info& plan, const std::string& json) {
  const std::string computed_by =
      threads
          ? fmt::format("{} thread{}", threads, threads == 1 ? "" : "s")
          : fmt::format("{} kernels{}{}", json_string(json, "numerics", "kernels").value_or(""),
                        json_string(json, "numerics", "attention") == "cudnn" ? ", cuDNN's attention" : "",
                        json_bool(json, "numerics", "exact").value_or(true) ? "" : ", fast");
  tell("plan        batch {} x {} tokens in micro-batches of {}, {}, {} with {}-bit states, {}\n",
       grouped(plan.global_batch), grouped(plan.sequence), grouped(plan.micro_batch),
       precision_name(plan.precision), json_string(json, "numerics", "optimizer").value_or(""),
       plan.state_bits, computed_by);
  tell("memory      {} of {}; the smallest budget is {}\n", exact_bytes(plan.peak), human_bytes(plan.budget),
       exact_bytes(plan.minimum_bytes));
}

}  // namespace

void tell_beginning(const TrainRun& run, const RunSettings& settings, const PlannedRun& planned,
                    const RunData& data) {
  const stw_plan_info& plan = planned.info;
  tell_model(run.model, run.about);
  if (run.about.adapter_rank) tell_adapters(run.about, planned.json);
  tell_data(run, data);
  tell_examples(run, data.training.counts, preference_of(planned.json));
  if (data.training.labelled && !data.training.labelled->reading.empty())
    tell("words       {}\n", printable(data.training.labelled->reading));
  const double samples = static_cast<double>(settings.steps) * static_cast<double>(plan.global_batch);
  const double epochs = samples / static_cast<double>(samples_of_epoch(data.training, plan.sequence));
  tell("steps       {}, which go {:.3g} times over the data{}\n", grouped(settings.steps), epochs,
       run.epochs && epochs > 1.005 * *run.epochs
           ? fmt::format("; --epochs asks for {:.3g}, and every step takes a whole batch", *run.epochs)
           : "");
  if (run.batch_examples)
    tell(
        "batch       {} samples of {} tokens, which hold {:.3g} {} on average; --batch-examples asks for "
        "{}\n",
        grouped(plan.global_batch), grouped(plan.sequence),
        static_cast<double>(plan.global_batch) * examples_of_sample(data.training),
        run.data.has_pairs ? "pairs" : "examples", grouped(*run.batch_examples));
  tell_plan(planned.threads, plan, planned.json);
}

std::string left_out_line(const ExampleCounts& counts) {
  return left_out(counts) == 0 ? std::string() : fmt::format("{{\"step\":0,{}}}\n", left_out_members(counts));
}

std::vector<std::pair<std::string, std::string>> rows_of_card(const TrainRun& run, const PlannedRun& planned,
                                                              const RunData& data, const stw_progress& end) {
  const stw_model_info& about = run.about;
  const stw_plan_info& plan = planned.info;
  const auto name = [](const std::string& path) { return std::filesystem::path(path).filename().string(); };
  const stw_dataset_info tokens = query(data.training.dataset);
  DataFlags named = run.data;
  named.path = name(run.data.path);
  std::vector<std::pair<std::string, std::string>> rows;
  const std::vector<std::string>& labels = run.labels;
  constexpr size_t most = 20;
  if (about.task == STW_TASK_NUMBER) rows.emplace_back("numbers", grouped(about.labels));
  else if (!labels.empty() && about.task != STW_TASK_SPANS)
    rows.emplace_back(
        "labels",
        grouped(about.labels) + (labels.size() <= most ? fmt::format(": {}", fmt::join(labels, ", ")) : ""));
  if (about.adapter_rank)
    rows.emplace_back("adapters",
                      fmt::format("rank {}; {} parameters of the {} are trained", about.adapter_rank,
                                  grouped(about.trainable), grouped(about.parameters)));
  rows.emplace_back("data",
                    fmt::format("{}: {} tokens to train on, {}", named.path, grouped(tokens.training_tokens),
                                data.evaluation.dataset
                                    ? fmt::format("{} to evaluate on, in {}",
                                                  grouped(query(data.evaluation.dataset).evaluation_tokens),
                                                  name(run.evaluation))
                                    : held_out_part(named, data.training, about)));
  rows.emplace_back("steps",
                    fmt::format("{} of {} samples of {} tokens, {} schedule", grouped(end.step),
                                grouped(plan.global_batch), grouped(plan.sequence), run.loop.schedule));
  rows.emplace_back(
      "numerics",
      fmt::format("{}, {} with {}-bit states, {} kernels, seed {}", precision_name(plan.precision),
                  json_string(planned.json, "numerics", "optimizer").value_or(""), plan.state_bits,
                  json_string(planned.json, "numerics", "kernels").value_or("CPU"), run.model.seed));
  if (const std::string preference = preference_of(planned.json); preference != "none")
    rows.emplace_back("preference", preference);
  rows.emplace_back("memory",
                    fmt::format("{} of a budget of {}", human_bytes(plan.peak), human_bytes(plan.budget)));
  return rows;
}

void tell_memory(uint64_t planned, uint64_t before, uint64_t after) {
  if (!after) return;
  const uint64_t measured = after > before ? after - before : 0;
  if (measured > planned && measured - planned > planned / 10)
    return tell("memory      arena {} as planned, {} outside of it: program, threads, data\n",
                human_bytes(planned), human_bytes(measured - planned));
  tell("memory      planned {}, measured {} ({:+.1f} %)\n", human_bytes(planned), human_bytes(measured),
       100 * (static_cast<double>(measured) / static_cast<double>(planned) - 1));
}

void tell_interrupted(const TrainRun& run, uint64_t steps, const stw_progress& now) {
  tell("stopped after {} of {} batches and saved; continue with\n  {}\n", grouped(now.batches),
       grouped(steps), run.resume_command);
}

void tell_end(const RunFolder& out, const stw_progress& now, Learned learned) {
  if (now.skipped) tell("skipped     {} batches without an update\n", grouped(now.skipped));
  tell("trained     {} steps on {} {}\n", grouped(now.step), grouped(now.tokens), name_of(learned));
  std::vector<std::string> names;
  for (const std::string& file : out.files())
    if (is_there(file)) names.push_back(file.substr(out.path().size() + 1));
  for (const char* name : tokenizer_file_names())
    if (is_there(out.path() + "/" + name)) names.emplace_back(name);
  if (is_card_of_run(out.card())) names.push_back("README.md");
  tell("wrote       {}: {}\n", out.path(), fmt::join(names, ", "));
}

}  // namespace command
