// Op table rows of the token and position embedding and their gradients.
#include <algorithm>

#include "kernels/contract/cpu_workspace.h"
#include "kernels/contract/cuda_workspace.h"
#include "planner/graph/differentiate.h"
#include "planner/graph/infer.h"

namespace stw {

namespace {

// Reads only those rows of the table that tokens name.
Cost embedding_cost(const Graph& g, const Op& op, const Extent& e) {
  return {0, size_mul(2, operand_bytes(g, op.outputs[0], e))};
}
// Reads dy once; reads and writes the rows of the table that tokens name.
Cost embedding_gradient_cost(const Graph& g, const Op& op, const Extent& e) {
  constexpr int of_table = in(OpKind::embedding_gradient, "dy"),
                of_rows = in(OpKind::position_gradient, "dy");
  const int dy = op.inputs[op.kind == OpKind::embedding_gradient ? of_table : of_rows];
  return {0, size_mul(3, operand_bytes(g, dy, e))};
}

// Reads and writes the rows of the micro-batch.
Cost keep_cost(const Graph& g, const Op& op, const Extent& e) {
  const uint64_t ids = operand_bytes(g, op.inputs[in(OpKind::keep_rows, "ids")], e),
                 dy = operand_bytes(g, op.inputs[in(OpKind::keep_rows, "dy")], e);
  return {0, size_mul(2, size_add(ids, dy))};
}
// Adds to a gradient: reads the kept rows; reads and writes the whole table once, and once more the rows that
// tokens name. Forms a slice of a gradient: reads the tokens in each pass of the sort, reads and writes the
// tokens' rows, as if they were spread evenly over the table, and writes the slice once.
Cost kept_gradient_cost(const Graph& g, const Op& op, const Extent& e) {
  const uint64_t rows = operand_bytes(g, op.inputs[in(OpKind::kept_rows_gradient, "kept_rows")], e),
                 table = operand_bytes(g, op.outputs[out(OpKind::kept_rows_gradient, "dtable")], e);
  if (op.accumulates) return {0, size_add(size_mul(3, rows), size_mul(2, table)), 0, 1};
  const Tensor& whole = g.at(op.outputs[0]);
  const uint64_t ids = operand_bytes(g, op.inputs[in(OpKind::kept_rows_gradient, "kept_ids")], e),
                 parts = std::max<uint64_t>(1, whole.bytes(1) / table);
  uint64_t passes = 1;
  for (int64_t left = (whole.shape[0] - 1) >> 8; left > 0; left >>= 8) ++passes;
  return {0, size_add(size_mul(3, rows) / parts, table), size_mul(size_mul(4, passes), ids), passes};
}

uint64_t table_workspace(const Graph&, const Op&, const Extent& e) {
  return kernels::cpu_workspace::embedding_gradient(e.rows);
}
uint64_t table_cuda_workspace(const Graph&, const Op&, const Extent& e) {
  return kernels::cuda_workspace::embedding_gradient(e.rows);
}

constexpr int ids = in(OpKind::embedding, "ids"), table = in(OpKind::embedding, "table"),
              positions = in(OpKind::embedding, "positions"),
              position_ids = in(OpKind::embedding, "position_ids");

Status embedding_shapes(Inference& op) {
  for (const int matrix : {table, positions})
    if (op.has(matrix) && op.shape(matrix).rank != 2)
      return op.fail(op.described(matrix) + " is not a matrix");
  if (op.shape(ids).rank != 1) return op.fail(op.described(ids) + " does not hold one number a row");
  const int64_t features = op.features(table);
  if (op.has(positions)) {
    STW_TRY(op.expect(positions, {op.shape(positions)[0], features}, table));
    if (!op.has(position_ids) && op.shape(positions)[0] < op.rows())
      return op.fail(op.described(positions) + " has fewer rows than " + op.described(ids));
  }
  op.set(0, op.row_shape(features));
  return ok();
}

void embedding_backward(Differentiation& d, const Op& op) {
  const int dy = d.gradient_of(op.outputs[0]), trained = input_at(op, positions),
            of_rows = input_at(op, position_ids);
  const int dtable = d.parameter_gradient(op.inputs[table]);
  const int dpositions = trained >= 0 ? d.parameter_gradient(trained) : -1;
  if (dtable >= 0) d.emit(OpKind::embedding_gradient, op.attributes, {op.inputs[ids], dy}, {dtable});
  if (dpositions < 0) return;
  // If samples hold documents, several rows have the same position, so the gradient needs the general kernel.
  if (of_rows >= 0) d.emit(OpKind::embedding_gradient, op.attributes, {of_rows, dy}, {dpositions});
  else d.emit(OpKind::position_gradient, op.attributes, {dy}, {dpositions});
}

constexpr OpRow embedding_table[] = {
    {.kind = OpKind::embedding,
     .name = "embedding",
     .cost = embedding_cost,
     .infer = embedding_shapes,
     .backward = embedding_backward},
    {.kind = OpKind::embedding_gradient,
     .name = "embedding_gradient",
     .cost = embedding_gradient_cost,
     .cpu_workspace = table_workspace,
     .cuda_workspace = table_cuda_workspace},
    {.kind = OpKind::keep_rows, .name = "keep_rows", .cost = keep_cost},
    {.kind = OpKind::kept_rows_gradient,
     .name = "kept_rows_gradient",
     .cost = kept_gradient_cost,
     .cpu_workspace = table_workspace,
     .cuda_workspace = table_cuda_workspace},
    {.kind = OpKind::position_gradient, .name = "position_gradient", .cost = embedding_gradient_cost},
};

}  // namespace

constinit const std::span<const OpRow> embedding_rows{embedding_table};

}  // namespace stw
