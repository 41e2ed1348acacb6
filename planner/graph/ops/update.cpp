// Op table rows of the update: squared norms, the step's scalars, the rules of optimizers. Their operands are
// parameters and states.
#include "kernels/contract/cpu_workspace.h"
#include "kernels/contract/cuda_workspace.h"
#include "planner/graph/op_table.h"

namespace stw {

namespace {

// Reads inputs once, and reads and writes outputs.
Cost update_cost(const Graph& g, const Op& op, const Extent& e) {
  Cost c = streaming_cost(g, op, e, 12);
  for (int t : op.outputs) c.bytes = size_add(c.bytes, operand_bytes(g, t, e));
  return c;
}
Cost gradient_sum_cost(const Graph& g, const Op& op, const Extent& e) {
  return streaming_cost(g, op, e, op.inputs.size() - 1);
}
Cost squares_cost(const Graph& g, const Op& op, const Extent& e) { return streaming_cost(g, op, e, 2); }

uint64_t squares_workspace(const Graph& g, const Op& op, const Extent& e) {
  return kernels::cpu_workspace::square_sum(e.elements > 0 ? static_cast<uint64_t>(e.elements)
                                                           : g.at(op.inputs[0]).shape.elements());
}

// The shape of a tensor as a matrix: the product of all dimensions but the last, and the last.
struct Sides {
  uint64_t rows, columns;
};
Sides sides(const Graph& g, const Op& op) {
  const Shape& s = g.at(op.outputs[0]).shape;
  const uint64_t columns = static_cast<uint64_t>(s[s.rank - 1]);
  return {s.elements() / columns, columns};
}

// Five Newton-Schulz steps, with shorter side a and longer side b: X·Xᵀ, its square, and their product with
// X.
Cost muon_cost(const Graph& g, const Op& op, const Extent& e) {
  Cost c = update_cost(g, op, e);
  const auto [rows, columns] = sides(g, op);
  const uint64_t a = std::min(rows, columns), b = std::max(rows, columns);
  const uint64_t step =
      size_add(size_mul(size_mul(a, a), size_mul(4, b)), size_mul(size_mul(a, a), size_mul(2, a)));
  c.flops = size_add(c.flops, size_mul(5, step));
  return c;
}
// Three passes: the squares, the estimate's norm, and the update. They read gradients three times and the
// parameter twice.
Cost adafactor_cost(const Graph& g, const Op& op, const Extent& e) {
  Cost c = update_cost(g, op, e);
  c.bytes = size_add(c.bytes, size_mul(3, operand_bytes(g, op.inputs[0], e)));
  return c;
}
uint64_t muon_workspace(const Graph& g, const Op& op, const Extent& e) {
  const auto [rows, columns] = sides(g, op);
  return kernels::cpu_workspace::muon(static_cast<int64_t>(rows), static_cast<int64_t>(columns), e.threads);
}
uint64_t muon_cuda_workspace(const Graph& g, const Op& op, const Extent&) {
  const auto [rows, columns] = sides(g, op);
  const bool tensor = g.kernels != Kernels::portable && g.at(op.outputs[0]).format != Format::f32;
  return kernels::cuda_workspace::muon(static_cast<int64_t>(rows), static_cast<int64_t>(columns), tensor);
}
uint64_t adafactor_workspace(const Graph& g, const Op& op, const Extent&) {
  const Shape& s = g.at(op.outputs[0]).shape;
  return kernels::cpu_workspace::adafactor(static_cast<int64_t>(s.elements()), s.rank == 2 ? s[1] : 0);
}
uint64_t adafactor_cuda_workspace(const Graph& g, const Op& op, const Extent&) {
  const Shape& s = g.at(op.outputs[0]).shape;
  return kernels::cuda_workspace::adafactor(static_cast<int64_t>(s.elements()), s.rank == 2 ? s[1] : 0);
}

constexpr OpRow update_table[] = {
    {.kind = OpKind::gradient_sum, .name = "gradient_sum", .cost = gradient_sum_cost},
    {.kind = OpKind::square_sum,
     .name = "square_sum",
     .cost = squares_cost,
     .cpu_workspace = squares_workspace,
     .cuda_workspace = squares_workspace,
     .is_multi_tensor = true},
    {.kind = OpKind::finish_step, .name = "finish_step", .cost = squares_cost},
    {.kind = OpKind::adamw, .name = "adamw", .cost = update_cost, .is_multi_tensor = true},
    {.kind = OpKind::adamw8, .name = "adamw8", .cost = update_cost, .is_multi_tensor = true},
    {.kind = OpKind::sgd, .name = "sgd", .cost = update_cost, .is_multi_tensor = true},
    {.kind = OpKind::lion, .name = "lion", .cost = update_cost, .is_multi_tensor = true},
    {.kind = OpKind::lion8, .name = "lion8", .cost = update_cost, .is_multi_tensor = true},
    {.kind = OpKind::muon,
     .name = "muon",
     .cost = muon_cost,
     .cpu_workspace = muon_workspace,
     .cuda_workspace = muon_cuda_workspace},
    {.kind = OpKind::adafactor,
     .name = "adafactor",
     .cost = adafactor_cost,
     .cpu_workspace = adafactor_workspace,
     .cuda_workspace = adafactor_cuda_workspace},
};

}  // namespace

constinit const std::span<const OpRow> update_rows{update_table};

}  // namespace stw
