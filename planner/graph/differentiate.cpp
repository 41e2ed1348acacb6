#include "planner/graph/differentiate.h"

#include <algorithm>
#include <cassert>

namespace stw {

Differentiation::Differentiation(Graph& graph)
    : graph_(graph), requires_gradient_(graph.tensors.size()), gradient_(graph.tensors.size(), -1) {
  for (size_t i = 0; i < graph.tensors.size(); ++i)
    requires_gradient_[i] =
        graph.tensors[i].role == Role::parameter && graph.at(graph.resolve(static_cast<int>(i))).trainable;
  for (const std::vector<Op>* list : {&graph.table_ops, &graph.ops})
    for (const Op& op : *list) {
      bool any = std::any_of(op.inputs.begin(), op.inputs.end(),
                             [&](int t) { return t >= 0 && requires_gradient(t); });
      for (int t : op.outputs) requires_gradient_[t] = any;
    }
}

bool Differentiation::requires_gradient(int tensor) const {
  return tensor >= 0 && requires_gradient_[tensor];
}

int Differentiation::new_gradient(int tensor, const char* name) {
  Tensor t = graph_.at(tensor);
  t.name = name;
  t.role = Role::activation;
  t.tied_to = -1;
  t.trainable = false;
  t.segment = segment_;
  graph_.tensors.push_back(std::move(t));
  requires_gradient_.push_back(false);
  gradient_.push_back(-1);
  return static_cast<int>(graph_.tensors.size()) - 1;
}

int Differentiation::parameter_gradient(int parameter) {
  if (!requires_gradient(parameter)) return -1;
  if (in_tables_)  // the list is still in the order of the backward pass
    for (auto g = graph_.gradients.rbegin(); g != graph_.gradients.rend(); ++g)
      if (g->parameter == graph_.resolve(parameter)) return g->gradient;
  const Tensor& p = graph_.at(parameter);
  Tensor t;
  t.name = p.name + ".gradient";
  t.role = Role::gradient;
  t.shape = p.shape;
  graph_.tensors.push_back(std::move(t));
  requires_gradient_.push_back(false);
  gradient_.push_back(-1);
  int id = static_cast<int>(graph_.tensors.size()) - 1;
  graph_.gradients.push_back({graph_.resolve(parameter), id});
  return id;
}

int Differentiation::table_gradient(int table) {
  if (!requires_gradient(table)) return -1;
  assert(gradient_of(table) < 0 && "one op reads a table");
  Tensor t;
  t.name = graph_.at(table).name + ".gradient";
  t.role = Role::gradient;
  t.shape = graph_.at(table).shape;
  t.rows = graph_.at(table).rows;
  graph_.tensors.push_back(std::move(t));
  requires_gradient_.push_back(false);
  gradient_.push_back(-1);
  const int id = static_cast<int>(graph_.tensors.size()) - 1;
  graph_.table_gradients.push_back({table, id});
  set_gradient(table, id);
  return id;
}

void Differentiation::add_gradient(int tensor, int value) {
  if (!requires_gradient(tensor)) return;
  int old = gradient_of(tensor);
  if (old < 0) return set_gradient(tensor, value);
  int sum = new_gradient(tensor, "gradient_sum");
  emit(OpKind::add, {}, {old, value}, {sum});
  set_gradient(tensor, sum);
}

void Differentiation::emit(OpKind kind, const Attributes& attributes, std::vector<int> inputs,
                           std::vector<int> outputs) {
  Op op{kind, attributes, std::move(inputs), std::move(outputs), segment_};
  if (!in_tables_) return graph_.gradient_ops.push_back(std::move(op));
  // Whether an op on samples, or an earlier op on tables, fills the gradient of a parameter.
  const auto is_filled = [&](int t) {
    if (t < 0 || graph_.at(t).role != Role::gradient) return false;
    return t < first_of_tables_ ||
           std::any_of(
               graph_.table_gradient_ops.begin(), graph_.table_gradient_ops.end(), [&](const Op& earlier) {
                 return std::find(earlier.outputs.begin(), earlier.outputs.end(), t) != earlier.outputs.end();
               });
  };
  op.accumulates = std::any_of(op.outputs.begin(), op.outputs.end(), is_filled);
  assert(!op.accumulates ||
         std::all_of(op.outputs.begin(), op.outputs.end(), [&](int t) { return t < 0 || is_filled(t); }));
  op.segment = -1;
  graph_.table_gradient_ops.push_back(std::move(op));
}

void Differentiation::differentiate_op(const Op& op) {
  if (std::none_of(op.inputs.begin(), op.inputs.end(), [&](int t) { return requires_gradient(t); })) return;
  const auto backward = op_row(op.kind).backward;
  assert((backward || (op.segment >= 0 && graph_.segments[op.segment].kind == SegmentKind::head)) &&
         "every op that a trained parameter contributes to has a backward rule, except ops of the head");
  if (backward) backward(*this, op);
}

// The gradients of ops on tables. The gradient of a table adds up in fp32 and is rounded once, to the format
// of activations. A parameter whose rows are a table gets its gradient as a table first.
void Differentiation::run_tables() {
  in_tables_ = true;
  segment_ = -1;
  first_of_tables_ = static_cast<int>(graph_.tensors.size());
  const auto convert = [&](int from, int to) {
    Attributes a;
    a.scale = 1;
    emit(OpKind::scale, a, {from}, {to});
  };
  for (const TableGradient& g : graph_.table_gradients) {
    if (graph_.compute == Format::f32) continue;
    const int rounded = new_gradient(g.table, "table_gradient");
    convert(g.gradient, rounded);
    set_gradient(g.table, rounded);
  }
  for (size_t i = graph_.table_ops.size(); i-- > 0;) {
    const Op op = graph_.table_ops[i];
    if (gradient_of(op.outputs[0]) >= 0) differentiate_op(op);
  }
  for (int t = 0; t < first_of_tables_; ++t)
    if (graph_.at(t).role == Role::parameter && gradient_of(t) >= 0)
      convert(gradient_of(t), parameter_gradient(t));
}

void Differentiation::run() {
  std::vector<bool> reads(graph_.tensors.size());
  graph_.producer.assign(graph_.tensors.size(), -1);
  for (size_t i = 0; i < graph_.ops.size(); ++i)
    for (int t : graph_.ops[i].outputs) graph_.producer[t] = static_cast<int>(i);
  for (int s = static_cast<int>(graph_.segments.size()) - 1; s >= 0; --s) {
    Segment& segment = graph_.segments[s];
    segment_ = s;
    segment.first_gradient_op = static_cast<int>(graph_.gradient_ops.size());
    for (int i = segment.first_op + segment.op_count - 1; i >= segment.first_op; --i) {
      const Op op = graph_.ops[i];
      differentiate_op(op);
    }
    segment.gradient_op_count = static_cast<int>(graph_.gradient_ops.size()) - segment.first_gradient_op;
    for (int i = 0; i < segment.gradient_op_count; ++i)
      for (int t : graph_.gradient_ops[segment.first_gradient_op + i].inputs)
        if (t >= 0 && static_cast<size_t>(t) < reads.size()) reads[t] = true;
    for (int i = segment.first_op; i < segment.first_op + segment.op_count; ++i) {
      bool read = false;
      for (int t : graph_.ops[i].outputs) read |= reads[t] && t != segment.output;
      if (read) segment.saveable.push_back(i);
    }
  }
  mark_chunked();
  run_tables();
  // Numbers the gradient buffers in op order. The gradients of a parameter with several uses are added in
  // this order.
  std::reverse(graph_.gradients.begin(), graph_.gradients.end());
  std::vector<int> uses(graph_.tensors.size());
  for (const ParameterGradient& g : graph_.gradients)
    graph_.tensors[g.gradient].ordinal = uses[g.parameter]++;
  graph_.producer.resize(graph_.tensors.size(), -1);
}

// Marks the tensors of the head that only ops of a loss chunk read and write. They hold the rows of one
// chunk. The losses of tokens and the gradient of the head's input are not marked, because ops that work on
// all rows read them.
void Differentiation::mark_chunked() {
  for (size_t s = 0; s < graph_.segments.size(); ++s) {
    if (graph_.segments[s].kind != SegmentKind::head) continue;
    const int input_gradient = gradient_of(graph_.segments[s].inputs[0]);
    // The last op, which sums the losses, works on all rows.
    const Op& last = graph_.ops[graph_.segments[s].first_op + graph_.segments[s].op_count - 1];
    for (size_t t = 0; t < graph_.tensors.size(); ++t) {
      Tensor& tensor = graph_.tensors[t];
      tensor.chunked =
          tensor.role == Role::activation && tensor.segment == static_cast<int>(s) &&
          std::find(last.inputs.begin(), last.inputs.end(), static_cast<int>(t)) == last.inputs.end() &&
          static_cast<int>(t) != input_gradient;
    }
  }
}

void differentiate(Graph& graph) { Differentiation(graph).run(); }

}  // namespace stw
