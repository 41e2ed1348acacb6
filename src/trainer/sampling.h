// How the next token of a text is drawn from a language model's logits.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace stw {

struct Sampling {
  double temperature = 0;   // 0: the most probable token
  uint32_t top_k = 0;       // 0: all
  double top_p = 0;         // 0: all
  uint64_t seed = 1337;
};

// A token that may be drawn. Its probability is its weight divided by the sum of all weights.
struct TokenChoice {
  int32_t token;
  double weight;
};

// The candidates at a temperature above 0, the most probable one first. The temperature divides the logits, then top_k keeps the most
// probable tokens, then top_p keeps the fewest of those that have at least this part of their probability together: the order of
// transformers. Of equal logits the smaller token comes first.
std::vector<TokenChoice> candidates(std::span<const float> logits, const Sampling& how);

// Draws one of the candidates: a function of logits, settings and `position` alone.
int32_t sample(std::span<const float> logits, const Sampling& how, uint64_t position);

}  // namespace stw
