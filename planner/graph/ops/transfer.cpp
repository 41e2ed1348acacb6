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

constexpr OpRow transfer_table[] = {
    {.kind = OpKind::fetch, .name = "fetch", .cost = fetch_cost},
    {.kind = OpKind::store, .name = "store", .cost = store_cost},
};

}  // namespace

constinit const std::span<const OpRow> transfer_rows{transfer_table};

}  // namespace stw
