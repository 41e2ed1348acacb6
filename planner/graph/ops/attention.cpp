// Op table rows of attention and rotary positions. Attention keeps the log-sum-exp of each query, so that the
// backward pass can recompute the probabilities block by block.
#include <algorithm>

#include "kernels/contract/cpu_workspace.h"
#include "kernels/contract/cuda_workspace.h"
#include "planner/graph/differentiate.h"
#include "planner/graph/infer.h"

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

// Flops for a pair and an element of a head, of which the product of queries and keys has 2. Forward, keys
// and queries of relative positions are about 1.4 such products each, rounded to 3 flops. The gradient has
// three products of twice the length for each (kernels/cpu/attention/relative.h).
uint64_t relative_products(const Op& op, uint64_t of_keys, uint64_t of_queries) {
  return (op.attributes.relative_keys ? of_keys : 0) + (op.attributes.relative_queries ? of_queries : 0);
}

Cost attention_cost(const Graph& g, const Op& op, const Extent& e) {
  Cost c = streaming_cost(g, op, e, 0);
  c.flops = size_mul(4 + relative_products(op, 3, 3), pairs(g, op, e));
  c.head = op.attributes.head_dim;
  return c;
}
Cost attention_gradient_cost(const Graph& g, const Op& op, const Extent& e) {
  Cost c = streaming_cost(g, op, e, 0);
  c.flops = size_mul(10 + relative_products(op, 12, 12), pairs(g, op, e));
  c.head = op.attributes.head_dim;
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

// The rows of the table of relative positions; 0: none. The operand has the same name in both directions.
int64_t relative_size(const Graph& g, const Op& op) {
  const int k = op.kind == OpKind::attention ? in(OpKind::attention, "relative")
                                             : in(OpKind::attention_gradient, "relative");
  const int relative = input_at(op, k);
  return relative < 0 ? 0 : g.rows_of(relative);
}

uint64_t scores_workspace(const Graph& g, const Op& op, const Extent& e) {
  return kernels::cpu_workspace::attention(g.rows_of(op), op.attributes.head_dim, e.threads,
                                           relative_size(g, op));
}
uint64_t gradient_workspace(const Graph& g, const Op& op, const Extent& e) {
  const Attributes& a = op.attributes;
  return kernels::cpu_workspace::attention_gradient(g.rows_of(op), a.query_heads, a.kv_heads, a.head_dim,
                                                    e.threads, relative_size(g, op));
}
uint64_t attention_cuda_workspace(const Graph& g, const Op& op, const Extent&) {
  return g.is_library_attention(op) ? kernels::cuda_workspace::library_attention() : 0;
}
uint64_t gradient_cuda_workspace(const Graph& g, const Op& op, const Extent& e) {
  const Attributes& a = op.attributes;
  constexpr size_t table = out(OpKind::attention_gradient, "drelative");
  if (op.outputs.size() > table && op.outputs[table] >= 0)
    return kernels::cuda_workspace::relative_attention_gradient(
        e.rows, e.samples, a.query_heads, a.head_dim, relative_size(g, op),
        a.relative_keys + a.relative_queries,
        g.peak_of(op) == Peak::mma ? kernels::cuda_workspace::relative_sum_parts(g.rows_of(op)) : 1);
  if (!g.is_library_attention(op)) return kernels::cuda_workspace::attention_gradient(e.rows, a.query_heads);
  return kernels::cuda_workspace::library_attention_gradient(
      {e.samples, g.rows_of(op), a.query_heads, a.kv_heads, a.head_dim});
}
uint64_t cached_workspace(const Graph&, const Op& op, const Extent& e) {
  return kernels::cpu_workspace::attention(e.rows, op.attributes.head_dim, e.threads);
}

constexpr int qkv = in(OpKind::attention, "qkv");
static_assert(qkv == in(OpKind::attention_gradient, "qkv") && qkv == in(OpKind::attention_cached, "qkv"));

// The keys and queries of relative positions, and the rows for each distance.
Status expect_relative(const Inference& op, int relative, int rows) {
  const Attributes& a = op.op().attributes;
  const int parts = a.relative_keys + a.relative_queries;
  if (op.has(relative) != op.has(rows) || op.has(relative) != (parts > 0))
    return op.fail("relative positions need their keys or queries, and the row of each distance");
  if (parts == 0) return ok();
  if (a.causal || a.alibi || a.window > 0 || a.query_heads != a.kv_heads)
    return op.fail(
        "relative positions are for attention to both sides, without a window, with as many key "
        "heads as query heads");
  STW_TRY(op.expect(rows, {2 * op.rows() - 1}, qkv));
  return op.expect(relative, {op.shape(relative)[0], int64_t{parts} * a.query_heads * a.head_dim}, qkv);
}

Shape output_shape(const Inference& op) {
  return op.row_shape(int64_t{op.op().attributes.query_heads} * op.op().attributes.head_dim);
}
Shape lse_shape(const Inference& op) { return {op.op().attributes.query_heads, op.rows()}; }

Status attention_shapes(Inference& op) {
  constexpr int positions = in(OpKind::attention, "positions"),
                following = in(OpKind::attention, "following");
  const Attributes& a = op.op().attributes;
  STW_TRY(expect_heads(op, qkv));
  STW_TRY(op.expect(positions, {op.rows()}, qkv));
  if (!a.causal && op.has(positions) != op.has(following))
    return op.fail("attention to both sides inside documents needs positions and following, or neither");
  if (!a.causal && a.alibi) return op.fail("the bias of ALiBi is for causal attention");
  STW_TRY(expect_relative(op, in(OpKind::attention, "relative"), in(OpKind::attention, "relative_rows")));
  op.set(out(OpKind::attention, "out"), output_shape(op));
  op.set(out(OpKind::attention, "lse"), lse_shape(op), Format::f32);
  return ok();
}
Status attention_gradient_shapes(Inference& op) {
  constexpr OpKind kind = OpKind::attention_gradient;
  STW_TRY(expect_heads(op, qkv));
  STW_TRY(op.expect(in(kind, "positions"), {op.rows()}, qkv));
  STW_TRY(expect_relative(op, in(kind, "relative"), in(kind, "relative_rows")));
  if (op.outputs.size() > 1) op.outputs[out(kind, "drelative")].format = Format::f32;
  STW_TRY(op.expect(in(kind, "out"), output_shape(op), qkv));
  return op.expect(in(kind, "lse"), lse_shape(op), qkv);
}
Status cached_shapes(Inference& op) {
  constexpr int keys = in(OpKind::attention_cached, "keys");
  const Attributes& a = op.op().attributes;
  STW_TRY(expect_heads(op, qkv));
  STW_TRY(op.expect(keys, {op.graph().sequence, int64_t{a.kv_heads} * a.head_dim}, qkv));
  op.set(0, output_shape(op));
  return ok();
}
Status rope_shapes(Inference& op) {
  constexpr int x = in(OpKind::rope, "x"), cosine = in(OpKind::rope, "cosine");
  STW_TRY(expect_heads(op, x));
  STW_TRY(op.expect(in(OpKind::rope, "positions"), {op.rows()}, x));
  const Shape& table = op.shape(cosine);
  if (table.rank == 2 && table[0] >= op.rows() && 2 * table[1] <= op.op().attributes.head_dim) return ok();
  return op.fail(op.described(cosine) + " does not fit " + op.described(x) + " and a head size of " +
                 std::to_string(op.op().attributes.head_dim));
}

void attention_backward(Differentiation& d, const Op& op) {
  constexpr OpKind kind = OpKind::attention;
  const int x = op.inputs[qkv], dqkv = d.new_gradient(x, "attention_gradient");
  const int result = op.outputs[out(kind, "out")];
  std::vector<int> inputs{x, result, op.outputs[out(kind, "lse")], d.gradient_of(result)};
  inputs.insert(inputs.end(), op.inputs.begin() + in(kind, "positions"), op.inputs.end());
  std::vector<int> outputs{dqkv};
  if (const int relative = input_at(op, in(kind, "relative")); relative >= 0)
    outputs.push_back(d.table_gradient(relative));
  d.emit(OpKind::attention_gradient, op.attributes, std::move(inputs), std::move(outputs));
  d.add_gradient(x, dqkv);
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
     .infer = rope_shapes,
     .backward = rope_backward,
     .in_place = {{{0, 0}}}},
    {.kind = OpKind::attention,
     .name = "attention",
     .cost = attention_cost,
     .cpu_workspace = scores_workspace,
     .cuda_workspace = attention_cuda_workspace,
     .infer = attention_shapes,
     .backward = attention_backward},
    {.kind = OpKind::attention_cached,
     .name = "attention_cached",
     .cost = cached_cost,
     .cpu_workspace = cached_workspace,
     .infer = cached_shapes},
    {.kind = OpKind::attention_gradient,
     .name = "attention_gradient",
     .cost = attention_gradient_cost,
     .cpu_workspace = gradient_workspace,
     .cuda_workspace = gradient_cuda_workspace,
     .infer = attention_gradient_shapes},
};

}  // namespace

constinit const std::span<const OpRow> attention_rows{attention_table};

}  // namespace stw
