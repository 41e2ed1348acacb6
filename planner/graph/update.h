// Adds optimizer states, master weights and the ops of the update to a differentiated graph.
//
// A parameter may be used by any number of forward ops, each of which has a gradient of its own. The ops of norm and update add up two. Where there
// are more, gradient_sum ops at the head of the update add them up in the place of the first one.
#pragma once
#include "planner/graph/graph.h"
#include "planner/graph/numerics.h"

namespace stw {

void add_update(Graph& graph, const Numerics& numerics);

// Bytes of gradients, masters and optimizer states that the frozen parameters do not need.
uint64_t frozen_savings(const Graph& graph, const Numerics& numerics);

}  // namespace stw
