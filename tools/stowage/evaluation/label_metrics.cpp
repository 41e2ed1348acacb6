#include "evaluation/label_metrics.h"

#include <cmath>
#include <vector>

namespace command {

LabelMetrics label_metrics(std::span<const uint32_t> labels, std::span<const uint32_t> answers, size_t count,
                           size_t positive) {
  // texts by label: answered correctly, having the label, answered with the label
  std::vector<double> correct(count), expected(count), predicted(count);
  double hits = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    expected[labels[i]] += 1;
    predicted[answers[i]] += 1;
    if (labels[i] != answers[i]) continue;
    correct[labels[i]] += 1;
    hits += 1;
  }
  const auto texts = static_cast<double>(labels.size());
  LabelMetrics metrics;
  metrics.accuracy = metrics.f1_micro = hits / texts;
  double sum = 0, seen = 0, products = 0, squares_expected = 0, squares_predicted = 0;
  for (size_t k = 0; k < count; ++k) {
    const double all = expected[k] + predicted[k];
    const double f1 = all > 0 ? 2 * correct[k] / all : 0;
    sum += f1;
    seen += all > 0;
    products += expected[k] * predicted[k];
    squares_expected += expected[k] * expected[k];
    squares_predicted += predicted[k] * predicted[k];
    if (count == 2 && k == positive) metrics.f1 = f1;
  }
  metrics.f1_macro = sum / seen;
  const double spread = std::sqrt((texts * texts - squares_expected) * (texts * texts - squares_predicted));
  metrics.matthews = spread > 0 ? (hits * texts - products) / spread : 0;
  return metrics;
}

}  // namespace command
