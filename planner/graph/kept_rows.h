// Instead of the gradient of the token table's use as an input, a plan may keep the gradient of the
// embedding's output for all rows of the global batch, together with their tokens. After the last micro-step,
// the sums of the tokens are formed from these rows, in the order of the gradient that they replace. No bit
// changes. The rows take less memory if the vocabulary is larger than the batch.
//
// If the table has a second use, the head, the sums are added to the gradient of that use. If it has no other
// use, the update forms them a slice of the table at a time: once for the norm, and again for the update.
// This needs an optimizer that updates each element by itself.
#pragma once
#include "planner/graph/graph.h"

namespace stw {

// Whether the graph allows it, and the rows of so many samples, with the scratch memory of their sums and a
// slice, take less memory than the gradient. Then no plan takes more memory for it.
// `may_form`: whether the update may form the gradient.
bool may_keep_rows(const Graph& graph, int64_t samples, bool may_form = true);
// Changes a graph that is otherwise complete. Its tensors keep their numbers; the new ones come last.
// Requires may_keep_rows.
void keep_rows(Graph& graph, int64_t samples);

// Whether an op of the update reads a gradient that is formed in slices. It then runs for each slice.
bool reads_formed(const Graph& graph, const Op& op);
// Elements of these slices: whole rows of the table, and whole chunks of the sums of squares, so that no sum
// changes. If the op's other tensors are copied in slices, `copied` is the length of those; the slices are
// then not much longer.
int64_t formed_slice(const Graph& graph, int64_t copied = INT64_MAX);

}  // namespace stw
