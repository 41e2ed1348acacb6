#include "evaluation/rewards.h"

#include <bit>
#include <cstring>

#include "base/files.h"
#include "evaluation/reference.h"

namespace command {
namespace {

// Sums the log-probabilities of each answer's tokens. The file has one for each token, 0 for tokens that are
// not learned. `first` is the first token of the answers.
std::vector<double> sums_in(const std::string& path, const std::vector<OpenData::Answer>& answers,
                            uint64_t first) {
  static_assert(std::endian::native == std::endian::little, "log-probabilities are stored little-endian");
  const std::string bytes = read_text(path);
  std::vector<double> sums;
  size_t at = first * sizeof(float);
  for (const OpenData::Answer& answer : answers) {
    sums.push_back(0);
    for (uint64_t i = 0; i < answer.tokens; ++i, at += sizeof(float)) {
      float one;
      std::memcpy(&one, bytes.data() + at, sizeof one);
      sums.back() += static_cast<double>(one);
    }
  }
  return sums;
}

Rewards rewards_by(const TemporaryReference& policy, const AnswersOf& pairs, const std::string& reference,
                   const std::string& preference, std::optional<float> beta) {
  std::vector<double> sums = sums_in(policy.path(), pairs.answers, 0);
  const std::vector<double> before = has_reference(preference)
                                         ? sums_in(reference, pairs.answers, pairs.first_token)
                                         : std::vector<double>();
  for (size_t i = 0; i < before.size(); ++i) sums[i] -= before[i];
  // the library's defaults
  const double scale = beta ? static_cast<double>(*beta) : preference == "simpo" ? 2 : 0.1;
  Rewards rewards;
  for (size_t i = 0; i < sums.size(); ++i) {
    const double reward =
        scale * (preference == "dpo" ? sums[i] : sums[i] / static_cast<double>(pairs.answers[i].learned));
    (i % 2 == 0 ? rewards.chosen : rewards.rejected) += reward / static_cast<double>(sums.size() / 2);
  }
  return rewards;
}

}  // namespace

Rewards rewards_of(const Trainer& trainer, const AnswersOf& pairs, const std::string& reference,
                   const std::string& preference, std::optional<float> beta) {
  return rewards_by(TemporaryReference(trainer, pairs.data), pairs, reference, preference, beta);
}

Rewards rewards_in_run(stw_trainer* trainer, const AnswersOf& pairs, const std::string& reference,
                       const std::string& preference, std::optional<float> beta) {
  return rewards_by(TemporaryReference(trainer, pairs.data), pairs, reference, preference, beta);
}

}  // namespace command
