#include "evaluation/value_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace command {
namespace {

double f1_of(double correct, double expected, double predicted) {
  return expected + predicted > 0 ? 2 * correct / (expected + predicted) : 0;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto count = static_cast<double>(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / count,
               mean_b = std::accumulate(b.begin(), b.end(), 0.0) / count;
  double products = 0, squares_a = 0, squares_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    products += (a[i] - mean_a) * (b[i] - mean_b);
    squares_a += (a[i] - mean_a) * (a[i] - mean_a);
    squares_b += (b[i] - mean_b) * (b[i] - mean_b);
  }
  const auto are_alike = [](const std::vector<double>& x) {
    return std::all_of(x.begin(), x.end(), [&](double y) { return y == x[0]; });
  };
  if (are_alike(a) || are_alike(b)) return std::numeric_limits<double>::quiet_NaN();
  return std::clamp(products / std::sqrt(squares_a * squares_b), -1.0, 1.0);
}

// Ranks from 1 on. Equal numbers share the mean of their ranks.
std::vector<double> ranks_of(const std::vector<double>& numbers) {
  std::vector<size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return numbers[a] < numbers[b]; });
  std::vector<double> ranks(numbers.size());
  for (size_t first = 0, end; first < order.size(); first = end) {
    for (end = first; end < order.size() && numbers[order[end]] == numbers[order[first]];) ++end;
    for (size_t i = first; i < end; ++i) ranks[order[i]] = static_cast<double>(first + end + 1) / 2;
  }
  return ranks;
}

}  // namespace

void LabelsCounts::add(std::span<const uint32_t> labels, std::span<const float> logits) {
  bool all_right = true;
  auto next = labels.begin();
  for (size_t k = 0; k < logits.size(); ++k) {
    const bool is_there = next != labels.end() && *next == k, is_named = logits[k] > 0;
    next += is_there;
    expected_[k] += is_there;
    predicted_[k] += is_named;
    correct_[k] += is_there && is_named;
    all_right = all_right && is_there == is_named;
  }
  hits_ += all_right;
  texts_ += 1;
}

LabelsMetrics LabelsCounts::metrics() const {
  const auto sum = [](const std::vector<double>& x) { return std::accumulate(x.begin(), x.end(), 0.0); };
  const auto count = static_cast<double>(correct_.size());
  LabelsMetrics metrics;
  metrics.accuracy = hits_ * count / (texts_ * count);
  metrics.f1_micro = f1_of(sum(correct_), sum(expected_), sum(predicted_));
  for (size_t k = 0; k < correct_.size(); ++k)
    metrics.f1_macro += f1_of(correct_[k], expected_[k], predicted_[k]) / count;
  return metrics;
}

NumberMetrics number_metrics(std::span<const float> values, std::span<const float> answers, size_t count) {
  NumberMetrics metrics;
  for (size_t k = 0; k < count; ++k) {
    std::vector<double> expected, predicted;
    double squares = 0, sum = 0;
    for (size_t i = k; i < values.size(); i += count) {
      expected.push_back(static_cast<double>(values[i]));
      predicted.push_back(static_cast<double>(answers[i]));
      const double difference = predicted.back() - expected.back();
      squares += difference * difference;
      sum += std::abs(difference);
    }
    const double share = 1 / static_cast<double>(count), texts = static_cast<double>(expected.size());
    metrics.mse += share * squares / texts;
    metrics.mae += share * sum / texts;
    metrics.pearson += share * correlation(expected, predicted);
    metrics.spearman += share * correlation(ranks_of(expected), ranks_of(predicted));
  }
  metrics.rmse = std::sqrt(metrics.mse);
  return metrics;
}

}  // namespace command
