// How good a classifier's answers are, in the figures that people report. Definitions: scikit-learn's f1_score and matthews_corrcoef.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace command {

struct LabelMetrics {
  double accuracy = 0;
  double f1_macro = 0;       // mean of the labels' F1, over the labels that are right for a text or were given as an answer
  double f1_micro = 0;       // of all answers together; where a text has one label this is the accuracy
  double matthews = 0;       // correlation of answers and labels, from -1 to 1; 0 where either are all alike
  std::optional<double> f1;  // of two labels: that of the positive one
};

// `labels` are the right ones, `answers` those that were given, both below `count`; `positive` is the label of f1. Both have the same length, at least 1.
LabelMetrics label_metrics(std::span<const uint32_t> labels, std::span<const uint32_t> answers, size_t count, size_t positive = 1);

}  // namespace command
