#include "planner/graph/update.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "planner/graph/op_table.h"
#include "planner/graph/optimizer.h"

namespace stw {

namespace {

int add_tensor(Graph& graph, std::string name, Role role, Format format, Shape shape) {
  Tensor t;
  t.name = std::move(name);
  t.role = role;
  t.format = format;
  t.shape = shape;
  graph.tensors.push_back(std::move(t));
  return static_cast<int>(graph.tensors.size()) - 1;
}

// The format of a parameter's master: of the bits of the fp32 value that the compute copy lacks, or of the
// whole value. Empty if there is no master.
std::optional<Format> master_format(const Tensor& parameter, const Numerics& numerics) {
  if (parameter.format == Format::f32) return {};
  if (parameter.format == Format::f16) return Format::f32;
  switch (numerics.master) {
    case Master::exact: return Format::i16;
    case Master::short_remainder: return Format::u8;
    case Master::stochastic: return {};
  }
  return {};
}

Format gradient_format(const Tensor& parameter, const ParameterUse& use, const Numerics& numerics) {
  return numerics.gradients == Gradients::bf16 && is_hidden_matrix(parameter, use) && parameter.adapter_of < 0
             ? Format::bf16
             : Format::f32;
}

const UpdateRule& rule_of(const Tensor& parameter, const ParameterUse& use, const Numerics& numerics) {
  return optimizer_row(numerics.optimizer).rule(parameter, use, keeps_8bit_states(parameter, use, numerics));
}

Shape state_shape(const Shape& shape, StateShape what) {
  const int64_t count = static_cast<int64_t>(shape.elements()), columns = shape[shape.rank - 1];
  switch (what) {
    case StateShape::block: return {(count + kernels::quantile_block - 1) / kernels::quantile_block};
    case StateShape::row: return {count / columns};
    case StateShape::column: return {columns};
    default: return shape;
  }
}

int add_state(Graph& graph, int parameter, const StateTensor& state) {
  if (state.shape == StateShape::none) return -1;
  const int t = add_tensor(graph, graph.at(parameter).name + state.suffix, Role::optimizer, state.format,
                           state_shape(graph.at(parameter).shape, state.shape));
  if (state.shape == StateShape::block) graph.tensors.back().block = kernels::quantile_block;
  return t;
}

// Adds ops that sum the gradients of all uses of a parameter, in op order, into the buffer of the first one.
// Returns the gradients that the ops of norm and update read. These can add two gradients themselves, so up
// to two need no sum.
std::vector<int> add_sums(Graph& graph, const std::vector<int>& gradients) {
  if (gradients.size() <= 2) return gradients;
  for (size_t next = 1; next < gradients.size();) {
    std::vector<int> terms{gradients[0]};
    while (next < gradients.size() && terms.size() < size_t{kernels::most_terms})
      terms.push_back(gradients[next++]);
    graph.update_ops.push_back({OpKind::gradient_sum, {}, std::move(terms), {gradients[0]}, -1});
  }
  return {gradients[0]};
}

// A parameter is updated in the backward pass if one op of a block uses it, and no other op does. Other
// parameters get gradients from several places of the backward pass, and the head's come in chunks. Those of
// ops on tables come after it.
bool is_updated_in_backward(const ParameterUse& use) {
  return use.ops == 1 && !use.outside_blocks && !use.by_table_ops;
}

// For every parameter: the index of the last gradient op that reads it or computes its gradient. After that
// op, the step no longer needs the old value. Recompute does not change this: an op is recomputed for the
// gradients of the ops that read its output, and these come before its own gradients. With tiles, ops are
// recomputed up to the last tile of the part, and the updates of the part come after that tile.
std::vector<int> last_needed(const Graph& graph) {
  std::vector<int> last(graph.tensors.size(), -1), parameter_of(graph.tensors.size(), -1);
  for (const ParameterGradient& g : graph.gradients) parameter_of[g.gradient] = g.parameter;
  for (size_t i = 0; i < graph.gradient_ops.size(); ++i) {
    auto touch = [&](int parameter) {
      if (parameter >= 0) last[parameter] = static_cast<int>(i);
    };
    for (int t : graph.gradient_ops[i].inputs)
      if (t >= 0 && graph.at(t).role == Role::parameter) touch(graph.resolve(t));
    for (int t : graph.gradient_ops[i].outputs)
      if (t >= 0) touch(parameter_of[t]);
  }
  return last;
}

// Moves updates into the backward pass.
void fuse(Graph& graph, const std::vector<ParameterUse>& uses, int sums) {
  graph.tensors[sums].role = Role::state;  // the micro-step and the update fill it
  graph.updates_after.resize(graph.gradient_ops.size());
  const std::vector<int> last = last_needed(graph);
  const int first = graph.first_update_op();
  const int first_sum = graph.first_square_sum();
  std::vector<int> sum_of(graph.tensors.size());  // gradient -> op that sums its squares
  for (int k = 0; k < static_cast<int>(graph.update_ops.size()); ++k) {
    const Op& op = graph.update_ops[k];
    // All square sums come before the updates.
    if (op.kind == OpKind::square_sum) sum_of[op.inputs[0]] = first + k;
    if (!is_update(op.kind)) continue;
    const auto p = static_cast<size_t>(op.outputs[0]);
    if (!is_updated_in_backward(uses[p])) continue;
    const int sum = sum_of[op.inputs[0]];
    graph.updates_after[last[p]].push_back({sum, first + k, sum - first_sum});
    graph.tensors[op.inputs[0]].role = Role::activation;
  }
  graph.begin_update = first + static_cast<int>(graph.update_ops.size());
  graph.update_ops.push_back({OpKind::finish_step, {}, {}, {}, -1});
}

}  // namespace

void add_update(Graph& graph, const Numerics& numerics) {
  graph.kernels = numerics.kernels;
  graph.attention = numerics.attention;
  graph.exact = numerics.exact;
  std::vector<int> trained;
  for (int i = 0; i < static_cast<int>(graph.tensors.size()); ++i)
    if (graph.owns_bytes(i) && graph.at(i).trainable) trained.push_back(i);
  const std::vector<ParameterUse> uses = parameter_uses(graph);
  const int sums =
      add_tensor(graph, "norm_sums", Role::activation, Format::f64, {static_cast<int64_t>(trained.size())});
  for (const ParameterGradient& g : graph.gradients)
    graph.tensors[g.gradient].format = gradient_format(graph.at(g.parameter), uses[g.parameter], numerics);
  std::vector<Op> updates;
  std::vector<std::vector<int>> gradients_of(graph.tensors.size());
  for (const ParameterGradient& g : graph.gradients) gradients_of[g.parameter].push_back(g.gradient);
  for (int p : trained) gradients_of[p] = add_sums(graph, gradients_of[p]);
  for (int p : trained) {
    std::vector<int> gradients = gradients_of[p];
    if (gradients.size() < 2) gradients.push_back(-1);
    graph.update_ops.push_back({OpKind::square_sum, {}, gradients, {sums}, -1});
    const UpdateRule& rule = rule_of(graph.at(p), uses[p], numerics);
    Op update{rule.kind, {}, gradients, {p, -1}, -1};
    if (const auto format = master_format(graph.at(p), numerics))
      update.outputs[1] =
          add_tensor(graph, graph.at(p).name + ".master", Role::master, *format, graph.at(p).shape);
    // Drops absent states at the end. An absent state before a present one keeps its place.
    size_t states = rule.states.size();
    while (states > 0 && rule.states[states - 1].shape == StateShape::none) --states;
    for (size_t k = 0; k < states; ++k) update.outputs.push_back(add_state(graph, p, rule.states[k]));
    updates.push_back(std::move(update));
  }
  graph.update_ops.push_back({OpKind::finish_step, {}, {sums}, {}, -1});
  // Sorts by kind, because one kernel call computes several updates of the same kind.
  std::stable_sort(updates.begin(), updates.end(), [](const Op& a, const Op& b) { return a.kind < b.kind; });
  for (Op& op : updates) graph.update_ops.push_back(std::move(op));
  if (numerics.fused_update) fuse(graph, uses, sums);
}

uint64_t frozen_savings(const Graph& graph, const Numerics& numerics) {
  const std::vector<ParameterUse> uses = parameter_uses(graph);
  uint64_t sum = 0;
  for (int p = 0; p < static_cast<int>(graph.tensors.size()); ++p) {
    const Tensor& t = graph.at(p);
    if (!graph.owns_bytes(p) || t.trainable) continue;
    const ParameterUse& use = uses[p];
    if (!numerics.fused_update || !is_updated_in_backward(use))
      sum = size_add(sum,
                     size_mul(size_mul(t.shape.elements(), element_bytes(gradient_format(t, use, numerics))),
                              static_cast<uint64_t>(use.gradients())));
    if (const auto format = master_format(t, numerics))
      sum = size_add(sum, size_mul(t.shape.elements(), element_bytes(*format)));
    for (const StateTensor& state : rule_of(t, use, numerics).states)
      if (state.shape != StateShape::none)
        sum = size_add(sum,
                       size_mul(state_shape(t.shape, state.shape).elements(), element_bytes(state.format)));
  }
  return sum;
}

}  // namespace stw
