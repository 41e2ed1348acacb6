#include "evaluation/spans.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace command {

namespace {

struct Candidate {
  double score;
  size_t begin, end;  // bytes of the context
};

// The indices of the `most` largest logits of a column among the rows of the context, in descending order;
// of equal ones, the earlier one first.
std::vector<size_t> best_rows(const TextLogits& one, size_t column, size_t most) {
  std::vector<size_t> rows(one.text->count);
  std::iota(rows.begin(), rows.end(), one.text->first_row);
  const auto middle = rows.begin() + static_cast<std::ptrdiff_t>(std::min(most, rows.size()));
  std::partial_sort(rows.begin(), middle, rows.end(), [&](size_t a, size_t b) {
    const float x = one.logits[2 * a + column], y = one.logits[2 * b + column];
    return x != y ? x > y : a < b;
  });
  rows.erase(middle, rows.end());
  return rows;
}

void add_candidates(const TextLogits& one, const std::vector<TextRange>& ranges, const QuestionFlags& flags,
                    std::vector<Candidate>& all) {
  const QuestionText& text = *one.text;
  const auto range_of = [&](size_t row) { return ranges[text.first_token + (row - text.first_row)]; };
  const std::vector<size_t> ends = best_rows(one, 1, flags.most_candidates());
  for (const size_t start : best_rows(one, 0, flags.most_candidates()))
    for (const size_t end : ends) {
      if (end < start || end - start >= flags.longest_answer()) continue;
      const TextRange first = range_of(start), last = range_of(end);
      if (first.begin == first.end || last.begin == last.end || last.end <= first.begin) continue;
      all.push_back(
          {static_cast<double>(one.logits[2 * start]) + static_cast<double>(one.logits[2 * end + 1]),
           first.begin, last.end});
    }
}

}  // namespace

FoundAnswer find_answer(const QuestionSet& set, size_t question, std::span<const TextLogits> texts,
                        bool may_be_none) {
  std::vector<Candidate> all;
  double none = std::numeric_limits<double>::infinity();
  for (const TextLogits& one : texts) {
    none = std::min(none, static_cast<double>(one.logits[0]) + static_cast<double>(one.logits[1]));
    add_candidates(one, *set.ranges[question], set.flags, all);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  if (all.size() > set.flags.most_candidates()) all.resize(set.flags.most_candidates());
  FoundAnswer found;
  if (all.empty()) {
    found.none = found.score = 1;
    return found;
  }
  const double largest = std::max(none, all[0].score);
  double sum = std::exp(none - largest);
  for (const Candidate& one : all) sum += std::exp(one.score - largest);
  found.none = std::exp(none - largest) / sum;
  found.score = std::exp(all[0].score - largest) / sum;
  if (may_be_none && none - all[0].score > set.flags.threshold()) {
    found.score = found.none;
    return found;
  }
  found.begin = all[0].begin, found.end = all[0].end;
  found.text = set.questions[question].context->substr(found.begin, found.end - found.begin);
  return found;
}

}  // namespace command
