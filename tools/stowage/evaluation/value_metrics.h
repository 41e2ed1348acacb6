// Metrics of answers with several labels and of answers that are numbers. Definitions: scikit-learn's
// accuracy_score, f1_score, mean_squared_error and mean_absolute_error; SciPy's pearsonr and spearmanr.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace command {

struct LabelsMetrics {
  double accuracy = 0;  // share of texts in which all labels are correct
  double f1_macro = 0;  // mean F1 of all labels; 0 for a label that occurs neither in texts nor in answers
  double f1_micro = 0;  // F1 over all labels together
};

// Counts texts and their answers one by one, in memory for the labels alone.
class LabelsCounts {
 public:
  explicit LabelsCounts(size_t labels) : correct_(labels), expected_(labels), predicted_(labels) {}
  // `labels` are the text's own, ascending, and `logits` the answer: it names a label if its logit is above
  // 0.
  void add(std::span<const uint32_t> labels, std::span<const float> logits);
  LabelsMetrics metrics() const;

 private:
  std::vector<double> correct_, expected_, predicted_;  // texts by label
  double hits_ = 0, texts_ = 0;                         // hits: texts in which all labels are correct
};

// If a text has several numbers, each metric is the mean over them. (rmse is the root of that mean.)
struct NumberMetrics {
  double mse = 0, mae = 0;
  double rmse = 0;  // root of mse
  // correlation of answers and numbers, from -1 to 1; NaN if all answers or all numbers are equal
  double pearson = 0;
  double spearman = 0;  // the same for their ranks; equal numbers share their mean rank
};
NumberMetrics number_metrics(std::span<const float> values, std::span<const float> answers, size_t count);

}  // namespace command
