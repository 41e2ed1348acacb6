// Adds optimizer states, master weights and the ops of the update to a differentiated graph.
#pragma once
#include "planner/graph.h"
#include "planner/numerics.h"

namespace stw {

void add_update(Graph& graph, const Numerics& numerics);

// Bytes of gradients, masters and optimizer states that the frozen parameters do not need.
uint64_t frozen_savings(const Graph& graph, const Numerics& numerics);

}  // namespace stw
