// Op table rows of the token and position embedding and their gradients.
#include "kernels/contract/cpu_workspace.h"
#include "kernels/contract/cuda_workspace.h"
#include "planner/graph/differentiate.h"

namespace stw {

namespace {

// Reads only those rows of the table that tokens name.
Cost embedding_cost(const Graph& g, const Op& op, const Extent& e) {
  return {0, size_mul(2, operand_bytes(g, op.outputs[0], e))};
}
// Reads dy once; reads and writes the rows of the table that tokens name.
Cost embedding_gradient_cost(const Graph& g, const Op& op, const Extent& e) {
  return {0, size_mul(3, operand_bytes(g, op.inputs[op.kind == OpKind::embedding_gradient ? 1 : 0], e))};
}

uint64_t table_workspace(const Graph&, const Op&, const Extent& e) {
  return kernels::cpu_workspace::embedding_gradient(e.rows);
}
uint64_t table_cuda_workspace(const Graph&, const Op&, const Extent& e) {
  return kernels::cuda_workspace::embedding_gradient(e.rows);
}

void embedding_backward(Differentiation& d, const Op& op) {
  const int dy = d.gradient_of(op.outputs[0]);
  const int table = d.parameter_gradient(op.inputs[1]);
  const int positions = op.inputs[2] >= 0 ? d.parameter_gradient(op.inputs[2]) : -1;
  if (table >= 0) d.emit(OpKind::embedding_gradient, op.attributes, {op.inputs[0], dy}, {table});
  if (positions < 0) return;
  // If samples hold documents, several rows have the same position, so the gradient needs the general kernel.
  if (op.inputs.size() > 3)
    d.emit(OpKind::embedding_gradient, op.attributes, {op.inputs[3], dy}, {positions});
  else d.emit(OpKind::position_gradient, op.attributes, {dy}, {positions});
}

constexpr OpRow embedding_table[] = {
    {.kind = OpKind::embedding, .name = "embedding", .cost = embedding_cost, .backward = embedding_backward},
    {.kind = OpKind::embedding_gradient,
     .name = "embedding_gradient",
     .cost = embedding_gradient_cost,
     .cpu_workspace = table_workspace,
     .cuda_workspace = table_cuda_workspace},
    {.kind = OpKind::position_gradient, .name = "position_gradient", .cost = embedding_gradient_cost},
};

}  // namespace

constinit const std::span<const OpRow> embedding_rows{embedding_table};

}  // namespace stw
