// Fuses ops: the kernel of one op also does the work of the op after it.
//   GELU in the product that computes its input;
//   GELU's gradient in the product that computes the gradient of GELU's output. This product also computes
//   the gradient of the bias before GELU, or sums of its tiles;
//   gradients of biases in the gradient of a norm, which folds sums of its own anyway. It sums its addend,
//   or takes sums of tiles;
//   the gradient of a table of positions in that of the tokens' table;
//   gradients of weights, or of other biases, of two linear ops, in launches that do both.
// Ops, save-sets and tiles do not change. If a program runs such ops in turn, one instruction does them, and
// the tensors between them take no memory unless they are kept. If recompute needs one of them alone, it runs
// alone. No bit changes: the second op sees the values that the first one would have stored. An op is moved
// only if its operands live that long anyway, or if less memory is alive than before. Only the tile sums of
// the bias before GELU need new memory. They take 1/32 of the bytes of the 16-bit gradient that they sum.
#pragma once
#include "planner/graph/graph.h"

namespace stw {

// Marks ops of the forward and the backward pass (Op::fused), and moves some ops of a block's backward pass.
// Call it after `differentiate`, before any code that depends on the positions of ops.
void find_fused_ops(Graph& graph, Kernels kernels);

// The number of ops from `op` on (Graph::op) that one instruction does: `op` and all ops fused with it.
int fused_run(const Graph& graph, int op);

// For a run of gradient ops from `op` on that ends in GELU's slope. may_wait_for_slope: the weight gradient
// after the run that reads the same dy, or -1. waits_for_slope: whether that gradient shares a launch with
// the next weight gradient under the save-set `saved`. It does if all their inputs exist before the run
// anyway; otherwise it runs alone, before the run.
int may_wait_for_slope(const Graph& graph, int op);
bool waits_for_slope(const Graph& graph, const Segment& segment, int weight_gradient, uint32_t saved);

}  // namespace stw
