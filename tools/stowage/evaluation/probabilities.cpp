#include "evaluation/probabilities.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

namespace command {
namespace {

struct IsBefore {
  bool operator()(const ProbableLabel& a, const ProbableLabel& b) const {
    return a.share != b.share ? a.share > b.share : a.label < b.label;
  }
};

// Sorts labels that are in the order of their numbers. If there are many, each goes into one of as many
// drawers, by its probability, and the few in a drawer are sorted.
void sort_by_probability(std::vector<ProbableLabel>& labels) {
  constexpr size_t few = 64;
  const auto [least, most] =
      std::minmax_element(labels.begin(), labels.end(),
                          [](const ProbableLabel& a, const ProbableLabel& b) { return a.share < b.share; });
  if (labels.size() < few || least->share == most->share)
    return std::sort(labels.begin(), labels.end(), IsBefore());
  const double high = most->share, scale = static_cast<double>(labels.size() - 1) / (high - least->share);
  const auto drawer = [&](const ProbableLabel& one) {
    return std::min(static_cast<size_t>((high - one.share) * scale), labels.size() - 1);
  };
  std::vector<size_t> ends(labels.size() + 1);  // ends[d + 1]: first the number, then the end of drawer d
  for (const ProbableLabel& one : labels) ends[drawer(one) + 1] += 1;
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<ProbableLabel> sorted(labels.size());
  for (const ProbableLabel& one : labels) sorted[ends[drawer(one)]++] = one;
  auto begin = sorted.begin();
  for (size_t d = 0; d < labels.size(); ++d) {  // now ends[d] is the end of drawer d
    const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(ends[d]);
    if (!std::is_sorted(begin, end, IsBefore())) std::sort(begin, end, IsBefore());
    begin = end;
  }
  labels = std::move(sorted);
}

}  // namespace

void Probabilities::take(std::span<const float> logits, bool softmax) {
  terms_.resize(logits.size());
  sum_ = 1;
  if (!softmax) {
    std::transform(logits.begin(), logits.end(), terms_.begin(),
                   [](float x) { return 1 / (1 + std::exp(-static_cast<double>(x))); });
    largest_ = *std::max_element(terms_.begin(), terms_.end());
    return;
  }
  const double largest = *std::max_element(logits.begin(), logits.end());
  sum_ = 0, largest_ = 1;  // exp(0)
  for (size_t i = 0; i < logits.size(); ++i) {
    terms_[i] = std::exp(static_cast<double>(logits[i]) - largest);
    sum_ += terms_[i];
  }
}

ProbableLabel Probabilities::best() const {
  // Terms that are almost as large as the largest one may give the same probability.
  const double share = largest_ / sum_, almost = largest_ * (1 - 1e-12);
  size_t label = 0;
  while (!(terms_[label] >= almost && terms_[label] / sum_ == share)) ++label;
  return {share, static_cast<uint32_t>(label)};
}

std::vector<ProbableLabel> Probabilities::most_probable(size_t count) const {
  std::vector<ProbableLabel> all;
  all.reserve(terms_.size());
  for (const double term : terms_) all.push_back({term / sum_, static_cast<uint32_t>(all.size())});
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(count, all.size()));
  std::partial_sort(all.begin(), end, all.end(), IsBefore());
  all.erase(end, all.end());
  return all;
}

std::vector<ProbableLabel> Probabilities::above(double threshold) const {
  std::vector<ProbableLabel> labels;
  for (size_t i = 0; i < terms_.size(); ++i)
    if (const double share = terms_[i] / sum_; share > threshold)
      labels.push_back({share, static_cast<uint32_t>(i)});
  sort_by_probability(labels);
  return labels;
}

void append_share(std::string& line, double share) {
  const double scaled = share * 10000, below = std::floor(scaled), rest = scaled - below;
  if (!(share >= 0 && share <= 1) || std::abs(rest - 0.5) < 1e-6) {  // a rounded product cannot decide
    fmt::format_to(std::back_inserter(line), "{:.4f}", share);
    return;
  }
  const auto digits = static_cast<uint32_t>(below) + (rest > 0.5);
  const auto digit = [&](uint32_t unit) { return static_cast<char>('0' + digits / unit % 10); };
  const char text[] = {digit(10000), '.', digit(1000), digit(100), digit(10), digit(1)};
  line.append(text, sizeof text);
}

}  // namespace command
