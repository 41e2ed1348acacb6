// Forward programs that do not train: evaluation, and generation with a cache of keys and values in the
// arena. `prefill` reads up to `prefill_rows` tokens at once and computes no logits. `decode` reads one token
// and computes its logits. Both use the same cache. A model that does not generate has one program instead,
// `logits`: it computes the logits of all rows of one sample.
#pragma once
#include <utility>

#include "planner/program/program.h"

namespace stw {

inline constexpr int64_t prefill_rows = 64;  // upper limit; a shorter sequence lowers it

// Adds evaluate_ops, generate_ops and the caches to a graph that already has its gradients and update.
void add_inference(Graph& graph);

// {prefill, decode}, before layout. Layout puts the caches at the same offsets in both. For a model that does
// not generate: {empty, logits}. For a model without logits: two empty programs.
std::pair<Program, Program> build_generate(const Graph& graph, const Arena& arena, int threads);

}  // namespace stw
