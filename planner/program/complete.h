// From the ops of a forward pass to a graph that a plan can train.
#pragma once
#include <functional>

#include "planner/base/result.h"
#include "planner/graph/graph.h"
#include "planner/graph/numerics.h"

namespace stw {

// Adds everything that follows from the forward ops and the numerics: the settings of parameter groups,
// quantized weights, gradients, fused ops, the update, evaluation and generation, copies to and from host
// memory, and parts that run in tiles. `stays`: frozen matrices that are not quantized. Errors: those of
// apply_groups.
Result<Graph> complete(Graph forward, const Numerics& numerics,
                       const std::function<bool(const Tensor&)>& stays = {});

}  // namespace stw
