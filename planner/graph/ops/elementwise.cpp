// Op table rows of the element-wise ops: GELU, SwiGLU, residual addition, scaling, dropout.
#include "planner/graph/differentiate.h"
#include "planner/graph/infer.h"

namespace stw {

namespace {

Cost cost_of_activation(const Graph& g, const Op& op, const Extent& e) {
  return streaming_cost(g, op, e, 12);
}
Cost cost_of_add(const Graph& g, const Op& op, const Extent& e) { return streaming_cost(g, op, e, 1); }
Cost cost_of_dropout(const Graph& g, const Op& op, const Extent& e) { return streaming_cost(g, op, e, 12); }

Status gated_shapes(Inference& op) {
  constexpr int x = in(OpKind::gated, "x");
  if (op.features(x) % 2 != 0) return op.fail(op.described(x) + " cannot be divided into gate and up");
  op.set(0, op.row_shape(op.features(x) / 2));
  return ok();
}
Status gated_gradient_shapes(Inference& op) {
  constexpr int x = in(OpKind::gated_gradient, "x"), dy = in(OpKind::gated_gradient, "dy");
  return op.expect(dy, op.row_shape(op.features(x) / 2), x);
}

void gelu_backward(Differentiation& d, const Op& op) {
  int dx = d.new_gradient(op.inputs[0], "gelu_gradient");
  d.emit(OpKind::activation_gradient, op.attributes, {op.inputs[0], d.gradient_of(op.outputs[0])}, {dx});
  d.add_gradient(op.inputs[0], dx);
}

void swiglu_backward(Differentiation& d, const Op& op) {
  int dx = d.new_gradient(op.inputs[0], "swiglu_gradient");
  d.emit(OpKind::gated_gradient, op.attributes, {op.inputs[0], d.gradient_of(op.outputs[0])}, {dx});
  d.add_gradient(op.inputs[0], dx);
}

// Both inputs get the same value as their gradient. An op that adds to it later computes a new value.
void add_backward(Differentiation& d, const Op& op) {
  d.add_gradient(op.inputs[0], d.gradient_of(op.outputs[0]));
  d.add_gradient(op.inputs[1], d.gradient_of(op.outputs[0]));
}

void scale_backward(Differentiation& d, const Op& op) {
  int dx = d.new_gradient(op.inputs[0], "scale_gradient");
  d.emit(OpKind::scale, op.attributes, {d.gradient_of(op.outputs[0])}, {dx});
  d.add_gradient(op.inputs[0], dx);
}

// Draws the mask again from its counters.
void dropout_backward(Differentiation& d, const Op& op) {
  int dx = d.new_gradient(op.inputs[0], "dropout_gradient");
  d.emit(OpKind::dropout, op.attributes, {d.gradient_of(op.outputs[0])}, {dx});
  d.add_gradient(op.inputs[0], dx);
}

constexpr OpRow elementwise_table[] = {
    {.kind = OpKind::activation,
     .name = "gelu",
     .cost = cost_of_activation,
     .backward = gelu_backward,
     .in_place = {{{0, 0}}},
     .is_row_by_row = true},
    {.kind = OpKind::activation_gradient,
     .name = "gelu_gradient",
     .cost = cost_of_activation,
     .in_place = {{{0, 0}, {0, 1}}},
     .is_row_by_row = true},
    {.kind = OpKind::gated,
     .name = "swiglu",
     .cost = cost_of_activation,
     .infer = gated_shapes,
     .backward = swiglu_backward,
     .is_row_by_row = true},
    {.kind = OpKind::gated_gradient,
     .name = "swiglu_gradient",
     .cost = cost_of_activation,
     .infer = gated_gradient_shapes,
     .in_place = {{{0, 0}}},
     .is_row_by_row = true},
    {.kind = OpKind::add,
     .name = "add",
     .cost = cost_of_add,
     .backward = add_backward,
     .in_place = {{{0, 0}, {0, 1}}}},
    {.kind = OpKind::scale,
     .name = "scale",
     .cost = cost_of_add,
     .backward = scale_backward,
     .in_place = {{{0, 0}}},
     .is_row_by_row = true},
    {.kind = OpKind::dropout,
     .name = "dropout",
     .cost = cost_of_dropout,
     .backward = dropout_backward,
     .in_place = {{{0, 0}}}},
};

}  // namespace

constinit const std::span<const OpRow> elementwise_rows{elementwise_table};

}  // namespace stw
