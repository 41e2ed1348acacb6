// Op table rows of the ops that compute one row from all rows of a document, or that take some rows.
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

// The gradient writes zeros first.
Cost take_gradient_cost(const Graph& g, const Op& op, const Extent& e) {
  Cost cost = streaming_cost(g, op, e, 0);
  cost.launches_before = 1;
  return cost;
}
Cost take_cost(const Graph& g, const Op& op, const Extent& e) {
  // Of x, only as many bytes as y has are read.
  const uint64_t bytes = operand_bytes(g, op.outputs[0], e);
  return {.bytes =
              size_add(size_mul(bytes, 2), operand_bytes(g, op.inputs[in(OpKind::take_rows, "places")], e))};
}

Status take_shapes(Inference& op) {
  const Tensor& places = op.at(in(OpKind::take_rows, "places"));
  op.set(0, {places.rows, op.features(in(OpKind::take_rows, "x"))});
  for (Tensor& y : op.outputs) y.rows = places.rows;
  return ok();
}
Status take_gradient_shapes(Inference& op) {
  constexpr OpKind kind = OpKind::take_rows_gradient;
  constexpr int dy = in(kind, "dy"), places = in(kind, "places"), x = in(kind, "x");
  STW_TRY(op.expect(places, {op.rows()}, dy));
  return op.expect(dy, op.row_shape(op.features(x)), x);
}

void take_rows_backward(Differentiation& d, const Op& op) {
  constexpr OpKind kind = OpKind::take_rows;
  const int x = op.inputs[in(kind, "x")], dx = d.new_gradient(x, "take_rows_gradient");
  d.emit(OpKind::take_rows_gradient, op.attributes,
         {d.gradient_of(op.outputs[0]), op.inputs[in(kind, "places")], x}, {dx});
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
    {.kind = OpKind::take_rows,
     .name = "take_rows",
     .cost = take_cost,
     .infer = take_shapes,
     .backward = take_rows_backward},
    {.kind = OpKind::take_rows_gradient,
     .name = "take_rows_gradient",
     .cost = take_gradient_cost,
     .infer = take_gradient_shapes},
};

}  // namespace

constinit const std::span<const OpRow> pooling_rows{pooling_table};

}  // namespace stw
