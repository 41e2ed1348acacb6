// Adds optimizer states, master weights and the ops of the update to a differentiated graph.
#pragma once
#include "planner/graph.h"
#include "planner/numerics.h"

namespace stw {

inline constexpr int64_t state_block = 256;          // elements that share one absmax in 8-bit states
inline constexpr uint64_t smallest_8bit_tensor = 4096;

void add_update(Graph& graph, const Numerics& numerics);

// 8-bit states are kept for matrices of hidden layers only: small tensors and embeddings stay in 32 bits.
bool keeps_8bit_states(const Graph& graph, int parameter, const Numerics& numerics);

}  // namespace stw
