// `stowage eval`: the loss of a model on a file: on the part that a run holds out, or on all of it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/files.h"
#include "base/kept_options.h"
#include "base/messages.h"
#include "base/units.h"
#include "commands/commands.h"
#include "data/data.h"
#include "data/pairs.h"
#include "evaluation/answers.h"
#include "evaluation/evaluation_line.h"
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
    throw Failure(exit_usage, fmt::format("--preference {}: is against the model that training began with, "
                                          "which no settings.json in {} names; use --reference-model",
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
    take_defaults_of_run(model, plan);
    const bool has_preference = plan.preference != "auto";
    find_examples(plan, data, model);
    if (data.masks) take_masks_of_run(data.mask, run_of(model));
    if (data.has_pairs) take_preference_of_run(has_preference);
    if (!data.masks) warn_of_documents(model, plan);
    const bool is_tail_asked = data.holds_out_tail;
    if (run_has_option(run_of(model), "eval-tail")) data.holds_out_tail = true;
    if (!plan.batch) plan.batch = 8;
    const bool is_against = data.has_pairs && has_reference(plan.preference);
    if (!is_against && !reference_model.empty())
      throw Failure(exit_usage,
                    "--reference-model: is for data with pairs of answers, and the preferences dpo and ipo");
    require_pairs(preference, data);
    std::optional<TemporaryReference> reference;
    const Inference opened = answering([&] {
      if (is_against) write_reference(reference);
      return open_inference(model, plan, data.has_pairs ? preference : PreferenceFlags{});
    });
    const stw_plan_info info = query(opened.plan);
    const stw_model_info about = query(opened.model);
    const auto tokenization = Tokenization::of_file(data.tokenizer, data.path, data.source.has_tokens(),
                                                    run_of(model), about.vocabulary);
    DataRequest request{tokenization, model, opened.model, info.sequence, plan.document_end};
    request.advice = "evaluate on --all of it";
    const bool is_of_run = are_files_of_run(run_of(model), "data", data.files);
    // Without a flag, all of a file is evaluated, unless a run has held out a part of it.
    bool was_trained_on = is_of_run, takes_all = all || !(held_out || is_tail_asked || is_of_run);
    DataRequest whole = request;
    whole.held_out = 1, whole.in_order = !batches;  // a given number of batches is drawn from the whole file
    OpenData tokens = open_data(data, data.source, takes_all ? whole : request);
    if (takes_all && !all &&
        data_of_run(run_of(model)) ==
            query(tokens.dataset).content_hash) {  // the file of the run, under another name
      takes_all = false, was_trained_on = true;
      tokens = open_data(data, data.source, request);
    }
    if (!takes_all) warn_of_trained_data(was_trained_on);
    if (reference) tokens.dataset = tokens.against(reference->path());
    const size_t positive = number_of_positive(labels_of(opened.model), about.task);
    const stw_dataset_info part = query(tokens.dataset);
    const uint64_t there = part.evaluation_samples,
                   batches_there = (there + info.global_batch - 1) / info.global_batch;
    const uint64_t wanted = batches_wanted(takes_all, batches_there, about),
                   samples = there ? std::min(there, wanted * info.global_batch) : wanted * info.global_batch;
    // If every sample is evaluated, each text is classified, which gives more figures than the loss.
    std::optional<Answered> answered;
    if (tokens.labelled && samples == there)
      answered = answer_documents(opened.trainer.get(), *tokens.labelled, part.training_tokens, about.task,
                                  labels_of(opened.model), positive);
    double loss = answered ? answered->loss : 0;
    if (!answered)
      call([&](stw_error* error) {
        const EvaluationLine line(opened.trainer.get(), "evaluation", true);
        return stw_trainer_evaluate(opened.trainer.get(), tokens.dataset.get(), wanted, &loss, error);
      });
    const stw_progress progress = query(opened.trainer);
    const double perplexity = std::exp(loss);
    const bool is_number = about.task == STW_TASK_NUMBER,
               has_accuracy = !is_number && (about.labels > 0 || data.has_pairs),
               is_of_words = about.task == STW_TASK_TOKEN_LABEL;
    const double accuracy =
        answered && answered->accuracy ? *answered->accuracy : progress.evaluation_accuracy;
    const uint64_t count = answered ? answered->count : progress.evaluation_targets;
    const uint64_t token_count = !has_accuracy && !is_number ? count
                                 : answered                  ? part.evaluation_tokens
                                            : progress.evaluation_tokens;  // padding excluded
    if (count == 0)
      throw Failure(exit_failed, fmt::format("{}: nothing to evaluate: nothing is learned of {}{}", data.path,
                                             takes_all ? "it" : "the held-out part",
                                             takes_all ? "" : "; evaluate on --all of it"));
    const bool may_leave_out = plan.examples && about.labels == 0 && !data.masks;  // of other data, none is
    std::optional<Rewards> rewards;
    if (data.has_pairs && samples == there && (takes_all || tokens.held_out_pairs)) {
      const AnswersOf pairs =
          takes_all ? AnswersOf{tokens.dataset.get(), tokens.answers, 0}
                    : AnswersOf{tokens.held_out_pairs->dataset.get(), tokens.held_out_pairs->answers,
                                tokens.held_out_pairs->first_token};
      rewards = rewards_of(opened.trainer, pairs, reference ? reference->path() : std::string(),
                           plan.preference, preference.beta);
    }
    const std::string line = answered ? answered->line : rewards ? line_of(*rewards) : "";
    if (json) {
      fmt::print(
          "{{\"model\":{},\"data\":{},\"eval_loss\":{},\"{}\":{}{}{},\"tokens\":{}{}{},\"part\":\"{}\"}}\n",
          json_quoted(model.source), json_quoted(data.path), in_json(loss),
          is_number      ? "rmse"
          : has_accuracy ? "accuracy"
                         : "perplexity",
          in_json(is_number      ? std::sqrt(loss)
                  : has_accuracy ? accuracy
                                 : perplexity),
          answered  ? figures_in_json(*answered)
          : rewards ? in_json(*rewards)
                    : "",
          data.masks ? fmt::format(",\"accuracy\":{},\"mask_rate\":{}", in_json(accuracy),
                                   data.mask.rate.value_or(default_mask_rate))
                     : "",
          token_count,
          has_accuracy || is_number ? fmt::format(",\"{}\":{}",
                                                  data.has_pairs ? "pairs"
                                                  : is_of_words  ? "words"
                                                                 : "texts",
                                                  count)
                                    : "",
          may_leave_out ? "," + left_out_members(tokens.counts) : "", takes_all ? "all" : "held_out");
    } else if (has_accuracy || is_number) {
      const char* const what = data.has_pairs ? "pairs" : is_of_words ? "texts of words" : "texts";
      const std::string over =
          samples == there
              ? fmt::format("the {} {}{}", grouped(tokens.held_out_examples), what,
                            takes_all ? "" : " held out")
              : fmt::format("the {} in {} samples{}", what, grouped(samples), takes_all ? "" : " held out");
      std::string rest = data.has_pairs ? told_of_pairs(tokens.counts) : "";
      if (is_of_words && tokens.counts.unlearned)
        rest = fmt::format("; {} words are left out, as samples have no token of theirs",
                           grouped(tokens.counts.unlearned));
      fmt::print("evaluation loss {:.4f}, {} {:.4f}, over {} of {}{}\n", loss,
                 is_number ? "RMSE" : "accuracy", is_number ? std::sqrt(loss) : accuracy, over, data.path,
                 rest);
      if (!line.empty()) fmt::print("{}\n", line);
    } else if (data.masks) {
      fmt::print(
          "evaluation loss {:.4f}, perplexity {:.4g} and accuracy {:.4f} of the {} hidden tokens in {} "
          "samples {}of {}\n",
          loss, perplexity, accuracy, grouped(count), grouped(samples), takes_all ? "" : "held out ",
          data.path);
    } else {
      const std::string over =
          tokens.counts.examples
              ? fmt::format("the {} tokens that are learned in {} samples", grouped(count), grouped(samples))
              : grouped(count) + " tokens";
      fmt::print(
          "evaluation loss {:.4f}, perplexity {:.4g}, over {} of {}{}{}\n", loss, perplexity, over, data.path,
          !takes_all                                   ? ", in the part that training on it holds out"
          : samples < there || (there == 0 && batches) ? fmt::format(", in {} batches of it", grouped(wanted))
          : tokens.counts.examples
              ? ", every example once"
              : fmt::format(", each once, in windows of {} end to end", grouped(info.sequence)),
          told_left_out(tokens.counts, false));
    }
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

  // null for numbers that are not finite, which JSON cannot write.
  static std::string in_json(double value) {
    return std::isfinite(value) ? fmt::format("{}", value) : "null";
  }

  static std::string in_json(const Rewards& rewards) {
    return fmt::format(",\"reward_margin\":{},\"reward_chosen\":{},\"reward_rejected\":{}",
                       in_json(rewards.margin()), in_json(rewards.chosen), in_json(rewards.rejected));
  }
  static std::string line_of(const Rewards& rewards) {
    return fmt::format("reward margin {:.4f}: of chosen answers {:.4f}, of rejected ones {:.4f}",
                       rewards.margin(), rewards.chosen, rewards.rejected);
  }

  static std::string figures_in_json(const Answered& answered) {
    std::string text;
    for (const auto& [name, value] : answered.figures)
      text += fmt::format(",\"{}\":{}", name, in_json(value));
    return answered.by_type.empty() ? text : text + ",\"by_type\":" + answered.by_type;
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
    const std::string who = reference_model.empty()
                                ? fmt::format("{} began with {}", run_of(model), before.source)
                                : fmt::format("--reference-model {}", before.source);
    try {
      return open_inference(before, plan_before);
    } catch (const Failure& failure) {
      Failure explained(failure.exit_code,
                        fmt::format("{}: {}{}", who, failure.what(),
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
    // With the template and the end of text of the run.
    const OpenData pairs = open_data(
        data, data.source,
        {tokenization, model, opened.model, query(opened.plan).sequence, plan.document_end, {}, false});
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
                                                  "Say the loss of a model on a file, and of a classifier, a "
                                                  "masked language model or a preference its accuracy.");
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
