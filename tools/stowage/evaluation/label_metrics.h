// Metrics of a classifier's answers. Definitions: scikit-learn's f1_score and matthews_corrcoef.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace command {

struct LabelMetrics {
  double accuracy = 0;
  double f1_macro = 0;  // mean F1 of the labels that occur in texts or in answers
  double f1_micro = 0;  // F1 over all answers; with one label for each text it equals the accuracy
  // Matthews correlation of answers and labels, from -1 to 1; 0 if all answers or all labels are equal
  double matthews = 0;
  std::optional<double> f1;  // with two labels: F1 of the positive one
};

// `labels` are the correct ones and `answers` the model's, all below `count`. `positive` is the label of f1.
// Both spans have the same length, at least 1.
LabelMetrics label_metrics(std::span<const uint32_t> labels, std::span<const uint32_t> answers, size_t count,
                           size_t positive = 1);

}  // namespace command
