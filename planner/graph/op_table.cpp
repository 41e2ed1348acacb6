#include "planner/graph/op_table.h"

#include <algorithm>
#include <array>
#include <span>

namespace stw {

namespace {

using Table = std::array<const OpRow*, op_kind_count>;

// Rows may have any order. A missing row stays a null pointer; a test looks for null pointers.
Table make_table() {
  Table table{};
  for (const std::span<const OpRow> rows :
       {embedding_rows, norm_rows, linear_rows, adapter_rows, attention_rows, elementwise_rows, loss_rows,
        pooling_rows, update_rows, transfer_rows})
    for (const OpRow& row : rows) table[static_cast<size_t>(row.kind)] = &row;
  return table;
}

}  // namespace

const OpRow& op_row(OpKind kind) {
  static const Table table = make_table();
  return *table[static_cast<size_t>(kind)];
}

Extent extent_of(const Graph& graph, const Op& op, int64_t samples, int64_t rows, int threads,
                 int64_t elements) {
  const int64_t all = samples * graph.rows_of(op);
  return {samples, rows > 0 ? rows : all, threads, elements, rows > 0 && rows != all};
}

bool has_slices(const Graph& graph, int tensor) {
  const Tensor& t = graph.at(tensor);
  return !t.per_sample && t.format != Format::f64 && tensor != graph.kept.ids && tensor != graph.kept.rows;
}

uint64_t operand_bytes(const Graph& graph, int tensor, const Extent& extent) {
  if (tensor < 0) return 0;
  const Tensor& t = graph.at(tensor);
  if (extent.elements > 0 && has_slices(graph, tensor)) return t.part_bytes(extent.elements);
  if (!t.per_sample || !extent.part) return t.bytes(extent.samples);
  return size_mul(t.row_bytes(), static_cast<uint64_t>(extent.rows));
}

Cost streaming_cost(const Graph& graph, const Op& op, const Extent& extent, uint64_t flops_per_element) {
  Cost cost;
  for (size_t i = 0; i < op.inputs.size(); ++i)
    if (reads_input(op.kind, i))
      cost.bytes = size_add(cost.bytes, operand_bytes(graph, op.inputs[i], extent));
  for (int t : op.outputs) cost.bytes = size_add(cost.bytes, operand_bytes(graph, t, extent));
  if (!op.inputs.empty() && op.inputs[0] >= 0)
    cost.flops = size_mul(flops_per_element, operand_bytes(graph, op.inputs[0], extent) /
                                                 element_bytes(graph.at(op.inputs[0]).format));
  return cost;
}

}  // namespace stw
