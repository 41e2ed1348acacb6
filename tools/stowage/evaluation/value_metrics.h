// How good answers with several labels, and numbers, are, in the figures that people report. Definitions: scikit-learn's accuracy_score, f1_score,
// mean_squared_error and mean_absolute_error, SciPy's pearsonr and spearmanr.
#pragma once
#include <cstddef>
#include <span>

namespace command {

struct LabelsMetrics {
  double accuracy = 0;   // share of the texts of which all labels are right
  double f1_macro = 0;   // mean of all labels' F1; that of a label that no text has and no answer names is 0
  double f1_micro = 0;   // of all labels together
};

// `values` are the right ones and `logits` the answers, `count` a text. A label is there where its value is above 0.5, and named where its logit is
// above 0.
LabelsMetrics labels_metrics(std::span<const float> values, std::span<const float> logits, size_t count);

// Where a text has several numbers, each is the mean of theirs.
struct NumberMetrics {
  double mse = 0, mae = 0;
  double rmse = 0;              // root of mse
  double pearson = 0;           // correlation of answers and numbers, from -1 to 1; NaN where either are all alike
  double spearman = 0;          // that of their ranks, of which equal numbers share the mean
};
NumberMetrics number_metrics(std::span<const float> values, std::span<const float> answers, size_t count);

}  // namespace command
