#include "evaluation/evaluation_report.h"

#include <fmt/format.h>

#include <cmath>

#include "base/files.h"
#include "base/json_fields.h"
#include "base/units.h"
#include "data/pairs.h"

namespace command {
namespace {

using Kind = EvaluationKind;

// The metric that every kind of evaluation has in addition to the loss.
struct MainMetric {
  const char *key, *name;  // in JSON, and for people
  double value;
};

MainMetric main_metric(const EvaluationReport& report) {
  switch (report.kind) {
    case Kind::tokens:
    case Kind::hidden_tokens: return {"perplexity", "perplexity", std::exp(report.loss)};
    case Kind::numbers: return {"rmse", "RMSE", std::sqrt(report.loss)};
    case Kind::labels:
    case Kind::word_labels:
    case Kind::spans:  // not printed
    case Kind::pairs: break;
  }
  return {"accuracy", "accuracy", report.accuracy};
}

bool is_of_tokens(Kind kind) { return kind == Kind::tokens || kind == Kind::hidden_tokens; }

// null for numbers that are not finite, which JSON cannot write.
std::string finite_json(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

std::string rewards_json(const Rewards& rewards) {
  return fmt::format(",\"reward_margin\":{},\"reward_chosen\":{},\"reward_rejected\":{}",
                     finite_json(rewards.margin()), finite_json(rewards.chosen),
                     finite_json(rewards.rejected));
}

std::string figures_json(const Answered& answered) {
  std::string text;
  for (const auto& [name, value] : answered.figures)
    text += fmt::format(",\"{}\":{}", name, finite_json(value));
  return answered.by_type.empty() ? text : text + ",\"by_type\":" + answered.by_type;
}

std::string rewards_line(const Rewards& rewards) {
  return fmt::format("reward margin {:.4f}: of chosen answers {:.4f}, of rejected ones {:.4f}",
                     rewards.margin(), rewards.chosen, rewards.rejected);
}

// Labels, numbers and preferences.
void print_answers(const EvaluationReport& report) {
  const char* const what = report.kind == Kind::pairs         ? "pairs"
                           : report.kind == Kind::word_labels ? "texts of words"
                           : report.kind == Kind::spans       ? "texts with questions"
                                                              : "texts";
  const char* const part = report.is_all ? "" : " held out";
  const std::string over = report.is_complete
                               ? fmt::format("the {} {}{}", grouped(report.examples), what, part)
                               : fmt::format("the {} in {} samples{}", what, grouped(report.samples), part);
  std::string rest = report.kind == Kind::pairs ? pairs_suffix(report.counts) : "";
  if (report.kind == Kind::word_labels && report.counts.unlearned)
    rest = fmt::format("; {} words are left out, because samples contain none of their tokens",
                       grouped(report.counts.unlearned));
  if (report.kind == Kind::spans && report.counts.unlearned)
    rest = fmt::format("; {} of the data's answers are whole in no text", grouped(report.counts.unlearned));
  if (report.kind != Kind::pairs) rest += left_out_suffix(report.counts, false);
  const MainMetric metric = main_metric(report);
  const std::string value =
      report.kind == Kind::spans ? std::string() : fmt::format(", {} {:.4f}", metric.name, metric.value);
  fmt::print("evaluation loss {:.4f}{}, over {} of {}{}\n", report.loss, value, over, report.data, rest);
  const std::string line = report.answered  ? report.answered->line
                           : report.rewards ? rewards_line(*report.rewards)
                                            : "";
  if (!line.empty()) fmt::print("{}\n", line);
}

void print_hidden_tokens(const EvaluationReport& report) {
  fmt::print(
      "evaluation loss {:.4f}, perplexity {:.4g} and accuracy {:.4f} of the {} hidden tokens in {} samples "
      "{}of {}{}\n",
      report.loss, main_metric(report).value, report.accuracy, grouped(report.targets),
      grouped(report.samples), report.is_all ? "" : "held out ", report.data,
      left_out_suffix(report.counts, false));
}

void print_tokens(const EvaluationReport& report) {
  const bool has_examples = report.counts.examples > 0;
  const std::string over = has_examples ? fmt::format("the {} tokens that are learned in {} samples",
                                                      grouped(report.targets), grouped(report.samples))
                                        : grouped(report.targets) + " tokens";
  const std::string part =
      !report.is_all        ? ", in the part that training on it holds out"
      : !report.is_complete ? fmt::format(", in {} batches of it", grouped(report.batches))
      : has_examples        ? ", every example once"
                     : fmt::format(", each once, in windows of {} end to end", grouped(report.sequence));
  fmt::print("evaluation loss {:.4f}, perplexity {:.4g}, over {} of {}{}{}\n", report.loss,
             main_metric(report).value, over, report.data, part, left_out_suffix(report.counts, false));
}

}  // namespace

void print_json(const EvaluationReport& report) {
  const MainMetric metric = main_metric(report);
  std::string text = fmt::format("{{\"model\":{},\"data\":{},\"eval_loss\":{}", json_quoted(report.model),
                                 json_quoted(report.data), finite_json(report.loss));
  if (report.kind != Kind::spans) text += fmt::format(",\"{}\":{}", metric.key, finite_json(metric.value));
  if (report.answered) text += figures_json(*report.answered);
  if (report.rewards) text += rewards_json(*report.rewards);
  if (report.kind == Kind::hidden_tokens)
    text += fmt::format(",\"accuracy\":{},\"mask_rate\":{}", finite_json(report.accuracy), report.mask_rate);
  text += fmt::format(",\"tokens\":{}", report.tokens);
  if (!is_of_tokens(report.kind))
    text += fmt::format(",\"{}\":{}",
                        report.kind == Kind::pairs         ? "pairs"
                        : report.kind == Kind::word_labels ? "words"
                                                           : "texts",
                        report.targets);
  if (report.kind == Kind::spans)
    text += fmt::format(",\"questions\":{},\"lost_answers\":{}",
                        report.answered ? fmt::format("{}", report.answered->questions) : "null",
                        report.counts.unlearned);
  if (report.has_examples) text += "," + left_out_members(report.counts);
  fmt::print("{},\"part\":\"{}\"}}\n", text, report.is_all ? "all" : "held_out");
}

void print_text(const EvaluationReport& report) {
  if (report.kind == Kind::tokens) print_tokens(report);
  else if (report.kind == Kind::hidden_tokens) print_hidden_tokens(report);
  else print_answers(report);
}

}  // namespace command
