// A run's settings for the plan's preference loss (planner/graph/preference.h).
#pragma once
#include <optional>

#include "kernels/contract/kernels.h"
#include "planner/base/result.h"
#include "planner/graph/preference.h"

namespace stw {

// kernels/contract/kernels.h explains the settings. Without a value: the default.
struct PreferenceOptions {
  std::optional<double> beta;    // dpo, ipo, orpo: 0.1; simpo: 2
  std::optional<double> margin;  // simpo: half of beta
  double answer_share = 0;
};

// Errors: bad_argument for settings that the preference does not have, and for numbers out of range.
Result<kernels::PairTerms> pair_terms(Preference preference, const PreferenceOptions& options,
                                      double label_smoothing, double z_loss);

}  // namespace stw
