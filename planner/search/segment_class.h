// Finds segments of a graph that are equal: the same ops on tensors of the same shapes, wired the same way.
// Blocks of one class need the same memory and time, whatever their position.
#pragma once
#include <vector>

#include "planner/graph/graph.h"

namespace stw {

// One number for each segment, from 0 in the order of first appearance.
std::vector<int> segment_classes(const Graph& graph);

}  // namespace stw
