// `stowage eval`: the loss of a model on all of a file, or on the part that a run holds out.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/files.h"
#include "base/json_fields.h"
#include "base/kept_options.h"
#include "base/messages.h"
#include "base/units.h"
#include "commands/commands.h"
#include "data/data.h"
#include "evaluation/answers.h"
#include "evaluation/evaluation_line.h"
#include "evaluation/evaluation_report.h"
#include "evaluation/reference.h"
#include "evaluation/rewards.h"
#include "flags/number_checks.h"
#include "run/inference.h"

namespace command {
namespace {

constexpr uint64_t default_batches = 20;

// Whether these are files that a run was given for an option.
bool are_files_of_run(const std::string& run, const char* option, const std::vector<std::string>& files) {
  const std::vector<std::string> of_run = settings_of_run(run, option);
  const auto is_alike = [](const std::string& one, const std::string& other) {
    return one == other || is_same(one, other) ||
           one == std::filesystem::absolute(other).lexically_normal().string();
  };
  return std::equal(of_run.begin(), of_run.end(), files.begin(), files.end(), is_alike);
}

std::optional<float> number_of_run(const std::string& run, const char* setting) {
  const auto text = setting_of_run(run, setting);
  return text ? std::optional(std::strtof(text->c_str(), nullptr)) : std::nullopt;
}

// The model with which a run began, by its settings. If the run trained adapters over a quantized model, the
// weights of this one are quantized in the same way.
std::pair<ModelFlags, PlanFlags> beginning_of(const std::string& run, PlanFlags plan) {
  ModelFlags model;
  const auto source = setting_of_run(run, "model");
  if (!source)
    throw Failure(exit_usage, fmt::format("--preference {}: compares with the model that training began "
                                          "with, but no settings.json in {} names it; use --reference-model",
                                          plan.preference, run));
  model.source = *source;
  model.weights = setting_of_run(run, "weights").value_or("");
  model.adapter = setting_of_run(run, "adapter").value_or("");
  model.from_scratch = run_has_option(run, "from-scratch");
  if (const auto seed = setting_of_run(run, "seed")) model.seed = std::strtoull(seed->c_str(), nullptr, 10);
  // New adapters do not change the model. They are there because only matrices with adapters are quantized.
  if (const auto rank = setting_of_run(run, "lora")) {
    model.adapter_rank = static_cast<uint32_t>(std::strtoul(rank->c_str(), nullptr, 10));
    const std::string of_run = read_text_if_there(run + "/plan.json").value_or("");
    if (plan.quantize == "auto") plan.quantize = json_string(of_run, "numerics", "quantize").value_or("auto");
    if (plan.quantize_embeddings == "auto")
      plan.quantize_embeddings = json_string(of_run, "numerics", "quantize_embeddings").value_or("auto");
  }
  return {model, plan};
}

// The data that is evaluated.
struct EvaluatedPart {
  OpenData tokens;
  bool is_all;     // all of the data, else the part that training holds out
  bool is_of_run;  // the run that the model comes from was trained on this data
};

struct EvalCommand {
  ModelFlags model;
  PlanFlags plan;
  DataFlags data;
  std::optional<uint64_t> batches;
  std::string reference_model;
  PreferenceFlags preference;
  std::string positive_label;  // empty: the second label
  bool json = false, all = false, held_out = false;

  void run() {
    require_head(model, query(open_model(model)));
    take_defaults_of_run(model, plan);
    const bool has_preference = plan.preference != "auto";
    data.columns_of_run = run_of(model);
    find_examples(plan, data, model);
    if (data.masks) take_masks_of_run(data.mask, run_of(model));
    if (data.has_questions) take_settings_of_run(data.questions, run_of(model));
    if (data.has_pairs) take_preference_of_run(has_preference);
    if (!data.masks) warn_of_documents(model, plan);
    const bool asked_for_tail = data.holds_out_tail;
    if (run_has_option(run_of(model), "eval-tail")) data.holds_out_tail = true;
    if (!plan.batch) plan.batch = 8;
    const bool compares = data.has_pairs && has_reference(plan.preference);
    if (!compares && !reference_model.empty())
      throw Failure(exit_usage,
                    "--reference-model: is for data with pairs of answers, and the preferences dpo and ipo");
    require_pairs(preference, data);
    std::optional<TemporaryReference> reference;
    const Inference opened = answering([&] {
      if (compares) write_reference(reference);
      return open_inference(model, plan, data.has_pairs ? preference : PreferenceFlags{});
    });
    EvaluatedPart part = open_part(opened, asked_for_tail);
    if (!part.is_all) warn_of_trained_data(part.is_of_run);
    const std::string reference_path = reference ? reference->path() : std::string();
    if (reference) part.tokens.dataset = part.tokens.against(reference_path);
    const EvaluationReport report = evaluate(opened, part, reference_path);
    if (json) print_json(report);
    else print_text(report);
  }

