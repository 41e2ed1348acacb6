// Op table rows of the copies between host memory and the arena.
#include "planner/graph/op_table.h"

namespace stw {

namespace {

Cost fetch_cost(const Graph& g, const Op& op, const Extent& e) {
  return {0, operand_bytes(g, op.outputs[0], e)};
}
Cost store_cost(const Graph& g, const Op& op, const Extent& e) {
  return {0, operand_bytes(g, op.inputs[0], e)};
}

}  // namespace

const OpRow transfer_rows[2] = {
    {OpKind::fetch, "fetch", fetch_cost, no_workspace, no_workspace, nullptr, {}},
    {OpKind::store, "store", store_cost, no_workspace, no_workspace, nullptr, {}},
};

}  // namespace stw
