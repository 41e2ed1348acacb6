#include "src/trainer/preference.h"

#include <string>

namespace stw {

Result<kernels::PairTerms> pair_terms(Preference preference, const PreferenceOptions& o,
                                      double label_smoothing, double z_loss) {
  const auto wrong = [&](const std::string& what) { return Error{Code::bad_argument, "trainer: " + what}; };
  const std::string name = name_of(preference);
  kernels::PairTerms terms{};
  terms.kind = preference;
  if (preference == Preference::none) {
    if (o.beta || o.margin || o.answer_share != 0)
      return wrong("beta, margin and answer_share are for preferences, the plan was made without one");
    return terms;
  }
  const bool is_simpo = preference == Preference::simpo;
  if (o.margin && !is_simpo) return wrong("margin is for the preference simpo, not for " + name);
  if (z_loss != 0)
    return wrong(
        "z_loss is a loss of single tokens, and the plan's preference has a loss of pairs; leave it 0");
  if (label_smoothing != 0 && preference != Preference::dpo && !is_simpo)
    return wrong("label_smoothing is for the preferences dpo and simpo, not for " + name);
  if (label_smoothing >= 0.5)
    return wrong(
        "label_smoothing of pairs must lie in [0, 0.5): with half of the pairs reversed there is nothing to "
        "learn");
  terms.beta = o.beta.value_or(is_simpo ? 2 : 0.1);
  terms.margin = o.margin.value_or(terms.beta / 2);
  terms.smoothing = label_smoothing;
  terms.answer_share = o.answer_share;
  if (!(terms.beta > 0 && terms.beta <= 1e6)) return wrong("beta must be above 0, at most 1e6");
  if (!(terms.margin >= 0 && terms.margin <= 1e6) || !(terms.answer_share >= 0 && terms.answer_share <= 1e6))
    return wrong("margin and answer_share must lie in [0, 1e6]");
  return terms;
}

}  // namespace stw
