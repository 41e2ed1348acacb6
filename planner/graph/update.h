// Adds optimizer states, master weights and the ops of the update to a differentiated graph.
//
// Any number of forward ops may use a parameter. Each use has a gradient of its own. The ops of norm and
// update add up two gradients. If there are more, gradient_sum ops at the beginning of the update add them up
// in the buffer of the first one.
#pragma once
#include "planner/graph/graph.h"
#include "planner/graph/numerics.h"

namespace stw {

void add_update(Graph& graph, const Numerics& numerics);

// Bytes of gradients, masters and optimizer states that the frozen parameters do not need.
uint64_t frozen_savings(const Graph& graph, const Numerics& numerics);

}  // namespace stw
