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

constexpr OpRow pooling_table[] = {
    {.kind = OpKind::document_mean,
     .name = "document_mean",
     .cost = mean_cost,
     .backward = document_mean_backward},
    {.kind = OpKind::document_mean_gradient, .name = "document_mean_gradient", .cost = mean_cost},
};

}  // namespace

constinit const std::span<const OpRow> pooling_rows{pooling_table};

}  // namespace stw
