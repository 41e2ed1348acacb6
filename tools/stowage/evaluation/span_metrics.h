// Exact match and F1 of answers, as SQuAD's scripts count them (Rajpurkar et al., arXiv:1606.05250 and
// arXiv:1806.03822).
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace command {

// In lower case, without ASCII punctuation and the words a, an and the, with one space between words.
std::string normalized_answer(std::string_view text);

// In percent.
struct SpanMetrics {
  struct Group {
    double exact = 0, f1 = 0;
    uint64_t count = 0;
  };
  Group all, with_answer, without_answer;
};

// Adds up the scores of questions.
class SpanCounts {
 public:
  // `may_be_none`: the rules of SQuAD 2.0, where some questions have no answer.
  explicit SpanCounts(bool may_be_none) : may_be_none_(may_be_none) {}
  // `gold`: the known answers, of which the best one counts. None: the question has no answer.
  void add(std::span<const std::string> gold, std::string_view found);
  SpanMetrics metrics() const;

 private:
  const bool may_be_none_;
  SpanMetrics sums_;
};

}  // namespace command
