// metrics.jsonl: one JSON object a line, in the order of the run.
//
//   {"step":1,"loss":5.54,"grad_norm":1.9,"lr":1e-05,"tokens":768,"seconds":0.03,"tokens_per_second":25600,"sample_tokens_per_second":25600}
//   {"step":0,"examples":15,"left_out":{"empty":0,"marked":0,"no_room":5,"alike":0}}     where examples, or pairs, are left out
//   {"step":250,"eval_loss":2.41}         and of a classifier "eval_accuracy", of numbers "eval_rmse". Where all that is
//                                         held out was evaluated on, also what `eval` tells: "eval_f1_macro", "eval_pearson", "eval_reward_margin" and the like
//
// "tokens" are those that are learned, so far, and "tokens_per_second" too; where texts, words or pairs are learned, the tokens that these have, and "texts", "words" or "pairs"
// counts what is learned. "sample_tokens_per_second" are all tokens of samples, with padding, as a plan counts them.
//
// A step without an update is told as {"step":N,...,"skipped_batch":M,"skip_reason":"not_finite"}, or "no_target" or
// "outlier"; a loss that is not finite as null, and so is that of an evaluation without a target, with the "skip_reason":"no_target". fp16 has "loss_scale", that of the next step: behind one that was not finite half of what it had.
#pragma once
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stowage.h"

namespace command {

struct Evaluation {
  double loss = 0;
  bool has_target = true;   // else it is the mean of nothing
  std::optional<double> accuracy, rmse;   // of classifiers and preferences; of numbers
  std::vector<std::pair<std::string, double>> figures;   // of answers to all that is held out: f1_macro, …
  std::optional<double> figure(std::string_view name) const;
};

// Which ones lines of steps have; tokens of a batch's samples; what is learned where that is not tokens, and how many tokens there were before.
struct MetricFields { bool accuracy, loss_scale; uint64_t batch_tokens; const char* unit; uint64_t tokens_before; };

class Metrics {
 public:
  // Appends to `path`; nothing is buffered between lines. Throws where it cannot be opened.
  Metrics(const std::string& path, MetricFields fields);
  // Allocate nothing. A line that cannot be written is kept, see `check`, and a run that goes on would lose more of them.
  void step(const stw_progress& now, bool skipped);
  void evaluation(uint64_t step, const Evaluation& evaluation);
  void no_evaluation(uint64_t step);   // for want of a target
  bool has_failed() const { return failed_ != 0; }
  // Throws where a line could not be written.
  void check() const;
  // Tries once more, for a checkpoint behind that line: whether all lines are there.
  bool write_rest();

  // The lines that a run which continues after `step` (and `batches` consumed) keeps: an interrupted run may have
  // gone on past its last checkpoint, and its last line may be torn. Evaluations at `step` itself are kept where
  // `keep_evaluation` says so.
  static std::string kept(const std::string& text, uint64_t step, uint64_t batches, bool keep_evaluation);

 private:
  void write(std::string_view line);

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  MetricFields fields_;
  std::unique_ptr<std::FILE, Close> file_;
  int failed_ = 0;     // errno of the first line that could not be written
  std::string rest_;   // what is missing of it
};

// What a metrics file says, for curves and summaries.
struct MetricPoint {
  double step, value;
};
struct MetricHistory {
  std::vector<MetricPoint> losses, evaluations, accuracies, errors;   // accuracies: of classifiers; errors: of numbers, root mean square
};
MetricHistory read_metrics(const std::string& text);
// What a line says of the evaluation at this step, the last one there; or unset, of the last of all. One without a target says nothing.
std::optional<Evaluation> evaluation_at(const std::string& text, std::optional<uint64_t> step);
std::optional<double> last_rate(const std::string& text);   // of the last step
uint64_t tokens_so_far(const std::string& text);            // up to the last step

}  // namespace command
