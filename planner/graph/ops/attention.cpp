// Op table rows of attention and rotary positions. Attention keeps the log-sum-exp of each query, so that the
// backward pass can recompute the probabilities block by block.
#include <algorithm>

#include "kernels/contract/cpu_workspace.h"
#include "kernels/contract/cuda_workspace.h"
#include "planner/graph/differentiate.h"

namespace stw {

namespace {

// The number of pairs of a query and a key that attention computes: all, or half if it is causal. A window
// leaves out a triangle of distant pairs, on both sides if attention is not causal.
uint64_t pairs(const Graph& g, const Op& op, const Extent& e) {
  const auto square = [](int64_t n) { return size_mul(static_cast<uint64_t>(n), static_cast<uint64_t>(n)); };
  const int64_t rows = g.rows_of(op);
  const uint64_t of_sample = square(rows) - (g.window_of(op) > 0 ? square(rows - g.window_of(op)) : 0);
  uint64_t n = size_mul(of_sample, static_cast<uint64_t>(e.samples));
  n = size_mul(
      n, static_cast<uint64_t>(op.attributes.query_heads) * static_cast<uint64_t>(op.attributes.head_dim));
  return op.attributes.causal ? n / 2 : n;
}

Cost attention_cost(const Graph& g, const Op& op, const Extent& e) {
  Cost c = streaming_cost(g, op, e, 0);
  c.flops = size_mul(4, pairs(g, op, e));
  return c;
}
Cost attention_gradient_cost(const Graph& g, const Op& op, const Extent& e) {
  Cost c = streaming_cost(g, op, e, 0);
  c.flops = size_mul(10, pairs(g, op, e));
  return c;
}
Cost cached_cost(const Graph& g, const Op& op, const Extent& e) {
  Cost c = streaming_cost(g, op, e, 0);
  const int64_t keys = g.window_of(op) > 0 ? g.window_of(op) : g.sequence;
  c.flops = size_mul(
      size_mul(4 * static_cast<uint64_t>(e.rows), static_cast<uint64_t>(keys)),
      static_cast<uint64_t>(op.attributes.query_heads) * static_cast<uint64_t>(op.attributes.head_dim));
  return c;
}
Cost rope_cost(const Graph& g, const Op& op, const Extent& e) { return streaming_cost(g, op, e, 4); }

uint64_t scores_workspace(const Graph& g, const Op& op, const Extent& e) {
  return kernels::cpu_workspace::attention(g.rows_of(op), op.attributes.head_dim, e.threads);
}
uint64_t gradient_workspace(const Graph& g, const Op& op, const Extent& e) {
  const Attributes& a = op.attributes;
  return kernels::cpu_workspace::attention_gradient(g.rows_of(op), a.query_heads, a.kv_heads, a.head_dim,
                                                    e.threads);
}
uint64_t attention_cuda_workspace(const Graph& g, const Op& op, const Extent&) {
  return g.is_library_attention(op) ? kernels::cuda_workspace::library_attention() : 0;
}
uint64_t gradient_cuda_workspace(const Graph& g, const Op& op, const Extent& e) {
  const Attributes& a = op.attributes;
  if (!g.is_library_attention(op)) return kernels::cuda_workspace::attention_gradient(e.rows, a.query_heads);
  return kernels::cuda_workspace::library_attention_gradient(
      {e.samples, g.rows_of(op), a.query_heads, a.kv_heads, a.head_dim});
}
uint64_t cached_workspace(const Graph&, const Op& op, const Extent& e) {
  return kernels::cpu_workspace::attention(e.rows, op.attributes.head_dim, e.threads);
}

void attention_backward(Differentiation& d, const Op& op) {
  const int dqkv = d.new_gradient(op.inputs[0], "attention_gradient");
  std::vector<int> inputs{op.inputs[0], op.outputs[0], op.outputs[1], d.gradient_of(op.outputs[0])};
  inputs.insert(inputs.end(), op.inputs.begin() + 1, op.inputs.end());
  d.emit(OpKind::attention_gradient, op.attributes, std::move(inputs), {dqkv});
  d.add_gradient(op.inputs[0], dqkv);
}

// The gradient of a rotation is the opposite rotation.
void rope_backward(Differentiation& d, const Op& op) {
  Attributes a = op.attributes;
  a.inverse = !a.inverse;
  const int dx = d.new_gradient(op.inputs[0], "rope_gradient");
  std::vector<int> inputs = op.inputs;
  inputs[0] = d.gradient_of(op.outputs[0]);
  d.emit(OpKind::rope, a, std::move(inputs), {dx});
  d.add_gradient(op.inputs[0], dx);
}

constexpr OpRow attention_table[] = {
    {.kind = OpKind::rope,
     .name = "rope",
     .cost = rope_cost,
     .backward = rope_backward,
     .in_place = {{{0, 0}}}},
    {.kind = OpKind::attention,
     .name = "attention",
     .cost = attention_cost,
     .cpu_workspace = scores_workspace,
     .cuda_workspace = attention_cuda_workspace,
     .backward = attention_backward},
    {.kind = OpKind::attention_cached,
     .name = "attention_cached",
     .cost = cached_cost,
     .cpu_workspace = cached_workspace},
    {.kind = OpKind::attention_gradient,
     .name = "attention_gradient",
     .cost = attention_gradient_cost,
     .cpu_workspace = gradient_workspace,
     .cuda_workspace = gradient_cuda_workspace},
};

}  // namespace

constinit const std::span<const OpRow> attention_rows{attention_table};

}  // namespace stw
