// Op table rows of the ops that compute one row from all rows of a document.
#include "planner/graph/differentiate.h"

namespace stw {

namespace {

Cost mean_cost(const Graph& g, const Op& op, const Extent& e) { return streaming_cost(g, op, e, 1); }

void document_mean_backward(Differentiation& d, const Op& op) {
  const int dx = d.new_gradient(op.inputs[0], "document_mean_gradient");
  d.emit(OpKind::document_mean_gradient, op.attributes,
         {d.gradient_of(op.outputs[0]), op.inputs[1], op.inputs[2]}, {dx});
  d.add_gradient(op.inputs[0], dx);
}

}  // namespace

const OpRow pooling_rows[2] = {
    {OpKind::document_mean,
     "document_mean",
     mean_cost,
     no_workspace,
     no_workspace,
     document_mean_backward,
     {}},
    {OpKind::document_mean_gradient,
     "document_mean_gradient",
     mean_cost,
     no_workspace,
     no_workspace,
     nullptr,
     {}},
};

}  // namespace stw
