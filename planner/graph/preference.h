// Losses of pairs of documents that answer the same prompt. The first document was chosen, the second
// rejected. A loss follows from the log-probabilities of the documents' targets
// (kernels/common/preference_pair.h has the formulas).
#pragma once
#include <cstdint>

namespace stw {

// none: the loss of every token by itself. dpo: Rafailov et al., arXiv:2305.18290; ipo: Azar et al.,
// arXiv:2310.12036; simpo: Meng et al., arXiv:2405.14734; orpo: Hong et al., arXiv:2403.07691.
enum class Preference : uint8_t { none, dpo, ipo, simpo, orpo };
inline constexpr int preference_count = 5;
inline constexpr const char* preference_names[preference_count] = {"none", "dpo", "ipo", "simpo", "orpo"};
inline const char* name_of(Preference p) { return preference_names[static_cast<int>(p)]; }

// Whether the loss compares a pair with the log-probabilities of another model.
inline bool has_reference(Preference p) { return p == Preference::dpo || p == Preference::ipo; }

// Whether the loss compares means over a document's targets instead of sums.
inline bool is_of_means(Preference p) { return p == Preference::ipo || p == Preference::simpo || p == Preference::orpo; }

}  // namespace stw
