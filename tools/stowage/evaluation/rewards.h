// How far a model puts chosen answers ahead of rejected ones, as the loss of its preference sees it.
#pragma once
#include <optional>
#include <string>

#include "data/data.h"
#include "flags/flags.h"
#include "base/handles.h"

namespace command {

// Means over pairs of each answer's implicit reward: beta times its log-probability, of dpo and ipo what that is above the reference's; of ipo, simpo
// and orpo the mean over its tokens in place of the sum (Rafailov et al., arXiv:2305.18290).
struct Rewards {
  double chosen = 0, rejected = 0;
  double margin() const { return chosen - rejected; }
};

// Some pairs, and which of the reference's tokens is their first one.
struct AnswersOf { stw_dataset* data; const std::vector<OpenData::Answer>& answers; uint64_t first_token; };

// `reference`: the file of the reference's log-probabilities, of dpo and ipo.
Rewards rewards_of(const Trainer& trainer, const AnswersOf& pairs, const std::string& reference, const std::string& preference, std::optional<float> beta);
// The same inside of a run, which sees to signals itself: throws a Failure whose status is STW_CANCELLED where one stopped it.
Rewards rewards_in_run(stw_trainer* trainer, const AnswersOf& pairs, const std::string& reference, const std::string& preference, std::optional<float> beta);

}  // namespace command
