// Rewards of chosen and rejected answers, as the preference loss computes them.
#pragma once
#include <optional>
#include <string>

#include "base/handles.h"
#include "data/data.h"
#include "flags/flags.h"

namespace command {

// Mean implicit rewards over pairs. The reward of an answer is beta times its log-probability. dpo and ipo
// first subtract the log-probability under the reference. ipo, simpo and orpo take the mean over the answer's
// tokens instead of the sum (Rafailov et al., arXiv:2305.18290).
struct Rewards {
  double chosen = 0, rejected = 0;
  double margin() const { return chosen - rejected; }
};

// Pairs of a dataset, and the index of their first token in the reference file.
struct AnswersOf {
  stw_dataset* data;
  const std::vector<OpenData::Answer>& answers;
  uint64_t first_token;
};

// `reference`: the file of the reference's log-probabilities. Only dpo and ipo use it.
Rewards rewards_of(const Trainer& trainer, const AnswersOf& pairs, const std::string& reference,
                   const std::string& preference, std::optional<float> beta);
// The same for use inside a run, which handles signals itself. Throws a Failure with status STW_CANCELLED if
// a signal stopped it.
Rewards rewards_in_run(stw_trainer* trainer, const AnswersOf& pairs, const std::string& reference,
                       const std::string& preference, std::optional<float> beta);

}  // namespace command
