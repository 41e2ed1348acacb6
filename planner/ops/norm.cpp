// Rows of LayerNorm and RMSNorm. The backward pass computes the two statistics of a row again from x.
#include "planner/differentiate.h"
#include "planner/ops/cuda_workspace.h"
#include "planner/ops/workspace.h"

namespace stw {

namespace {

Cost norm_cost(const Graph& g, const Op& op, const Extent& e) { return streaming_cost(g, op, e, 8); }

uint64_t statistics_workspace(const Graph&, const Op&, const Extent& e) { return workspace::norm_gradient(e.rows); }
uint64_t statistics_cuda_workspace(const Graph& g, const Op& op, const Extent& e) {
  return cuda_workspace::norm_gradient(e.rows, g.sequence, g.features(op.inputs[0]));
}

// The residual's gradient that already arrived at x is the addend.
void norm_backward(Differentiation& d, const Op& op) {
  const int x = op.inputs[0], dy = d.gradient_of(op.outputs[0]), addend = d.gradient_of(x);
  const int dx = d.wanted(x) ? d.new_gradient(x, "norm_gradient") : -1;
  const int dweight = d.parameter_gradient(op.inputs[1]);
  const int dbias = op.inputs[2] >= 0 ? d.parameter_gradient(op.inputs[2]) : -1;
  d.emit(OpKind::norm_gradient, op.attributes, {x, op.inputs[1], dy, dx >= 0 ? addend : -1}, {dx, dweight, dbias});
  if (dx >= 0) d.set_gradient(x, dx);
}

}  // namespace

const OpRow norm_rows[2] = {
    {OpKind::norm, "norm", norm_cost, no_workspace, no_workspace, norm_backward, {}},
    {OpKind::norm_gradient, "norm_gradient", norm_cost, statistics_workspace, statistics_cuda_workspace, nullptr, {{{0, 3}}}},
};

}  // namespace stw
