// How far a model puts chosen answers ahead of rejected ones, as the loss of its preference sees it.
#pragma once
#include <optional>
#include <string>

#include "data.h"
#include "flags.h"
#include "handles.h"

namespace command {

// Means over pairs of each answer's implicit reward: beta times its log-probability, of dpo and ipo what that is above the reference's; of ipo, simpo
// and orpo the mean over its tokens in place of the sum (Rafailov et al., arXiv:2305.18290).
struct Rewards {
  double chosen = 0, rejected = 0;
  double margin() const { return chosen - rejected; }
};

// Of all pairs. `reference`: the file of the reference's log-probabilities, of dpo and ipo.
Rewards rewards_of(const Trainer& trainer, const OpenData& pairs, const std::string& reference, const std::string& preference, std::optional<float> beta);

}  // namespace command
