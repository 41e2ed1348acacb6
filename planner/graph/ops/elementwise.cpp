// Op table rows of the element-wise ops: GELU, SwiGLU, residual addition, scaling, dropout.
#include "planner/graph/differentiate.h"

namespace stw {

namespace {

Cost cost_of_activation(const Graph& g, const Op& op, const Extent& e) {
  return streaming_cost(g, op, e, 12);
}
Cost cost_of_add(const Graph& g, const Op& op, const Extent& e) { return streaming_cost(g, op, e, 1); }
Cost cost_of_dropout(const Graph& g, const Op& op, const Extent& e) { return streaming_cost(g, op, e, 12); }

void gelu_backward(Differentiation& d, const Op& op) {
  int dx = d.new_gradient(op.inputs[0], "gelu_gradient");
  d.emit(OpKind::gelu_gradient, op.attributes, {op.inputs[0], d.gradient_of(op.outputs[0])}, {dx});
  d.add_gradient(op.inputs[0], dx);
}

void swiglu_backward(Differentiation& d, const Op& op) {
  int dx = d.new_gradient(op.inputs[0], "swiglu_gradient");
  d.emit(OpKind::swiglu_gradient, op.attributes, {op.inputs[0], d.gradient_of(op.outputs[0])}, {dx});
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

}  // namespace

const OpRow elementwise_rows[7] = {
    {OpKind::gelu, "gelu", cost_of_activation, no_workspace, no_workspace, gelu_backward, {{{0, 0}}}},
    {OpKind::gelu_gradient,
     "gelu_gradient",
     cost_of_activation,
     no_workspace,
     no_workspace,
     nullptr,
     {{{0, 0}, {0, 1}}}},
    {OpKind::swiglu, "swiglu", cost_of_activation, no_workspace, no_workspace, swiglu_backward, {}},
    {OpKind::swiglu_gradient,
     "swiglu_gradient",
     cost_of_activation,
     no_workspace,
     no_workspace,
     nullptr,
     {{{0, 0}}}},
    {OpKind::add, "add", cost_of_add, no_workspace, no_workspace, add_backward, {{{0, 0}, {0, 1}}}},
    {OpKind::scale, "scale", cost_of_add, no_workspace, no_workspace, scale_backward, {{{0, 0}}}},
    {OpKind::dropout, "dropout", cost_of_dropout, no_workspace, no_workspace, dropout_backward, {{{0, 0}}}},
};

}  // namespace stw
