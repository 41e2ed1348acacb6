// Frozen matrices as codes of 4 or 8 bits (kernels/common/weight_codes.h): what most of a model takes below adapters. An op that reads
// them first makes of all its matrices what products take, in scratch memory of its own, so that nothing of it is kept or recomputed.
#pragma once
#include <functional>

#include "planner/graph.h"
#include "planner/numerics.h"

namespace stw {

// After `apply_groups`: the frozen matrices of blocks, but for those that stay as they are. For graphs with adapters: what else is trained
// would be saved beside weights that are not those it was trained beside.
void quantize_frozen(Graph& graph, Quantize quantize, const std::function<bool(const Tensor&)>& stays = {});

// Of an op's matrices that are codes: how many there are, what they take, and what their values take in front of the op's own scratch memory.
uint64_t quantized_operands(const Graph& graph, const Op& op);
uint64_t quantized_operand_bytes(const Graph& graph, const Op& op);
uint64_t dequantized_bytes(const Graph& graph, const Op& op);
inline constexpr uint64_t dequantized_alignment = 64;   // of every matrix's values

}  // namespace stw
