// The tokens that may be drawn, and their frequencies.
#include "src/trainer/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "tests/golden/sampling.h"

namespace stw {
namespace {

TEST(Sampling, CandidatesAgreeWithTransformers) {
  for (const golden::SamplingCase& one : golden::sampling_cases) {
    const std::vector<TokenChoice> found =
        candidates(golden::sampling_logits[one.logits], {one.temperature, one.top_k, one.top_p, 1});
    ASSERT_EQ(found.size(), one.left.size()) << one.temperature << ' ' << one.top_k << ' ' << one.top_p;
    double sum = 0;
    for (const TokenChoice& candidate : found) sum += candidate.weight;
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].token, one.left[i].first);
      EXPECT_NEAR(found[i].weight / sum, one.left[i].second, 1e-7);
    }
  }
}

TEST(Sampling, DrawsInProportionToTheProbability) {
  constexpr int draws = 5000;
  for (const golden::SamplingCase& one : golden::sampling_cases) {
    if (one.temperature != 1.0) continue;
    std::map<int32_t, int> drawn;
    for (uint64_t seed = 0; seed < draws; ++seed)
      ++drawn[sample(golden::sampling_logits[one.logits], {one.temperature, one.top_k, one.top_p, seed}, 7)];
    int known = 0;
    for (const auto& [token, probability] : one.left) {
      known += drawn[token];
      EXPECT_NEAR(drawn[token], draws * probability,
                  5 * std::sqrt(draws * probability * (1 - probability)) + 1)
          << token;
    }
    EXPECT_EQ(known, draws);  // no other token was drawn
  }
}

TEST(Sampling, IsAFunctionOfSeedAndPosition) {
  const std::vector<float>& logits = golden::sampling_logits[0];
  std::vector<int32_t> of_seed, again, of_position;
  for (uint64_t i = 0; i < 50; ++i) {
    of_seed.push_back(sample(logits, {1, 0, 0.9, i}, 3));
    again.push_back(sample(logits, {1, 0, 0.9, i}, 3));
    of_position.push_back(sample(logits, {1, 0, 0.9, 3}, i));
  }
  EXPECT_EQ(of_seed, again);
  EXPECT_NE(of_seed, of_position);
  EXPECT_GT(std::count_if(of_position.begin(), of_position.end(),
                          [&](int32_t token) { return token != of_position[0]; }),
            10);
}

TEST(Sampling, KeepsOneCandidateAtLeast) {
  const std::vector<float> logits{1, 3, 3, -2};
  for (const double top_p : {std::numeric_limits<double>::denorm_min(), 1e-9}) {
    const std::vector<TokenChoice> found = candidates(logits, {1, 0, top_p, 1});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].token, 1);  // among equal logits the smaller token
  }
  EXPECT_EQ(candidates(logits, {1, 0, 1, 1}).size(), 4u);
  EXPECT_EQ(candidates(logits, {1, 3, 1, 1}).size(), 3u);
  EXPECT_EQ(sample(logits, {0, 0, 0.5, 1}, 0), 1);
}

}  // namespace
}  // namespace stw
