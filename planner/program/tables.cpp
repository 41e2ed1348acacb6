// The programs of ops on tables: before the micro-steps of a step or an evaluation, and their gradients after
// the micro-steps.
#include <algorithm>

#include "planner/program/emitter.h"

namespace stw {

namespace {

// Emits the gradients of ops on tables, one after the other. Results of ops on tables are computed again
// before the first gradient that reads them.
class TableGradients {
 public:
  TableGradients(const Graph& graph, Emitter& emitter) : graph_(graph), emitter_(emitter) {}

  void emit(int op) {
    for (int table_op : missing(op)) {
      emitter_.emit(table_op, Phase::recompute);
      for (int t : graph_.op(table_op).inputs)
        if (emitter_.on_host(t)) emitter_.drop(t);
    }
    const Op& gradient = graph_.op(op);
    emitter_.emit(op, Phase::backward, gradient.accumulates);
    for (int t : gradient.outputs)
      if (emitter_.on_host(t)) emitter_.store(t, Phase::backward);
    for (const std::vector<int>* operands : {&gradient.inputs, &gradient.outputs})
      for (int t : *operands)
        if (emitter_.on_host(t)) emitter_.drop(t);
  }

 private:
  // The ops on tables that must run before an op, in order.
  std::vector<int> missing(int op) const {
    std::vector<int> list;
    const auto require = [&](auto&& self, int tensor) -> void {
      if (tensor < 0 || emitter_.has(tensor) || graph_.at(tensor).role != Role::activation) return;
      for (size_t k = 0; k < graph_.table_ops.size(); ++k) {
        const Op& table_op = graph_.table_ops[k];
        const int index = graph_.first_table_op() + static_cast<int>(k);
        if (table_op.outputs[0] != tensor || std::find(list.begin(), list.end(), index) != list.end())
          continue;
        for (int t : table_op.inputs) self(self, t);
        list.push_back(index);
      }
    };
    const Op& reader = graph_.op(op);
    for (size_t k = 0; k < reader.inputs.size(); ++k)
      if (reads_input(reader.kind, k)) require(require, reader.inputs[k]);
    return list;
  }

  const Graph& graph_;
  Emitter& emitter_;
};

}  // namespace

Program build_tables(const Graph& graph, const Arena& arena, int threads, bool for_evaluation) {
  const std::vector<Op>& list = for_evaluation ? graph.evaluate_table_ops : graph.table_ops;
  if (list.empty()) return {};
  const int first = for_evaluation ? graph.first_evaluate_table_op() : graph.first_table_op();
  Emitter e(graph, arena, threads, 1, 0, list.size());
  for (int i = first; i < first + static_cast<int>(list.size()); ++i) {
    e.emit(i, Phase::forward);
    for (int t : e.host_operands(i, Phase::forward, false)) e.drop(t);
  }
  Program p = e.finish(arena.gradients_begin);
  p.name = for_evaluation ? "evaluate_tables" : "tables";
  return p;
}

Program build_table_gradients(const Graph& graph, const Arena& arena, int threads) {
  if (graph.table_gradient_ops.empty()) return {};
  Emitter e(graph, arena, threads, 1, 0, 2 * graph.table_gradient_ops.size());
  TableGradients gradients(graph, e);
  for (size_t k = 0; k < graph.table_gradient_ops.size(); ++k)
    gradients.emit(graph.first_table_gradient_op() + static_cast<int>(k));
  Program p = e.finish(arena.gradients_end);
  p.name = "table_gradients";
  return p;
}

std::vector<int> recomputed_table_ops(const Graph& graph) {
  std::vector<bool> is_read(graph.tensors.size());
  const auto read = [&](const Op& op) {
    for (size_t k = 0; k < op.inputs.size(); ++k)
      if (op.inputs[k] >= 0 && reads_input(op.kind, k)) is_read[op.inputs[k]] = true;
  };
  for (const Op& op : graph.table_gradient_ops) read(op);
  std::vector<int> list;
  for (size_t k = graph.table_ops.size(); k-- > 0;) {
    const Op& op = graph.table_ops[k];
    if (!is_read[op.outputs[0]] || graph.at(op.outputs[0]).role != Role::activation) continue;
    read(op);
    list.push_back(graph.first_table_op() + static_cast<int>(k));
  }
  std::reverse(list.begin(), list.end());
  return list;
}

}  // namespace stw
