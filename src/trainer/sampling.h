// Sampling of the next token from a language model's logits.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace stw {

struct Sampling {
  double temperature = 0;  // 0: the most probable token
  uint32_t top_k = 0;      // 0: all
  double top_p = 0;        // 0: all
  uint64_t seed = 1337;
};

// A token that may be drawn. Its probability is its weight divided by the sum of all weights.
struct TokenChoice {
  int32_t token;
  double weight;
};

// The tokens that may be drawn at a temperature above 0, the most probable first. The order of operations is
// that of transformers: divide the logits by the temperature, keep the top_k most probable tokens, then keep
// the fewest of those whose probabilities sum to at least top_p. Among equal logits the smaller token comes
// first.
std::vector<TokenChoice> candidates(std::span<const float> logits, const Sampling& how);

// Draws one of the candidates. The result depends only on logits, settings and `position`.
int32_t sample(std::span<const float> logits, const Sampling& how, uint64_t position);

}  // namespace stw
