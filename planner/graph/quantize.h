// Frozen matrices as codes of 4 or 8 bits (kernels/contract/weight_codes.h). With adapters, most of a model's
// parameters are such matrices. An op that multiplies by them first decodes them into its scratch memory, so
// decoded values are never kept.
#pragma once
#include <functional>

#include "planner/graph/graph.h"
#include "planner/graph/numerics.h"

namespace stw {

// Quantizes the frozen matrices of blocks, except those for which `stays` is true, and the table of tokens
// and the head. Call it after `apply_groups`. Does nothing without adapters: trained parameters would then be
// saved together with the original weights, not with the quantized weights that they were trained with.
void quantize_frozen(Graph& graph, const Numerics& numerics,
                     const std::function<bool(const Tensor&)>& stays = {});

// If an op's matrices have more values than Graph::values_at_once, it decodes and uses them in pieces: some
// features of one matrix, or some inputs of all matrices. Only shapes decide on the pieces, so sums over
// pieces have the same order at every budget.
struct ValuePieces {
  enum class Cut : uint8_t { none, features, inputs };
  Cut cut = Cut::none;
  // Width of a piece: a multiple of 16, or of kernels::chain_terms if an input gradient sums over features.
  // The last piece of a matrix may be narrower.
  int64_t width = 0;
  int64_t count = 1;  // pieces of all matrices
};
ValuePieces value_pieces(const Graph& graph, const Op& op);

// The beginning of the scratch memory of an op with matrices of codes.
struct ValueScratch {
  uint64_t values = 0;  // bytes of the decoded values of a piece
  // Bytes of fp32 sums of input gradients over the features so far, if they are stored in another format.
  uint64_t sums = 0;
  uint64_t bytes() const { return size_add(values, sums); }
};
ValueScratch value_scratch(const Graph& graph, const Op& op, int64_t rows);
inline constexpr uint64_t value_alignment = 64;  // of each matrix's values, and of the sums

// For the quantized matrices of an op: their number, the bytes of their codes, and the bytes of their decoded
// values.
uint64_t quantized_operands(const Graph& graph, const Op& op);
uint64_t quantized_operand_bytes(const Graph& graph, const Op& op);
uint64_t quantized_operand_values(const Graph& graph, const Op& op);

}  // namespace stw
