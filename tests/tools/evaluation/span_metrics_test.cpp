// Exact match and F1 of answers, compared with torchmetrics, and the rules of SQuAD 2.0 for no answer.
#include "evaluation/span_metrics.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/golden/answers.h"

namespace command {
namespace {

SpanMetrics::Group score(const std::vector<std::string>& gold, const std::string& found, bool may_be_none) {
  SpanCounts counts(may_be_none);
  counts.add(gold, found);
  return counts.metrics().all;
}

TEST(SpanMetrics, AgreeWithTorchmetrics) {
  double exact = 0, f1 = 0;
  SpanCounts counts(false);
  for (const golden::AnswerCase& one : golden::answer_cases) {
    std::vector<std::string> gold{one.gold};
    if (one.other) gold.emplace_back(one.other);
    const SpanMetrics::Group found = score(gold, one.found, false);
    EXPECT_EQ(found.exact, one.exact) << one.gold << " | " << one.found;
    // torchmetrics gives two answers without a word an F1 of 100, and SQuAD 1.1's script 0.
    const double expected = normalized_answer(one.found).empty() ? 0 : one.f1;
    EXPECT_NEAR(found.f1, expected, 1e-4) << one.gold << " | " << one.found;
    counts.add(gold, one.found);
    exact += one.exact, f1 += expected;
  }
  const SpanMetrics all = counts.metrics();
  const auto count = static_cast<double>(std::size(golden::answer_cases));
  EXPECT_NEAR(all.all.exact, exact / count, 1e-6);
  EXPECT_NEAR(all.all.f1, f1 / count, 1e-4);
  EXPECT_EQ(all.with_answer.count, std::size(golden::answer_cases));
  EXPECT_EQ(all.without_answer.count, 0u);
}

TEST(SpanMetrics, AnAnswerMayBeNone) {
  EXPECT_EQ(score({}, "", true).f1, 100);
  EXPECT_EQ(score({}, "", true).exact, 100);
  EXPECT_EQ(score({}, "red", true).f1, 0);
  EXPECT_EQ(score({"red"}, "", true).f1, 0);
  // Words that do not count leave nothing, which equals no answer.
  EXPECT_EQ(score({}, "the", true).f1, 100);
  EXPECT_EQ(score({"the"}, "", true).exact, 100);
  EXPECT_EQ(score({"the"}, "", false).exact, 100);
  EXPECT_EQ(score({"the"}, "", false).f1, 0);
  // Known answers without a word do not count if there is another one.
  EXPECT_EQ(score({"the", "red"}, "", true).exact, 0);
  EXPECT_EQ(score({"the", "red"}, "a red", true).exact, 100);
  SpanCounts counts(true);
  counts.add(std::vector<std::string>{"red"}, "red");
  counts.add({}, "red");
  counts.add({}, "");
  const SpanMetrics all = counts.metrics();
  EXPECT_EQ(all.with_answer.exact, 100);
  EXPECT_EQ(all.without_answer.exact, 50);
  EXPECT_NEAR(all.all.exact, 200.0 / 3, 1e-12);
}

TEST(SpanMetrics, WordsAreNormalized) {
  EXPECT_EQ(normalized_answer("The  Ship's a-hold, an\t(THE) end."), "ships ahold end");
  EXPECT_EQ(normalized_answer("theme an_a"), "theme ana");
  EXPECT_EQ(normalized_answer(""), "");
}

}  // namespace
}  // namespace command
