// What a run's settings make of a plan's preference (planner/graph/preference.h).
#pragma once
#include <optional>

#include "kernels/contract/kernels.h"
#include "planner/graph/preference.h"
#include "planner/base/result.h"

namespace stw {

// kernels.h says what each is. Nothing: the default.
struct PreferenceOptions {
  std::optional<double> beta;          // dpo, ipo, orpo: 0.1; simpo: 2
  std::optional<double> margin;        // simpo: half of beta
  double answer_share = 0;
};

// Errors: bad_argument, for what the preference does not know, and for numbers that are out of range.
Result<kernels::PairTerms> pair_terms(Preference preference, const PreferenceOptions& options, double label_smoothing, double z_loss);

}  // namespace stw
