// Losses of preference pairs (kernels/contract/losses.h): their names, and what a graph needs for each.
#pragma once
#include <cstdint>

#include "kernels/contract/losses.h"

namespace stw {

using kernels::Preference;
inline constexpr int preference_count = 5;
inline constexpr const char* preference_names[preference_count] = {"none", "dpo", "ipo", "simpo", "orpo"};
inline const char* name_of(Preference p) { return preference_names[static_cast<int>(p)]; }

// Whether the loss compares a pair with the log-probabilities of another model.
inline bool has_reference(Preference p) { return p == Preference::dpo || p == Preference::ipo; }

// Whether the loss compares means over a document's targets instead of sums.
inline bool is_of_means(Preference p) {
  return p == Preference::ipo || p == Preference::simpo || p == Preference::orpo;
}

}  // namespace stw
