// Instead of the gradient of the token table's use as an input, a plan may keep the gradient of the
// embedding's output for all rows of the global batch, together with their tokens. After the last micro-step,
// the sums of the tokens are formed from these rows, in the order of the gradient that they replace, and are
// added to the gradient of the table's other use, the head. No bit changes. The rows take less memory if the
// vocabulary is larger than the batch.
#pragma once
#include "planner/graph/graph.h"

namespace stw {

// Whether the graph allows it, and the rows of so many samples, with the scratch memory of their sums, take
// less memory than the gradient. Then no plan takes more memory for it.
bool may_keep_rows(const Graph& graph, int64_t samples);
// Changes a graph that is otherwise complete. Its tensors keep their numbers; the new ones come last.
// Requires may_keep_rows.
void keep_rows(Graph& graph, int64_t samples);

}  // namespace stw
