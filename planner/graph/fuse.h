// Ops whose work the kernels of the op before them do on the way:
//   GELU in the product that makes its input;
//   GELU's gradient in the product that makes the gradient of GELU's output. This product also makes the gradient of the bias before
//   GELU, or sums of its tiles;
//   gradients of biases in the gradient of a norm, which folds sums of its own anyway. It sums its addend, or takes sums of tiles;
//   the gradient of a table of positions in that of the tokens' table;
//   gradients of weights, or of other biases, of two linear ops, in launches that do both.
// Ops, save-sets and tiles stay what they are. Where a program runs such ops in turn, one instruction does them, and what lies between them
// takes no memory unless it is kept; where recompute asks for one of them alone, it runs alone. No bit changes: the second op sees what
// the first one would have stored. An op is moved only where its operands live that long anyway, or where less is alive than before.
// One thing is new in memory: the tile sums of the bias before GELU. They take 1/32 of the bytes of the 16-bit gradient that they sum.
#pragma once
#include "planner/graph/graph.h"

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

// A run of gradient ops from `op` on ends in GELU's slope. may_wait_for_slope: the weight gradient after the run that reads the same dy,
// or -1. waits_for_slope: whether it shares a launch with the next weight gradient under the save-set `saved`. It does if all that both
// read is there before the run anyway; otherwise it runs alone, before the run.
int may_wait_for_slope(const Graph& graph, int op);
bool waits_for_slope(const Graph& graph, const Segment& segment, int weight_gradient, uint32_t saved);

}  // namespace stw
