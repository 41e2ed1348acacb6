// Op table rows of low-rank adapters (adapters.h): y = base + low·Wᵀ in the parts that have an adapter, and
// its two gradients.
#include "kernels/contract/cpu_workspace.h"
#include "planner/graph/differentiate.h"

namespace stw {

namespace {

// Sizes of an op's parts. The inputs from `first` on are the weights of the parts, (features, rank).
struct AdapterParts {
  int64_t rank = 0, features = 0, widest = 0;
};
AdapterParts parts(const Graph& g, const Op& op, size_t first) {
  AdapterParts p;
  for (size_t k = first; k < op.inputs.size(); ++k) {
    const Shape& w = g.at(op.inputs[k]).shape;
    p.rank = w[1];
    p.features += w[0];
    p.widest = std::max(p.widest, w[0]);
  }
  return p;
}
AdapterParts parts(const Graph& g, const Op& op) {
  return parts(g, op, op.kind == OpKind::adapter_input_gradient ? 1 : 2);
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

// The base's gradient is y's: the adapter only adds to the base.
void adapter_backward(Differentiation& d, const Op& op) {
  const int base = op.inputs[0], low = op.inputs[1], dy = d.gradient_of(op.outputs[0]);
  std::vector<int> products{dy, low}, weights{dy}, gradients;
  bool any = false;
  for (size_t k = 2; k < op.inputs.size(); ++k) {
    products.push_back(op.inputs[k]);
    weights.push_back(op.inputs[k]);
    gradients.push_back(d.parameter_gradient(op.inputs[k]));
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
     .backward = adapter_backward,
     .in_place = {{{0, 0}}},
     .is_row_by_row = true},
    {.kind = OpKind::adapter_input_gradient,
     .name = "adapter_input_gradient",
     .cost = adapter_cost,
     .cpu_workspace = adapter_input_workspace,
     .is_row_by_row = true},
    {.kind = OpKind::adapter_weight_gradient,
     .name = "adapter_weight_gradient",
     .cost = adapter_cost,
     .cpu_workspace = adapter_weight_workspace,
     .shapes_from = 2,
     .is_row_by_row = true},
};

}  // namespace

constinit const std::span<const OpRow> adapter_rows{adapter_table};

}  // namespace stw