  // Without a flag, all of the data is evaluated, unless the model's run has held out a part of it.
  EvaluatedPart open_part(const Inference& opened, bool asked_for_tail) const {
    const stw_plan_info info = query(opened.plan);
    const auto tokenization = Tokenization::of_file(data.tokenizer, data.path, data.source.has_tokens(),
                                                    run_of(model), query(opened.model).vocabulary);
    DataRequest held_out_part{tokenization,  model,      opened.model,
                              info.sequence, info.texts, plan.document_end};
    held_out_part.advice = "evaluate on --all of it";
    DataRequest whole = held_out_part;
    const auto before = held_out_of_run(run_of(model));
    held_out_part.before = before ? &*before : nullptr;
    whole.held_out = 1,
    whole.sequential = !batches;  // a given number of batches is drawn from the whole file
    const bool is_of_run = are_files_of_run(run_of(model), "data", data.files);
    const bool is_all = all || !(held_out || asked_for_tail || is_of_run);
    OpenData tokens = open_data(data, data.source, is_all ? whole : held_out_part);
    const bool is_renamed =
        is_all && !all && data_of_run(run_of(model)) == query(tokens.dataset).content_hash;
    if (!is_renamed) return {std::move(tokens), is_all, is_of_run};
    return {open_data(data, data.source, held_out_part), false, true};  // the run's file, by another name
  }

  EvaluationKind kind_of(const stw_model_info& about) const {
    if (data.has_pairs) return EvaluationKind::pairs;
    if (about.task == STW_TASK_NUMBER) return EvaluationKind::numbers;
    if (about.task == STW_TASK_TOKEN_LABEL) return EvaluationKind::word_labels;
    if (about.task == STW_TASK_SPANS) return EvaluationKind::spans;
    if (about.labels > 0) return EvaluationKind::labels;
    return data.masks ? EvaluationKind::hidden_tokens : EvaluationKind::tokens;
  }

  // `reference`: the file of the reference's log-probabilities; empty if the preference has no reference.
  EvaluationReport evaluate(const Inference& opened, const EvaluatedPart& part,
                            const std::string& reference) const {
    const stw_model_info about = query(opened.model);
    const std::vector<std::string> labels = labels_of(opened.model);
    const size_t positive = number_of_positive(labels, about.task);
    const stw_dataset_info dataset = query(part.tokens.dataset);
    const uint64_t there = dataset.evaluation_samples, batch = query(opened.plan).global_batch;
    EvaluationReport report;
    report.model = model.source, report.data = data.path;
    report.kind = kind_of(about), report.is_all = part.is_all;
    report.batches = batches_wanted(part.is_all, (there + batch - 1) / batch, about);
    report.samples = there ? std::min(there, report.batches * batch) : report.batches * batch;
    report.is_complete = report.samples == there;
    report.sequence = query(opened.plan).sequence;
    report.mask_rate = data.mask.rate.value_or(default_mask_rate);
    report.has_examples = plan.examples;
    report.counts = part.tokens.counts, report.examples = part.tokens.held_out_examples;
    // If every sample is evaluated, each text is classified, which gives more figures than the loss.
    if (part.tokens.labelled && report.is_complete)
      report.answered = answer_documents(opened.trainer.get(), *part.tokens.labelled, dataset.training_tokens,
                                         about.task, labels, positive);
    else
      call([&](stw_error* error) {
        const EvaluationLine line(opened.trainer.get(), "evaluation", true);
        return stw_trainer_evaluate(opened.trainer.get(), part.tokens.dataset.get(), report.batches,
                                    &report.loss, error);
      });
    count_targets(report, query(opened.trainer), dataset);
    if (data.has_pairs && report.is_complete) report.rewards = rewards_over(part, opened.trainer, reference);
    return report;
  }

