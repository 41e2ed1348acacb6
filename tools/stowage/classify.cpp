// `stowage classify`: which of a classifier's labels a text has, and how sure that is.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>
#include <span>

#include "commands.h"
#include "data.h"
#include "failure.h"
#include "files.h"
#include "inference.h"
#include "labelled.h"
#include "number_checks.h"
#include "prompt.h"
#include "units.h"

namespace command {
namespace {

constexpr uint64_t longest_default = 1024;   // tokens, of a model that no run tells more of
constexpr uint64_t rows_of_encoder = 512;    // tokens of the texts that an encoder reads at once

struct ClassifyCommand {
  ModelFlags model;
  PlanFlags plan;
  LabelFields fields;
  std::string tokenizer = "auto", data;
  std::vector<std::string> texts;
  uint64_t top = 1;
  bool json = false;

  void run() {
    take_defaults_of_run(model, plan);
    plan.batch = 1;
    const Model asked = open_model(model);
    const stw_model_info about = query(asked);
    const std::vector<std::string> labels = labels_of(asked);
    if (labels.empty())
      throw Failure(exit_usage, fmt::format("{}: is {}: `stowage train` makes a classifier of it, from texts with labels", model.source,
                                            about.generates ? "a language model" : about.task == STW_TASK_MASKED_LANGUAGE_MODEL ? "a masked language model" : "an encoder without labels"));
    const auto tokenization = Tokenization::of_file(tokenizer, data.empty() ? "--text" : data, run_of(model), about.vocabulary);
    // No longer than the samples it was trained on: later positions may never have been trained.
    check_sequence(plan.sequence, about.positions);
    const uint64_t most = plan.sequence.value_or(std::min(about.positions, longest_default));
    uint64_t longest = 2;
    std::vector<SeenText> seen;
    for (const LabelledText& text : all_texts()) {
      seen.push_back(tokens_of(text, tokenization, about, most));
      longest = std::max<uint64_t>(longest, seen.back().tokens.size());
    }
    // An encoder reads several texts at once, as many as fit a sample.
    plan.sequence = about.generates ? longest : std::max(longest, std::min<uint64_t>(about.positions, rows_of_encoder));
    const Inference opened = open_inference(model, plan);
    for (size_t first = 0; first < seen.size(); first += texts_at_once)
      answer(opened.trainer.get(), std::span(seen).subspan(first, std::min(texts_at_once, seen.size() - first)), labels);
  }

  std::vector<LabelledText> all_texts() const {
    std::vector<LabelledText> all;
    for (const std::string& text : texts) all.push_back({text, "", "--text"});
    if (data.empty()) {
      if (all.empty()) throw Failure(exit_usage, "--text or --data is required: what to classify");
      return all;
    }
    for (LabelledText& text : is_csv(data) || holds_examples(data) ? read_labelled(data, fields, false) : read_lines(data)) all.push_back(std::move(text));
    return all;
  }

  void answer(stw_trainer* trainer, std::span<const SeenText> seen, const std::vector<std::string>& labels) const {
    const std::vector<float> logits = label_logits(trainer, seen, labels.size());
    for (size_t text = 0; text < seen.size(); ++text) print(probabilities(std::span(logits).subspan(text * labels.size(), labels.size())), labels);
  }

  static std::vector<double> probabilities(std::span<const float> logits) {
    const double largest = *std::max_element(logits.begin(), logits.end());
    std::vector<double> shares(logits.size());
    std::transform(logits.begin(), logits.end(), shares.begin(), [&](float x) { return std::exp(static_cast<double>(x) - largest); });
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    for (double& share : shares) share /= sum;
    return shares;
  }

  // On one line, whatever it is.
  static std::string name_of(const std::string& label) {
    const bool breaks = std::any_of(label.begin(), label.end(), [](unsigned char c) { return c < 0x20; });
    return breaks ? json_quoted(label) : ::isatty(STDOUT_FILENO) ? printable(label) : label;
  }

  // The most probable first; of equal ones the first.
  void print(const std::vector<double>& shares, const std::vector<std::string>& labels) const {
    std::vector<size_t> order(shares.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return shares[a] > shares[b]; });
    order.resize(std::min<size_t>(order.size(), top));
    std::string line;
    for (const size_t i : order) {
      const std::string separator = line.empty() ? "" : json ? "," : "\t";
      if (json) line += fmt::format("{}{{\"label\":{},\"score\":{}}}", separator, json_quoted(labels[i]), shares[i]);
      else line += fmt::format("{}{} {:.4f}", separator, name_of(labels[i]), shares[i]);
    }
    const std::string whole = json && top > 1 ? "[" + line + "]\n" : line + "\n";
    std::fwrite(whole.data(), 1, whole.size(), stdout);
  }
};

}  // namespace

void add_classify(CLI::App& application) {
  auto self = std::make_shared<ClassifyCommand>();
  CLI::App& command = *application.add_subcommand("classify", "Say which label of a classifier a text has.");
  command.footer("A line for each text, in their order: the label and its probability. Texts are cut to the samples that the classifier was trained on.");
  add_model_flags(command, self->model);
  command.add_option("--text", self->texts, "What to classify. May be given several times.")->allow_extra_args(false)->type_name("TEXT");
  command.add_option("--data", self->data, "A file of texts: .csv or .jsonl, or else a line each.")->check(not_empty())->type_name("FILE");
  add_field_flags(command, self->fields, false);
  command.add_option("--top", self->top, "The K most probable labels, not one alone.")->check(positive())->type_name("K");
  command.add_flag("--json", self->json, "A JSON object a line, {\"label\": …, \"score\": …}; with --top a list of them.");
  add_tokenizer_flag(command, self->tokenizer);
  command.add_option("--seq", self->plan.sequence, "Longest text. Default: the samples of the training run, else the model's, at most 1024 tokens.")
      ->check(whole_number(2))
      ->type_name("N");
  command.add_option("--device", self->plan.device, "cpu or cuda.")->type_name("NAME");
  add_bytes(command, "--vram,--memory", self->plan.memory_bytes, "Bounds the memory. Default: the smallest that works.");
  add_quantize_flags(command, self->plan);
  add_threads_flag(command, self->plan);
  command.callback([self] { self->run(); });
}

}  // namespace command
