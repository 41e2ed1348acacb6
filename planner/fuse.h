// Ops whose work the kernels of the op before them do on the way:
//   GELU in the product that makes its input;
//   GELU's gradient in the product that makes its output's, and the gradient of the bias in front of it, too, or the sums of its tiles;
//   gradients of biases in the gradient of a norm, which reads the one as its addend, or sums of tiles, and folds its own sums anyway;
//   the gradient of a table of positions in that of the tokens' table;
//   gradients of weights, or of other biases, of two linear ops, in launches that do both.
// Ops, save-sets and tiles stay what they are. Where a program runs such ops in turn, one instruction does them, and what lies between them
// takes no memory unless it is kept; where recompute asks for one of them alone, it runs alone. No bit changes: the second op sees what
// the first one would have stored. An op is moved only where its operands live that long anyway, or where less is alive than before.
// So no peak grows but by the sums of the bias before GELU: 1/32 of that tensor.
#pragma once
#include "planner/graph.h"

namespace stw {

inline constexpr int64_t fused_unit = 8;          // extents of matrices that our kernels for tensor cores take are multiples of it
inline constexpr size_t most_fused_weights = 4;   // kernels::max_parts; src/ asserts that both agree
inline constexpr size_t most_fused_biases = 8;    // kernels::most_biases; the same
inline constexpr int64_t sums_unit = 64;          // rows of a sample whose sums are one tile: kernels::token_tile; the same

// Marks ops of the forward and the backward pass (Op::fused), and moves some of a block's backward pass. After `differentiate`, before
// what counts on the places of ops.
void find_fused_ops(Graph& graph, Kernels kernels);

// Ops from `op` on (Graph::op) that one instruction does: it, and all that are fused with it.
int fused_run(const Graph& graph, int op);

// For a run of gradient ops that ends in GELU's slope: the weight gradient of the same product, if it may share a launch with the next
// weight gradient; else -1. With a save-set it does so if all operands of both are there before the run anyway. Otherwise it runs alone,
// before the run.
int may_wait_for_slope(const Graph& graph, int op);
bool waits_for_slope(const Graph& graph, const Segment& segment, int weight_gradient, uint32_t saved);

}  // namespace stw