  // Fills in the loss and the counts of an evaluation. Throws a Failure if nothing was evaluated.
  void count_targets(EvaluationReport& report, const stw_progress& progress,
                     const stw_dataset_info& dataset) const {
    const std::optional<Answered>& answered = report.answered;
    const bool is_of_tokens =
        report.kind == EvaluationKind::tokens || report.kind == EvaluationKind::hidden_tokens;
    if (answered) report.loss = answered->loss;
    report.accuracy = answered && answered->accuracy ? *answered->accuracy : progress.evaluation_accuracy;
    report.targets = answered ? answered->count : progress.evaluation_targets;
    report.tokens = is_of_tokens ? report.targets
                    : answered   ? dataset.evaluation_tokens
                                 : progress.evaluation_tokens;
    if (report.targets == 0)
      throw Failure(exit_failed, fmt::format("{}: nothing to evaluate: nothing is learned of {}{}", data.path,
                                             report.is_all ? "it" : "the held-out part",
                                             report.is_all ? "" : "; evaluate on --all of it"));
  }

  std::optional<Rewards> rewards_over(const EvaluatedPart& part, const Trainer& trainer,
                                      const std::string& reference) const {
    const auto& held_out_pairs = part.tokens.held_out_pairs;
    if (!part.is_all && !held_out_pairs) return std::nullopt;
    const AnswersOf pairs = part.is_all ? AnswersOf{part.tokens.dataset.get(), part.tokens.answers, 0}
                                        : AnswersOf{held_out_pairs->dataset.get(), held_out_pairs->answers,
                                                    held_out_pairs->first_token};
    return rewards_of(trainer, pairs, reference, plan.preference, preference.beta);
  }

  size_t number_of_positive(const std::vector<std::string>& labels, uint32_t task) const {
    if (positive_label.empty()) return 1;
    const auto found = std::find(labels.begin(), labels.end(), positive_label);
    if (labels.size() != 2 || (task != STW_TASK_LABEL && task != STW_TASK_TOKEN_LABEL))
      throw Failure(
          exit_usage,
          fmt::format(
              "--positive-label: is for models that give a text or a word one of two labels; {} does not",
              model.source));
    if (found == labels.end())
      throw Failure(exit_usage, fmt::format("--positive-label {}: the model's labels are {}", positive_label,
                                            fmt::join(labels, ", ")));
    return static_cast<size_t>(found - labels.begin());
  }

  // By default, all batches of a whole file; of the held-out part, as many as the run's last evaluation.
  uint64_t batches_wanted(bool takes_all, uint64_t there, const stw_model_info& about) const {
    if (batches) return *batches;
    if (takes_all) return there;
    const auto of_run = setting_of_run(run_of(model), "eval-batches");
    const uint64_t number = of_run ? std::strtoull(of_run->c_str(), nullptr, 10) : 0;
    if (number > 0) return number;
    return about.labels > 0 || data.has_pairs || data.masks ? there : default_batches;
  }

  // Warns if the run held nothing out of its own file. It is not known whether a run has seen other files.
  void warn_of_trained_data(bool was_trained_on) const {
    const std::string& run = run_of(model);
    const auto evaluations = setting_of_run(run, "eval-batches");
    const bool held_out_nothing = setting_of_run(run, "eval-data") ||
                                  (evaluations && std::strtoull(evaluations->c_str(), nullptr, 10) == 0);
    if (held_out_nothing && was_trained_on)
      complain(
          "stowage: warning: the run in {} was trained on all of {}, and held nothing out of it; this is the "
          "loss of texts that it has seen",
          run, data.path);
  }

  // Takes the preference settings that no flag gave from the run.
  void take_preference_of_run(bool has_preference) {
    const std::string& run = run_of(model);
    const std::string of_run = preference_of(read_text_if_there(run + "/plan.json").value_or(""));
    if (!has_preference && of_run != "none") plan.preference = of_run;
    if (plan.preference != of_run) return;
    if (!preference.beta) preference.beta = number_of_run(run, "beta");
    if (!preference.margin) preference.margin = number_of_run(run, "margin");
    if (!preference.answer_share) preference.answer_share = number_of_run(run, "answer-share");
  }

  Inference open_beginning(const ModelFlags& before, const PlanFlags& plan_before) const {
    const std::string source = reference_model.empty()
                                   ? fmt::format("{} began with {}", run_of(model), before.source)
                                   : fmt::format("--reference-model {}", before.source);
    try {
      return open_inference(before, plan_before);
    } catch (const Failure& failure) {
      Failure explained(failure.exit_code,
                        fmt::format("{}: {}{}", source, failure.what(),
                                    reference_model.empty() ? "; name another with --reference-model" : ""));
      explained.bytes_needed = failure.bytes_needed;
      throw explained;
    }
  }

