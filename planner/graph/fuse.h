// Fuses ops: the kernel of one op also does the work of the op after it.
// - The product that computes GELU's input also computes GELU.
// - The product that computes the gradient of GELU's output also computes GELU's gradient. In addition it
//   computes the gradient of the bias before GELU, or its tile sums (one sum for each column of each tile of
//   rows).
// - The gradient of a norm also computes gradients of biases. It sums the columns of its addend, or adds up
//   the tile sums of a product. It adds up tile sums of its own anyway.
// - The gradient of the tokens' table also computes the gradient of the table of positions.
// - One launch computes the weight gradients, or the other bias gradients, of two linear ops.
//
// Ops, save-sets and tiles do not change. If a program runs such ops in direct succession, one instruction
// computes them. The tensors between them then take no memory, unless they are kept. If only one of them is
// recomputed, it runs alone. No bit changes: the second op gets the values that the first one would have
// stored.
//
// An op is moved only if this does not increase the memory in use. There is one exception: the tile sums of
// the bias before GELU need new memory, 1/32 of the bytes of the 16-bit gradient that they sum.
#pragma once
#include "planner/graph/graph.h"

namespace stw {

// Marks ops of the forward and the backward pass (Op::fused), and moves some ops of a block's backward pass.
// Call it after `differentiate`, before any code that depends on the positions of ops.
void find_fused_ops(Graph& graph, Kernels kernels);

// The number of ops that one instruction computes: `op` (an index of Graph::op) and the fused ops after it.
int fused_run(const Graph& graph, int op);

// The first two functions are for a fused run of gradient ops that begins at `op` and contains GELU's
// gradient. deferred_weight_gradient returns the weight gradient after the run that reads the same dy, or -1.
// is_deferred returns whether that weight gradient shares a launch with the next one if the save-set is
// `saved`. It does if all inputs of both weight gradients exist before the run. Otherwise it runs alone,
// before the run. unshared_weight_gradients returns the weight gradients of a segment that run alone.
int deferred_weight_gradient(const Graph& graph, int op);
bool is_deferred(const Graph& graph, const Segment& segment, int weight_gradient, uint32_t saved);
std::vector<int> unshared_weight_gradients(const Graph& graph, const Segment& segment, uint32_t saved);

}  // namespace stw
