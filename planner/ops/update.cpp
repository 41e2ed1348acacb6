// Rows of the update: squared norms, the step's scalars, AdamW. Their operands are parameters and states.
#include "planner/op_table.h"
#include "planner/ops/workspace.h"

namespace stw {

namespace {

// Inputs once, outputs read and written.
Cost update_cost(const Graph& g, const Op& op, const Extent& e) {
  Cost c = streaming_cost(g, op, e, 12);
  for (int t : op.outputs) c.bytes = size_add(c.bytes, operand_bytes(g, t, e));
  return c;
}
Cost sum_cost(const Graph& g, const Op& op, const Extent& e) { return streaming_cost(g, op, e, 2); }

uint64_t sum_workspace(const Graph& g, const Op& op, const Extent&) {
  return workspace::square_sum(g.at(op.inputs[0]).shape.elements());
}

}  // namespace

const OpRow update_rows[4] = {
    {OpKind::square_sum, "square_sum", sum_cost, sum_workspace, nullptr, {}},
    {OpKind::finish_step, "finish_step", sum_cost, no_workspace, nullptr, {}},
    {OpKind::adamw, "adamw", update_cost, no_workspace, nullptr, {}},
    {OpKind::adamw8, "adamw8", update_cost, no_workspace, nullptr, {}},
};

}  // namespace stw