  // Writes the log-probabilities of the reference model, and closes it before the trained model is opened.
  void write_reference(std::optional<TemporaryReference>& reference) const {
    ModelFlags given;
    given.source = reference_model;
    const auto [before, plan_before] =
        reference_model.empty() ? beginning_of(run_of(model), plan) : std::pair(given, plan);
    const Inference opened = open_beginning(before, plan_before);
    const auto tokenization = Tokenization::of_file(data.tokenizer, data.path, data.source.has_tokens(),
                                                    run_of(model), query(opened.model).vocabulary);
    // The chat template and the end of text are those of the run.
    const OpenData pairs = open_data(
        data, data.source,
        {tokenization, model, opened.model, query(opened.plan).sequence, 0, plan.document_end, {}, false});
    reference.emplace(opened.trainer, pairs.dataset.get());
  }

  // With --json, prints an answer also if the model does not fit.
  template <class Open>
  Inference answering(const Open& open) const {
    try {
      return open();
    } catch (const Failure& failure) {
      if (json && failure.exit_code == exit_does_not_fit)
        fmt::print("{{\"model\":{},\"data\":{},\"fits\":false,\"minimum_vram_bytes\":{}}}\n",
                   json_quoted(model.source), json_quoted(data.path),
                   failure.bytes_needed ? fmt::format("{}", failure.bytes_needed) : "null");
      throw;
    }
  }
};

}  // namespace

void add_eval(CLI::App& application) {
  auto self = std::make_shared<EvalCommand>();
  CLI::App& command = *application.add_subcommand("eval",
                                                  "Report the loss of a model on a file, and the accuracy of "
                                                  "a classifier, a masked language model or a preference.");
  command.footer(
      "Evaluates the held-out part of the file on which the model's run was trained. Any other file, such as "
      "the run's\nevaluation file, is evaluated as a whole: every example once; text or tokens in windows of "
      "--seq, every token once.\nThe output says which of the two it is. For a folder that `stowage train` "
      "wrote, --batch, --seq and --eval-batches\ndefault to those of the run, and it computes in the run's "
      "precision, so that the held-out part has the loss of the\nrun's last evaluation.");
  add_model_flags(command, self->model);
  add_from_scratch_flag(command, self->model);
  add_data_flags(command, self->data);
  add_request_flags(command, self->plan);
  command.get_option("--vram")->description(
      "Bounds the peak of the memory. Default: the smallest budget that works.");
  command.get_option("--batch")->description("Samples of a batch. Default: that of the run, else 8.");
  command.get_option("--seq")->description(
      "Tokens of a sample. Default: that of the run, else all positions, at most 1024. nano: 64.");
  add_threads_flag(command, self->plan);
  add_document_flag(command, self->plan);
  add_quantize_flags(command, self->plan);
  add_preference_flag(command, self->plan);
  add_preference_flags(command, self->preference);
  command
      .add_option(
          "--reference-model", self->reference_model,
          "The reference model of the preferences dpo and ipo. Default: the model with which the run began.")
      ->check(not_empty())
      ->type_name("MODEL");
  auto* batches = command
                      .add_option("--eval-batches", self->batches,
                                  "Batches to evaluate. Default: all; for a held-out part of text or tokens, "
                                  "as many as the run evaluates, else 20.")
                      ->check(positive())
                      ->type_name("N");
  command.add_flag("--all", self->all, "Evaluate on all of the file, even if the run was trained on it.")
      ->excludes(batches);
  command
      .add_flag("--held-out", self->held_out,
                "Evaluate only on the tenth of the file that training on it holds out, for any model: to "
                "compare a\nmodel with the run that began with it.")
      ->excludes(command.get_option("--all"));
  command
      .add_option("--positive-label", self->positive_label,
                  "The one of two labels for which F1 is computed. Default: the second one in the model's "
                  "order (labels.json).")
      ->check(not_empty())
      ->type_name("NAME");
  add_tail_flag(command, self->data);
  command.add_flag("--json", self->json, "Print one JSON object, and nothing else, to standard output.");
  command.callback([self] { self->run(); });
}

}  // namespace command
