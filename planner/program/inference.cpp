#include "planner/program/inference.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "planner/graph/fuse.h"
#include "planner/program/emitter.h"

namespace stw {

namespace {

int add_cache(Graph& graph, const char* name, int64_t features) {
  Tensor t;
  t.name = name;
  t.role = Role::cache;
  t.format = graph.compute;
  t.shape = {graph.sequence, features};
  graph.tensors.push_back(std::move(t));
  return static_cast<int>(graph.tensors.size()) - 1;
}

// A count of hits reads what its loss reads first: the logits, the targets and the values.
std::vector<int> first_inputs(const Op& loss, int count) {
  return {loss.inputs.begin(), loss.inputs.begin() + count};
}

}  // namespace

// The ops without dropout: an op that reads a dropout's output reads its input instead.
static std::vector<Op> without_dropout(const Graph& graph, const std::vector<Op>& ops) {
  std::vector<int> stands_for(graph.tensors.size());
  std::iota(stands_for.begin(), stands_for.end(), 0);
  std::vector<Op> list;
  for (const Op& op : ops) {
    if (op.kind == OpKind::dropout) {
      stands_for[op.outputs[0]] = stands_for[op.inputs[in(OpKind::dropout, "x")]];
      continue;
    }
    list.push_back(op);
    list.back().attributes.dropout = 0;
    for (int& t : list.back().inputs)
      if (t >= 0) t = stands_for[t];
  }
  return list;
}

void add_inference(Graph& graph) {
  if (std::vector<Op> tables = without_dropout(graph, graph.table_ops);
      tables.size() < graph.table_ops.size())
    graph.evaluate_table_ops = std::move(tables);
  for (Op& copy : without_dropout(graph, graph.ops)) {
    // Hits are counted before the loss, because the loss may overwrite the logits.
    if (copy.kind == OpKind::cross_entropy && graph.head.row().counts_hits)
      graph.evaluate_ops.push_back({OpKind::hit_count, {}, first_inputs(copy, 2), {}, copy.segment});
    if (copy.kind == OpKind::value_loss && graph.head.row().counts_hits)
      graph.evaluate_ops.push_back({OpKind::value_hits, {}, first_inputs(copy, 3), {}, copy.segment});
    if (copy.kind == OpKind::preference) copy.outputs[out(OpKind::preference, "weights")] = -1;  // not needed
    graph.evaluate_ops.push_back(std::move(copy));
  }
  if (!graph.head.row().returns_logits) return;
  // The ops after the logits belong to the loss.
  for (size_t i = 0; i + graph.loss_ops() < graph.evaluate_ops.size(); ++i) {
    Op copy = graph.evaluate_ops[i];
    if (!graph.head.generates) {  // such a model computes the logits of whole samples
      graph.generate_ops.push_back(std::move(copy));
      continue;
    }
    // A prompt is one document.
    if (graph.inputs[Input::positions] >= 0 && copy.inputs.back() == graph.inputs[Input::positions])
      copy.inputs.pop_back();
    if (copy.kind == OpKind::attention) {
      assert(copy.attributes.causal && "a model whose attention is not causal does not generate");
      copy.kind = OpKind::attention_cached;
      const int64_t features = int64_t{copy.attributes.kv_heads} * copy.attributes.head_dim;
      copy.inputs.push_back(add_cache(graph, "key_cache", features));
      copy.inputs.push_back(add_cache(graph, "value_cache", features));
      copy.outputs.resize(1);
    }
    graph.generate_ops.push_back(std::move(copy));
  }
}

static Program build_logits(const Graph& graph, const Arena& arena, int threads) {
  Emitter e(graph, arena, threads, 1);
  for (int t : graph.body_inputs()) e.input(t);
  const int first = graph.first_generate_op(), end = first + static_cast<int>(graph.generate_ops.size());
  for (int i = first, run; i < end; i += run) {
    run = fused_run(graph, i);
    e.emit_fused(i, run, Phase::forward, false);
  }
  e.result(graph.generate_ops.back().outputs[0]);
  Program p = e.finish(arena.gradients_begin);
  p.name = "logits";
  return p;
}

std::pair<Program, Program> build_generate(const Graph& graph, const Arena& arena, int threads) {
  if (!graph.head.row().returns_logits) return {};
  if (!graph.head.generates) return {Program{}, build_logits(graph, arena, threads)};
  const int first = graph.first_generate_op(), end = first + static_cast<int>(graph.generate_ops.size());
  int last_attention = first;
  for (int i = first; i < end; ++i)
    if (graph.op(i).kind == OpKind::attention_cached) last_attention = i;
  auto build = [&](int64_t rows, int stop, const char* name) {
    Emitter e(graph, arena, threads, 1, rows);
    e.input(graph.inputs[Input::tokens]);
    for (const Op& op : graph.generate_ops)
      if (op.kind == OpKind::attention_cached) {
        e.cache(op.inputs[in(OpKind::attention_cached, "keys")]);
        e.cache(op.inputs[in(OpKind::attention_cached, "values")]);
      }
    for (int i = first; i < stop; ++i) e.emit(i, Phase::generate);
    if (stop == end) e.result(graph.generate_ops.back().outputs[0]);
    Program p = e.finish(arena.gradients_begin);
    p.name = name;
    return p;
  };
  return {build(std::min(prefill_rows, graph.sequence), last_attention + 1, "prefill"),
          build(1, end, "decode")};
}

}  // namespace stw
