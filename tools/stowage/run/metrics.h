// metrics.jsonl: one JSON object a line, in the order of the run.
//
//   {"step":1,"loss":5.54,"grad_norm":1.9,"lr":1e-05,"tokens":768,"seconds":0.03,"tokens_per_second":25600,
//    "sample_tokens_per_second":25600}
//   {"step":0,"examples":15,"left_out":{"empty":0,"marked":0,"no_room":5,"alike":0}}
//   {"step":250,"eval_loss":2.41}
//
// The line with "left_out" is written if examples or pairs are left out.
//
// Evaluations of a classifier also have "eval_accuracy", those of numbers "eval_rmse". If the whole held-out
// part was evaluated, they also have the metrics of `eval`, such as "eval_f1_macro", "eval_pearson" and
// "eval_reward_margin".
//
// "tokens" counts the learned tokens so far, and "tokens_per_second" is their rate. If texts, words or pairs
// are learned, these two count the tokens of the texts, words or pairs, and "texts", "words" or "pairs"
// counts the items. "sample_tokens_per_second" is the rate of all tokens of samples, including padding. A
// plan predicts this rate.
//
// A step without an update is {"step":N,...,"skipped_batch":M,"skip_reason":"not_finite"}, or "no_target" or
// "outlier". A loss that is not finite is null. An evaluation without a target has the loss null and
// "skip_reason":"no_target". Runs in fp16 have "loss_scale", which is that of the next step: after a step
// that was not finite it is half of the previous one.
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
  bool has_target = true;                // false: nothing was evaluated, and `loss` is undefined
  std::optional<double> accuracy, rmse;  // accuracy: classifiers and preferences; rmse: numbers
  std::vector<std::pair<std::string, double>> figures;  // metrics of the whole held-out part: f1_macro, …
  std::optional<double> figure(std::string_view name) const;
};

// accuracy, loss_scale: whether lines of steps have the field. batch_tokens: tokens in all samples of a
// batch. unit: the learned unit; null: tokens. tokens_before: learned tokens before the run began or was
// resumed.
struct MetricFields {
  bool accuracy, loss_scale;
  uint64_t batch_tokens;
  const char* unit;
  uint64_t tokens_before;
};

class Metrics {
 public:
  // Appends to `path`, without a buffer between lines. Throws a Failure if the file cannot be opened.
  Metrics(const std::string& path, MetricFields fields);
  // These functions do not allocate memory. If a line cannot be written, the rest of it is kept for
  // write_rest(), and no further lines are written. The run should then stop and call check().
  void step(const stw_progress& now, bool skipped);
  void evaluation(uint64_t step, const Evaluation& evaluation);
  void no_evaluation(uint64_t step);  // there was no target
  bool has_failed() const { return failed_ != 0; }
  // Throws a Failure if a line could not be written.
  void check() const;
  // Tries once more to write the rest of the line, so that a checkpoint after it can be saved. Returns
  // whether the file is complete.
  bool write_rest();

  // The lines that a run keeps when it resumes after `step` with `batches` consumed. The interrupted run may
  // have gone on past its last checkpoint, and its last line may be incomplete. Evaluations at `step` itself
  // are kept only with `keep_evaluation`.
  static std::string kept(const std::string& text, uint64_t step, uint64_t batches, bool keep_evaluation);

 private:
  void write(std::string_view line);

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  MetricFields fields_;
  std::unique_ptr<std::FILE, Close> file_;
  int failed_ = 0;    // errno of the first line that could not be written; 0: none
  std::string rest_;  // the part of that line that is missing
};

// The content of a metrics file, for curves and summaries.
struct MetricPoint {
  double step, value;
};
struct MetricHistory {
  // accuracies: of classifiers; errors: RMSE, of numbers
  std::vector<MetricPoint> losses, evaluations, accuracies, errors;
};
MetricHistory read_metrics(const std::string& text);
// The last evaluation at this step, or with an unset step the last one of all. Evaluations without a target
// do not count.
std::optional<Evaluation> evaluation_at(const std::string& text, std::optional<uint64_t> step);
std::optional<double> last_rate(const std::string& text);  // learning rate of the last step
uint64_t tokens_so_far(const std::string& text);           // learned tokens up to the last step

}  // namespace command
