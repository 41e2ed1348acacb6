// Op table rows of LayerNorm and RMSNorm, over whole rows and over heads. The backward pass computes the
// statistics again from x.
#include "kernels/contract/cpu_workspace.h"
#include "kernels/contract/cuda_workspace.h"
#include "planner/graph/differentiate.h"
#include "planner/graph/infer.h"

namespace stw {

namespace {

Cost norm_cost(const Graph& g, const Op& op, const Extent& e) { return streaming_cost(g, op, e, 8); }

uint64_t statistics_workspace(const Graph&, const Op&, const Extent& e) {
  return kernels::cpu_workspace::norm_gradient(e.rows);
}
uint64_t statistics_cuda_workspace(const Graph& g, const Op& op, const Extent& e) {
  return kernels::cuda_workspace::norm_gradient(e.rows, g.rows_of(op), g.features(op.inputs[0]));
}

Status norm_shapes(Inference& op) {
  constexpr int x = in(OpKind::norm, "x"), weight = in(OpKind::norm, "weight");
  static_assert(x == in(OpKind::norm_gradient, "x") && weight == in(OpKind::norm_gradient, "weight"));
  return op.expect(weight, {op.features(x)}, x);
}

Status heads_shapes(Inference& op) {
  constexpr int x = in(OpKind::qk_norm, "x"), weight = in(OpKind::qk_norm, "query_weight");
  static_assert(x == in(OpKind::qk_norm_gradient, "x") &&
                weight == in(OpKind::qk_norm_gradient, "query_weight"));
  STW_TRY(op.expect(weight, {op.op().attributes.head_dim}, x));
  return expect_heads(op, x);
}

// If x already has a gradient, that of the residual, it is the addend.
void norm_backward(Differentiation& d, const Op& op) {
  const int x = op.inputs[in(OpKind::norm, "x")], weight = op.inputs[in(OpKind::norm, "weight")],
            bias = input_at(op, in(OpKind::norm, "bias")), dy = d.gradient_of(op.outputs[0]),
            addend = d.gradient_of(x);
  const int dx = d.requires_gradient(x) ? d.new_gradient(x, "norm_gradient") : -1;
  const int dweight = d.parameter_gradient(weight);
  const int dbias = bias >= 0 ? d.parameter_gradient(bias) : -1;
  d.emit(OpKind::norm_gradient, op.attributes, {x, weight, dy, dx >= 0 ? addend : -1}, {dx, dweight, dbias});
  if (dx >= 0) d.set_gradient(x, dx);
}

uint64_t heads_workspace(const Graph&, const Op& op, const Extent& e) {
  return kernels::cpu_workspace::qk_norm_gradient(e.rows, op.attributes.query_heads, op.attributes.kv_heads);
}
uint64_t heads_cuda_workspace(const Graph& g, const Op& op, const Extent& e) {
  const Attributes& a = op.attributes;
  return kernels::cuda_workspace::qk_norm_gradient(e.rows, g.rows_of(op), a.query_heads, a.kv_heads,
                                                   a.head_dim);
}

void qk_norm_backward(Differentiation& d, const Op& op) {
  const int x = op.inputs[in(OpKind::qk_norm, "x")];
  const int dx = d.requires_gradient(x) ? d.new_gradient(x, "qk_norm_gradient") : -1;
  std::vector<int> inputs = op.inputs;
  inputs.push_back(d.gradient_of(op.outputs[0]));
  d.emit(OpKind::qk_norm_gradient, op.attributes, std::move(inputs),
         {dx, d.parameter_gradient(op.inputs[in(OpKind::qk_norm, "query_weight")]),
          d.parameter_gradient(op.inputs[in(OpKind::qk_norm, "key_weight")])});
  if (dx >= 0) d.add_gradient(x, dx);
}

constexpr OpRow norm_table[] = {
    {.kind = OpKind::norm,
     .name = "norm",
     .cost = norm_cost,
     .infer = norm_shapes,
     .backward = norm_backward},
    {.kind = OpKind::norm_gradient,
     .name = "norm_gradient",
     .cost = norm_cost,
     .cpu_workspace = statistics_workspace,
     .cuda_workspace = statistics_cuda_workspace,
     .infer = norm_shapes,
     .in_place = {{{out(OpKind::norm_gradient, "dx"), in(OpKind::norm_gradient, "addend")}}}},
    {.kind = OpKind::qk_norm,
     .name = "qk_norm",
     .cost = norm_cost,
     .infer = heads_shapes,
     .backward = qk_norm_backward,
     .in_place = {{{0, 0}}}},
    {.kind = OpKind::qk_norm_gradient,
     .name = "qk_norm_gradient",
     .cost = norm_cost,
     .cpu_workspace = heads_workspace,
     .cuda_workspace = heads_cuda_workspace,
     .infer = heads_shapes,
     .in_place = {{{out(OpKind::qk_norm_gradient, "dx"), in(OpKind::qk_norm_gradient, "dy")}}}},
};

}  // namespace

constinit const std::span<const OpRow> norm_rows{norm_table};

}  // namespace stw
