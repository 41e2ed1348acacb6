// Op table rows of the ops that compute one row from all rows of a document.
#include "planner/graph/differentiate.h"
#include "planner/graph/infer.h"

namespace stw {

namespace {

Cost mean_cost(const Graph& g, const Op& op, const Extent& e) { return streaming_cost(g, op, e, 1); }

Status mean_shapes(Inference& op) {
  constexpr int positions = in(OpKind::document_mean, "positions");
  static_assert(positions == in(OpKind::document_mean_gradient, "positions"));
  return op.expect(positions, {op.rows()}, 0);
}

void document_mean_backward(Differentiation& d, const Op& op) {
  constexpr OpKind kind = OpKind::document_mean;
  const int x = op.inputs[in(kind, "x")], dx = d.new_gradient(x, "document_mean_gradient");
  d.emit(OpKind::document_mean_gradient, op.attributes,
         {d.gradient_of(op.outputs[0]), op.inputs[in(kind, "positions")], op.inputs[in(kind, "following")]},
         {dx});
  d.add_gradient(x, dx);
}

constexpr OpRow pooling_table[] = {
    {.kind = OpKind::document_mean,
     .name = "document_mean",
     .cost = mean_cost,
     .infer = mean_shapes,
     .backward = document_mean_backward},
    {.kind = OpKind::document_mean_gradient,
     .name = "document_mean_gradient",
     .cost = mean_cost,
     .infer = mean_shapes},
};

}  // namespace

constinit const std::span<const OpRow> pooling_rows{pooling_table};

}  // namespace stw
