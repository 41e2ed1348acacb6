// What is learned of pairs of documents that answer the same prompt, of which the first one was chosen and the second one rejected: losses of a
// pair, from the log-probabilities of its targets (kernels/common/preference_pair.h has the formulas).
#pragma once
#include <cstdint>

namespace stw {

// none: of every token by itself. dpo: Rafailov et al., arXiv:2305.18290; ipo: Azar et al., arXiv:2310.12036; simpo: Meng et al.,
// arXiv:2405.14734; orpo: Hong et al., arXiv:2403.07691.
enum class Preference : uint8_t { none, dpo, ipo, simpo, orpo };
inline constexpr int preference_count = 5;
inline constexpr const char* preference_names[preference_count] = {"none", "dpo", "ipo", "simpo", "orpo"};
inline const char* name_of(Preference p) { return preference_names[static_cast<int>(p)]; }

// Whether a pair is judged by how far it is from another model's.
inline bool has_reference(Preference p) { return p == Preference::dpo || p == Preference::ipo; }

// Whether a token's weight is a share of its document's mean.
inline bool is_of_means(Preference p) { return p == Preference::ipo || p == Preference::simpo || p == Preference::orpo; }

}  // namespace stw
