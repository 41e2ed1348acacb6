#include "evaluation/label_metrics.h"

#include <cmath>
#include <vector>

namespace command {

LabelMetrics label_metrics(std::span<const uint32_t> labels, std::span<const uint32_t> answers, size_t count,
                           size_t positive) {
  // texts by label: answered correctly, having the label, answered with the label
  std::vector<double> right(count), wanted(count), given(count);
  double hits = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    wanted[labels[i]] += 1;
    given[answers[i]] += 1;
    if (labels[i] != answers[i]) continue;
    right[labels[i]] += 1;
    hits += 1;
  }
  const auto texts = static_cast<double>(labels.size());
  LabelMetrics metrics;
  metrics.accuracy = metrics.f1_micro = hits / texts;
  double sum = 0, seen = 0, products = 0, squares_wanted = 0, squares_given = 0;
  for (size_t k = 0; k < count; ++k) {
    const double all = wanted[k] + given[k];
    const double f1 = all > 0 ? 2 * right[k] / all : 0;
    sum += f1;
    seen += all > 0;
    products += wanted[k] * given[k];
    squares_wanted += wanted[k] * wanted[k];
    squares_given += given[k] * given[k];
    if (count == 2 && k == positive) metrics.f1 = f1;
  }
  metrics.f1_macro = sum / seen;
  const double spread = std::sqrt((texts * texts - squares_wanted) * (texts * texts - squares_given));
  metrics.matthews = spread > 0 ? (hits * texts - products) / spread : 0;
  return metrics;
}

}  // namespace command
