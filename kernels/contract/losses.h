// Losses other than cross entropy. kernels.h has the formulas.
#pragma once
#include <cstdint>

namespace stw::kernels {

// Losses of rows of real values.
enum class ValueLoss : uint8_t { binary_cross_entropy, squared_error };

// Losses of pairs of documents that answer the same prompt. The first document was chosen, the second
// rejected. A loss follows from the log-probabilities of the documents' targets
// (kernels/common/preference_pair.h has the formulas). none: there are no pairs, and the loss is that of
// every token. dpo: Rafailov et al., arXiv:2305.18290; ipo: Azar et al., arXiv:2310.12036; simpo: Meng et
// al., arXiv:2405.14734; orpo: Hong et al., arXiv:2403.07691.
enum class Preference : uint8_t { none, dpo, ipo, simpo, orpo };

}  // namespace stw::kernels
