// `stowage eval`: the loss of a model on the held-out part of a file, or on all of it.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "commands.h"
#include "data.h"
#include "entities.h"
#include "evaluation_line.h"
#include "files.h"
#include "inference.h"
#include "label_metrics.h"
#include "labelled.h"
#include "number_checks.h"
#include "pairs.h"
#include "reference.h"
#include "run_settings.h"
#include "tagged.h"
#include "units.h"
#include "value_metrics.h"

namespace command {
namespace {

constexpr uint64_t default_batches = 20;

std::optional<float> number_of_run(const std::string& run, const char* setting) {
  const auto text = setting_of_run(run, setting);
  return text ? std::optional(std::strtof(text->c_str(), nullptr)) : std::nullopt;
}

// The model that a run's training began with, as its settings name it, over what its adapters were over.
std::pair<ModelFlags, PlanFlags> beginning_of(const std::string& run, PlanFlags plan) {
  ModelFlags model;
  const auto source = setting_of_run(run, "model");
  if (!source)
    throw Failure(exit_usage, fmt::format("--preference {}: is against the model that training began with, which no settings.json in {} names; use --reference-model", plan.preference, run));
  model.source = *source;
  model.weights = setting_of_run(run, "weights").value_or("");
  model.adapter = setting_of_run(run, "adapter").value_or("");
  if (const auto seed = setting_of_run(run, "seed")) model.seed = std::strtoull(seed->c_str(), nullptr, 10);
  if (const auto rank = setting_of_run(run, "lora")) {   // new ones change nothing, but are what codes are below
    model.adapter_rank = static_cast<uint32_t>(std::strtoul(rank->c_str(), nullptr, 10));
    const std::string of_run = read_text_if_there(run + "/plan.json").value_or("");
    if (plan.quantize == "auto") plan.quantize = json_string(of_run, "numerics", "quantize").value_or("auto");
    if (plan.quantize_embeddings == "auto") plan.quantize_embeddings = json_string(of_run, "numerics", "quantize_embeddings").value_or("auto");
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
  bool json = false, all = false;

  void run() {
    take_defaults_of_run(model, plan);
    const bool has_preference = plan.preference != "auto";
    find_examples(plan, data, model);
    if (data.masks) take_masks_of_run(data.mask, run_of(model));
    if (data.has_pairs) take_preference_of_run(has_preference);
    if (!data.masks) warn_of_documents(model, plan);
    if (!plan.batch) plan.batch = 8;
    const bool is_against = data.has_pairs && has_reference(plan.preference);
    if (!is_against && !reference_model.empty()) throw Failure(exit_usage, "--reference-model: is for data with pairs of answers, and the preferences dpo and ipo");
    require_pairs(preference, data);
    std::optional<TemporaryReference> reference;
    const Inference opened = answering([&] {
      if (is_against) write_reference(reference);
      return open_inference(model, plan, data.has_pairs ? preference : PreferenceFlags{});
    });
    const stw_plan_info info = query(opened.plan);
    const stw_model_info about = query(opened.model);
    const auto tokenization = Tokenization::of_file(data.tokenizer, data.path, data.source.has_tokens(), run_of(model), about.vocabulary);
    const std::optional<double> held_out = all ? std::optional(1.0) : std::nullopt;
    OpenData tokens = open_data(data, data.source, {tokenization, model, opened.model, info.sequence, plan.document_end, held_out, true, "evaluate on --all of it"});
    if (reference) tokens.dataset = tokens.against(reference->path());
    const uint64_t there = query(tokens.dataset).evaluation_samples;
    const uint64_t wanted = batches.value_or(all && there ? (there + info.global_batch - 1) / info.global_batch : default_batches);
    double loss = 0;
    call([&](stw_error* error) {
      const EvaluationLine line(opened.trainer.get(), "evaluation", true);
      return stw_trainer_evaluate(opened.trainer.get(), tokens.dataset.get(), wanted, &loss, error);
    });
    const uint64_t samples = there ? std::min(there, wanted * info.global_batch) : wanted * info.global_batch, count = samples * info.sequence;
    const double perplexity = std::exp(loss);
    const bool is_number = about.task == STW_TASK_NUMBER, has_accuracy = !is_number && (about.labels > 0 || data.has_pairs);
    const double accuracy = query(opened.trainer).evaluation_accuracy;
    std::optional<Figures> figures;
    const bool is_of_words = about.task == STW_TASK_TOKEN_LABEL;
    if (about.labels > 0 && all && samples == there) figures = is_of_words ? answer_all_words(opened, tokenization, info.sequence) : answer_all(opened, tokenization, info.sequence);
    if (json) {
      fmt::print("{{\"model\":{},\"data\":{},\"eval_loss\":{},\"{}\":{}{}{},\"tokens\":{}}}\n", json_quoted(model.source), json_quoted(data.path), in_json(loss),
                 is_number ? "rmse" : has_accuracy ? "accuracy" : "perplexity", in_json(is_number ? std::sqrt(loss) : has_accuracy ? accuracy : perplexity), figures ? figures->json : "",
                 data.masks ? fmt::format(",\"accuracy\":{},\"mask_rate\":{}", in_json(accuracy), data.mask.rate.value_or(default_mask_rate)) : "", count);
    } else if (has_accuracy || is_number) {
      const char* const what = data.has_pairs ? "pairs" : is_of_words ? "texts of words" : "texts";
      const std::string over = all && samples == there ? fmt::format("the {} {}", grouped(tokens.counts.examples), what) : fmt::format("the {} in {} samples", what, grouped(samples));
      std::string rest = data.has_pairs ? left_out(tokens.counts) : "";
      if (is_of_words && tokens.counts.unlearned) rest = fmt::format("; {} words are left out, as samples have no token of theirs", grouped(tokens.counts.unlearned));
      fmt::print("evaluation loss {:.4f}, {} {:.4f}, over {} of {}{}\n", loss, is_number ? "RMSE" : "accuracy", is_number ? std::sqrt(loss) : accuracy, over, data.path, rest);
      if (figures) fmt::print("{}\n", figures->line);
    } else if (data.masks) {
      fmt::print("evaluation loss {:.4f}, perplexity {:.4g} and accuracy {:.4f} of the hidden tokens in {} samples of {}\n", loss, perplexity, accuracy, grouped(samples), data.path);
    } else {
      const std::string over = tokens.counts.examples ? fmt::format("what is learned in {} samples", grouped(samples)) : grouped(count) + " tokens";
      fmt::print("evaluation loss {:.4f}, perplexity {:.4g}, over {} of {}\n", loss, perplexity, over, data.path);
    }
  }

  struct Figures { std::string json, line; };   // members of an object, each after a comma; and for people

  // JSON has no way to write what is not finite.
  static std::string in_json(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

  // The answers to all texts of the file, against their labels.
  Figures answer_all(const Inference& opened, const Tokenization& tokenization, uint64_t sequence) const {
    const std::vector<std::string> names = labels_of(opened.model);
    const std::vector<LabelledText> texts = read_labelled(data.source, data.fields, true);
    const stw_model_info about = query(opened.model);
    const bool is_one_label = about.task == STW_TASK_LABEL;
    const std::vector<uint32_t> labels = is_one_label ? label_numbers(texts, names) : std::vector<uint32_t>();
    const std::vector<float> values = is_one_label ? std::vector<float>() : label_values(texts, names, about.task);
    std::vector<float> all_logits;
    for (size_t first = 0; first < texts.size(); first += texts_at_once) {
      std::vector<SeenText> seen;
      for (size_t i = first; i < std::min(first + texts_at_once, texts.size()); ++i) seen.push_back(tokens_of(texts[i], tokenization, about, sequence));
      const std::vector<float> logits = label_logits(opened.trainer.get(), seen, names.size());
      all_logits.insert(all_logits.end(), logits.begin(), logits.end());
    }
    if (about.task == STW_TASK_LABELS) return figures_of(labels_metrics(values, all_logits, names.size()));
    if (about.task == STW_TASK_NUMBER) return figures_of(number_metrics(values, all_logits, names.size()));
    std::vector<uint32_t> answers;
    for (auto at = all_logits.begin(); at != all_logits.end(); at += static_cast<std::ptrdiff_t>(names.size()))
      answers.push_back(static_cast<uint32_t>(std::max_element(at, at + static_cast<std::ptrdiff_t>(names.size())) - at));
    return figures_of(label_metrics(labels, answers, names.size()));
  }

  // The same for words. Of tags that say where entities begin the entities count, of others the words.
  std::optional<Figures> answer_all_words(const Inference& opened, const Tokenization& tokenization, uint64_t sequence) const {
    const std::vector<std::string> names = labels_of(opened.model);
    const std::vector<TaggedText> texts = read_tagged(data.source, data.fields, true);
    const std::vector<std::vector<uint32_t>> numbers = tag_numbers(texts, names);
    const stw_model_info about = query(opened.model);
    std::optional<EntityScores> entities;
    if (are_entity_tags(names)) entities.emplace();
    std::vector<uint32_t> labels, answers;
    for (size_t first = 0; first < texts.size(); first += texts_at_once) {
      std::vector<SeenWords> seen;
      for (size_t i = first; i < std::min(first + texts_at_once, texts.size()); ++i)
        seen.push_back(tokens_of_words(texts[i].words, texts[i].place, tokenization, about, sequence));
      const std::vector<std::vector<float>> logits = word_logits(opened.trainer.get(), seen, names.size());
      for (size_t i = 0; i < seen.size(); ++i) {
        std::vector<std::string> wanted, given;
        auto row = logits[i].begin();
        for (size_t w = 0; w < seen[i].first.size(); ++w) {
          if (seen[i].first[w] < 0) continue;
          const auto end = row + static_cast<std::ptrdiff_t>(names.size());
          labels.push_back(numbers[first + i][w]);
          answers.push_back(static_cast<uint32_t>(std::max_element(row, end) - row));
          row = end;
          wanted.push_back(names[labels.back()]), given.push_back(names[answers.back()]);
        }
        if (entities) entities->add(wanted, given);
      }
    }
    if (entities) return figures_of(*entities);
    if (labels.empty()) return std::nullopt;
    return figures_of(label_metrics(labels, answers, names.size()));
  }

  static Figures figures_of(const EntityScores& scores) {
    const auto figures = [](const EntityCounts& c) {
      return fmt::format("\"precision\":{},\"recall\":{},\"f1\":{},\"entities\":{}", c.precision(), c.recall(), c.f1(), c.wanted);
    };
    std::string types;
    for (const auto& [type, counts] : scores.by_type) types += fmt::format("{}{}:{{{}}}", types.empty() ? "" : ",", json_quoted(type), figures(counts));
    return {fmt::format(",{},\"by_type\":{{{}}}", figures(scores.all), types),
            fmt::format("entities: precision {:.4f}, recall {:.4f}, F1 {:.4f}; {} in the texts, {} found", scores.all.precision(), scores.all.recall(), scores.all.f1(),
                        grouped(scores.all.wanted), grouped(scores.all.given))};
  }

  static Figures figures_of(const LabelMetrics& m) {
    return {fmt::format(",\"f1_macro\":{},\"f1_micro\":{},\"matthews\":{}{}", m.f1_macro, m.f1_micro, m.matthews, m.f1 ? fmt::format(",\"f1\":{}", *m.f1) : ""),
            fmt::format("F1 {}{:.4f} macro, {:.4f} micro; Matthews correlation {:.4f}", m.f1 ? fmt::format("{:.4f} of the second label, ", *m.f1) : "", m.f1_macro, m.f1_micro, m.matthews)};
  }
  static Figures figures_of(const LabelsMetrics& m) {
    return {fmt::format(",\"f1_macro\":{},\"f1_micro\":{}", m.f1_macro, m.f1_micro), fmt::format("F1 {:.4f} macro, {:.4f} micro; accuracy counts texts whose labels are all right", m.f1_macro, m.f1_micro)};
  }
  static Figures figures_of(const NumberMetrics& m) {
    const auto said = [](double x) { return std::isfinite(x) ? fmt::format("{:.4f}", x) : std::string("undefined"); };
    return {fmt::format(",\"mse\":{},\"mae\":{},\"pearson\":{},\"spearman\":{}", in_json(m.mse), in_json(m.mae), in_json(m.pearson), in_json(m.spearman)),
            fmt::format("MSE {:.4f}, MAE {:.4f}; correlation {} (Pearson), {} (Spearman)", m.mse, m.mae, said(m.pearson), said(m.spearman))};
  }

  // What was not said of the preference is the run's.
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
    const std::string who = reference_model.empty() ? fmt::format("{} began with {}", run_of(model), before.source) : fmt::format("--reference-model {}", before.source);
    try {
      return open_inference(before, plan_before);
    } catch (const Failure& failure) {
      Failure told(failure.exit_code, fmt::format("{}: {}{}", who, failure.what(), reference_model.empty() ? "; name another with --reference-model" : ""));
      told.bytes_needed = failure.bytes_needed;
      throw told;
    }
  }

  // By the model before, which is gone when the trained one is opened.
  void write_reference(std::optional<TemporaryReference>& reference) const {
    ModelFlags given;
    given.source = reference_model;
    const auto [before, plan_before] = reference_model.empty() ? beginning_of(run_of(model), plan) : std::pair(given, plan);
    const Inference opened = open_beginning(before, plan_before);
    const auto tokenization = Tokenization::of_file(data.tokenizer, data.path, data.source.has_tokens(), run_of(model), query(opened.model).vocabulary);
    // As the run has them: its template, its end of text.
    const OpenData pairs = open_data(data, data.source, {tokenization, model, opened.model, query(opened.plan).sequence, plan.document_end, {}, false});
    reference.emplace(opened.trainer, pairs);
  }

  // That it does not fit is an answer too.
  template <class Open>
  Inference answering(const Open& open) const {
    try {
      return open();
    } catch (const Failure& failure) {
      if (json && failure.exit_code == exit_does_not_fit)
        fmt::print("{{\"model\":{},\"data\":{},\"fits\":false,\"minimum_vram_bytes\":{}}}\n", json_quoted(model.source),
                   json_quoted(data.path), failure.bytes_needed ? fmt::format("{}", failure.bytes_needed) : "null");
      throw;
    }
  }
};

}  // namespace

void add_eval(CLI::App& application) {
  auto self = std::make_shared<EvalCommand>();
  CLI::App& command = *application.add_subcommand("eval", "Say the loss of a model on the held-out part of a file, and of a classifier, a masked language model or a preference its accuracy.");
  command.footer(
      "For a folder that `stowage train` wrote, --batch and --seq default to those of the run, and the run's precision\n"
      "is computed in, so that the loss is the one of the run's last evaluation.");
  add_model_flags(command, self->model);
  add_data_flags(command, self->data);
  add_request_flags(command, self->plan);
  command.get_option("--vram")->description("Bounds the peak of the memory. Default: the smallest that works.");
  command.get_option("--batch")->description("Samples of a batch. Default: that of the run, else 8.");
  command.get_option("--seq")->description("Tokens of a sample. Default: that of the run, else all positions, at most 1024. nano: 64.");
  add_threads_flag(command, self->plan);
  add_document_flag(command, self->plan);
  add_quantize_flags(command, self->plan);
  add_preference_flag(command, self->plan);
  add_preference_flags(command, self->preference);
  command.add_option("--reference-model", self->reference_model, "What the preferences dpo and ipo are against. Default: the model that the run's training began with.")
      ->check(not_empty())
      ->type_name("MODEL");
  command.add_option("--eval-batches", self->batches, "Batches to evaluate. Default: 20, with --all and examples all of them.")
      ->check(positive())
      ->type_name("N");
  command.add_flag("--all", self->all, "Evaluate on all of the file, not on the last tenth alone, which training holds out.");
  command.add_flag("--json", self->json, "Print one JSON object, and nothing else, to standard output.");
  command.callback([self] { self->run(); });
}

}  // namespace command
