// Frozen matrices as codes of 4 or 8 bits (kernels/contract/weight_codes.h): what most of a model takes below adapters. An op that multiplies
// by them first makes of them what products take, in scratch memory of its own, so that nothing of it is kept or recomputed.
#pragma once
#include <functional>

#include "planner/graph/graph.h"
#include "planner/graph/numerics.h"

namespace stw {

// After `apply_groups`: the frozen matrices of blocks, but for those that stay as they are, and the table of tokens and the head. For
// graphs with adapters: what else is trained would be saved beside weights that are not those it was trained beside.
void quantize_frozen(Graph& graph, const Numerics& numerics, const std::function<bool(const Tensor&)>& stays = {});

// Where the values of an op's matrices are more than Graph::values_at_once, they are made and used in pieces: of some features of one
// matrix, or of some inputs of all of them. By shapes alone, so that whatever adds up a piece does so at every budget.
struct ValuePieces {
  enum class Cut : uint8_t { none, features, inputs };
  Cut cut = Cut::none;
  int64_t width = 0;    // of a piece, a multiple of 16, where an input gradient sums over features of chain_unit; the last one of a matrix may be narrower
  int64_t count = 1;    // of all matrices
};
ValuePieces value_pieces(const Graph& graph, const Op& op);

// What an op with matrices of codes has in front of its scratch memory.
struct ValueScratch {
  uint64_t values = 0;  // of a piece
  uint64_t sums = 0;    // of input gradients over the features so far, in fp32, where they are stored in another format
  uint64_t bytes() const { return size_add(values, sums); }
};
ValueScratch value_scratch(const Graph& graph, const Op& op, int64_t rows);
inline constexpr uint64_t value_alignment = 64;   // of each matrix's values, and of the sums

// Of an op's matrices that are codes: how many there are, what they take, and what all of their values would.
uint64_t quantized_operands(const Graph& graph, const Op& op);
uint64_t quantized_operand_bytes(const Graph& graph, const Op& op);
uint64_t quantized_operand_values(const Graph& graph, const Op& op);

}  // namespace stw
