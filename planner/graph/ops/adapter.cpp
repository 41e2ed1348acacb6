// Op table rows of low-rank adapters (adapters.h): y = base + low·Wᵀ in the parts that have an adapter, and
// its two gradients.
#include "kernels/contract/cpu_workspace.h"
#include "planner/graph/differentiate.h"
#include "planner/graph/infer.h"

namespace stw {

namespace {

// Sizes of an op's parts, whose weights are (features, rank).
struct AdapterParts {
  int64_t rank = 0, features = 0, widest = 0;
};
AdapterParts parts(const Graph& g, const Op& op) {
  AdapterParts p;
  for (const int weight : part_inputs(op, "weight")) {
    const Shape& w = g.at(weight).shape;
    p.rank = w[1];
    p.features += w[0];
    p.widest = std::max(p.widest, w[0]);
  }
  return p;
}

Cost adapter_cost(const Graph& g, const Op& op, const Extent& e) {
  Cost c = streaming_cost(g, op, e, 0);
  const AdapterParts p = parts(g, op);
  c.flops = size_mul(size_mul(2 * static_cast<uint64_t>(e.rows), static_cast<uint64_t>(p.rank)),
                     static_cast<uint64_t>(p.features));
  return c;
}

uint64_t adapter_workspace(const Graph& g, const Op& op, const Extent& e) {
  const AdapterParts p = parts(g, op);
  return kernels::cpu_workspace::adapter(e.rows, p.rank, p.widest, dtype_of(g.at(op.outputs[0]).format),
                                         e.threads);
}
uint64_t adapter_input_workspace(const Graph& g, const Op& op, const Extent& e) {
  const AdapterParts p = parts(g, op);
  return kernels::cpu_workspace::adapter_input_gradient(e.rows, p.rank, p.widest,
                                                        dtype_of(g.at(op.outputs[0]).format), e.threads);
}
uint64_t adapter_weight_workspace(const Graph& g, const Op& op, const Extent& e) {
  const AdapterParts p = parts(g, op);
  return kernels::cpu_workspace::adapter_weight_gradient(e.rows, p.rank, p.widest, e.threads);
}

// `wide` is the operand that has the columns of the adapted matrices, the base or its gradient. `low`: -1 if
// the op does not read it.
Status check_adapter_parts(const Inference& op, int wide, int low) {
  const Operands& operands = operands_of(op.op().kind);
  const int first = operands.first_part(), count = part_count(op.op());
  for (int part = 0; part < count; ++part) {
    const int k = first + part;
    if (op.shape(k).rank != 2) return op.fail(op.described(k) + " is not a matrix");
    STW_TRY(op.expect(k, {op.shape(k)[0], op.shape(first)[1]}, first));
    if (op.op().attributes.columns[part] + op.shape(k)[0] > op.features(wide))
      return op.fail(op.described(k) + ", from column " + std::to_string(op.op().attributes.columns[part]) +
                     " on, does not fit " + op.described(wide));
  }
  if (low < 0) return ok();
  return op.expect(low, op.row_shape(count * op.shape(first)[1]), first);
}
Status adapter_shapes(Inference& op) {
  return check_adapter_parts(op, in(OpKind::adapter, "base"), in(OpKind::adapter, "low"));
}
Status adapter_input_shapes(Inference& op) {
  STW_TRY(check_adapter_parts(op, in(OpKind::adapter_input_gradient, "dy"), -1));
  constexpr int weight = in(OpKind::adapter_input_gradient, "weight");
  op.set(0, op.row_shape(part_count(op.op()) * op.shape(weight)[1]));
  return ok();
}
Status adapter_weight_shapes(Inference& op) {
  return check_adapter_parts(op, in(OpKind::adapter_weight_gradient, "dy"),
                             in(OpKind::adapter_weight_gradient, "low"));
}

// The base's gradient is y's: the adapter only adds to the base.
void adapter_backward(Differentiation& d, const Op& op) {
  const int base = op.inputs[in(OpKind::adapter, "base")], low = op.inputs[in(OpKind::adapter, "low")],
            dy = d.gradient_of(op.outputs[0]);
  std::vector<int> products{dy, low}, weights{dy}, gradients;
  bool any = false;
  for (const int weight : part_inputs(op, "weight")) {
    products.push_back(weight);
    weights.push_back(weight);
    gradients.push_back(d.parameter_gradient(weight));
    any |= gradients.back() >= 0;
  }
  if (any) d.emit(OpKind::adapter_weight_gradient, op.attributes, std::move(products), std::move(gradients));
  if (d.requires_gradient(low)) {
    const int dlow = d.new_gradient(low, "adapter_gradient");
    d.emit(OpKind::adapter_input_gradient, op.attributes, std::move(weights), {dlow});
    d.add_gradient(low, dlow);
  }
  d.add_gradient(base, dy);
}

constexpr OpRow adapter_table[] = {
    {.kind = OpKind::adapter,
     .name = "adapter",
     .cost = adapter_cost,
     .cpu_workspace = adapter_workspace,
     .infer = adapter_shapes,
     .backward = adapter_backward,
     .in_place = {{{0, 0}}},
     .is_row_by_row = true},
    {.kind = OpKind::adapter_input_gradient,
     .name = "adapter_input_gradient",
     .cost = adapter_cost,
     .cpu_workspace = adapter_input_workspace,
     .infer = adapter_input_shapes,
     .is_row_by_row = true},
    {.kind = OpKind::adapter_weight_gradient,
     .name = "adapter_weight_gradient",
     .cost = adapter_cost,
     .cpu_workspace = adapter_weight_workspace,
     .infer = adapter_weight_shapes,
     .is_row_by_row = true},
};

}  // namespace

constinit const std::span<const OpRow> adapter_rows{adapter_table};

}  // namespace stw
