#include "planner/graph/kept_rows.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "kernels/contract/cpu_workspace.h"
#include "kernels/contract/cuda_workspace.h"
#include "planner/graph/op_table.h"
#include "planner/graph/optimizer.h"

namespace stw {

namespace {

constexpr OpKind of_table = OpKind::embedding_gradient;

bool sums_tokens(const Graph& graph, const Op& op) {
  return op.kind == of_table && op.inputs[in(of_table, "ids")] == graph.inputs[Input::tokens];
}

// The number of slices of a formed gradient, if no copies ask for more. Each costs a pass over all rows.
constexpr int64_t slices = 16;

// The gradient of the token table that kept rows may replace, and the gradient of the table's other use, if
// it has one.
struct TokenGradients {
  int replaced = -1, other = -1;
};

bool is_updated_by_elements(const Graph& graph, int gradient) {
  return std::any_of(graph.update_ops.begin(), graph.update_ops.end(), [&](const Op& op) {
    return is_update(op.kind) && reads(op, gradient) && update_rule(op.kind).is_elementwise;
  });
}

// Norm and update add up two gradients themselves. If there are more, they have sums (update.h).
TokenGradients gradients_of_tokens(const Graph& graph) {
  TokenGradients found;
  if (std::count_if(graph.gradient_ops.begin(), graph.gradient_ops.end(),
                    [&](const Op& op) { return sums_tokens(graph, op); }) != 1)
    return found;
  const auto sum = std::find_if(graph.gradient_ops.begin(), graph.gradient_ops.end(),
                                [&](const Op& op) { return sums_tokens(graph, op); });
  const int replaced = sum->outputs[out(of_table, "dtable")];
  const auto use = std::find_if(graph.gradients.begin(), graph.gradients.end(),
                                [&](const ParameterGradient& g) { return g.gradient == replaced; });
  std::vector<int> others;
  for (const ParameterGradient& g : graph.gradients)
    if (g.parameter == use->parameter && g.gradient != replaced) others.push_back(g.gradient);
  for (const int gradient : others)
    if (graph.at(gradient).format != Format::f32) return found;
  if (others.size() == 1) return {replaced, others[0]};
  return others.empty() && is_updated_by_elements(graph, replaced) ? TokenGradients{replaced, -1} : found;
}

const Op& op_of_tokens(const Graph& graph) {
  return *std::find_if(graph.gradient_ops.begin(), graph.gradient_ops.end(),
                       [&](const Op& op) { return sums_tokens(graph, op); });
}

// A tensor of all rows of the samples, like one of a sample.
Tensor all_rows(const Tensor& of_sample, const char* name, int64_t samples) {
  Tensor t;
  t.name = name;
  t.role = Role::gradient;
  t.format = of_sample.format;
  t.shape = of_sample.shape;
  t.shape.dims[0] *= samples;
  t.rows = of_sample.rows * samples;
  return t;
}

int64_t longest_slice(const Tensor& gradient) {
  return static_cast<int64_t>(gradient.shape.elements()) / slices;
}
// The slice of at least so many elements, in whole units, or the whole gradient.
int64_t slice_of(const Tensor& gradient, int64_t wanted) {
  const int64_t unit = std::lcm(gradient.shape.last(), kernels::square_chunk);
  return std::min(static_cast<int64_t>(gradient.shape.elements()),
                  (wanted / unit + (wanted % unit != 0 || wanted == 0)) * unit);
}

}  // namespace

bool may_keep_rows(const Graph& graph, int64_t samples, bool may_form) {
  const TokenGradients gradients = gradients_of_tokens(graph);
  if (graph.kept.exist() || gradients.replaced < 0 || (gradients.other < 0 && !may_form)) return false;
  const Op& op = op_of_tokens(graph);
  uint64_t bytes = std::max(kernels::cpu_workspace::embedding_gradient(samples * graph.rows_of(op)),
                            kernels::cuda_workspace::embedding_gradient(samples * graph.rows_of(op)));
  for (const int input : {in(of_table, "ids"), in(of_table, "dy")})
    bytes = size_add(bytes, graph.at(op.inputs[input]).bytes(samples));
  if (gradients.other < 0) {
    const Tensor& formed = graph.at(gradients.replaced);
    bytes = size_add(bytes, formed.part_bytes(slice_of(formed, longest_slice(formed))));
  }
  return bytes < graph.at(gradients.replaced).bytes(1);
}

void keep_rows(Graph& graph, int64_t samples) {
  assert(may_keep_rows(graph, samples));
  const auto gradients = gradients_of_tokens(graph);
  const int replaced = gradients.replaced, other = gradients.other;
  const auto at = static_cast<size_t>(&op_of_tokens(graph) - graph.gradient_ops.data());
  Op& op = graph.gradient_ops[at];
  const int first = static_cast<int>(graph.tensors.size());
  graph.kept = {first, first + 1};
  for (const auto& [input, name] : {std::pair{in(of_table, "ids"), "kept_tokens"},
                                    std::pair{in(of_table, "dy"), "kept_embedding_gradient"}}) {
    graph.tensors.push_back(all_rows(graph.at(op.inputs[input]), name, samples));
    graph.producer.push_back(-1);
    if (!graph.transfer.empty()) graph.transfer.push_back(-1);
  }
  op.kind = OpKind::keep_rows;
  op.outputs = {graph.kept.ids, graph.kept.rows};
  // The gradient of positions is no longer computed by the kernel of the table's gradient.
  if (at + 1 < graph.gradient_ops.size()) graph.gradient_ops[at + 1].fused = false;
  Op sum{OpKind::kept_rows_gradient, op.attributes, {graph.kept.ids, graph.kept.rows}, {other}, -1};
  if (other < 0) {
    sum.outputs = {replaced};
    graph.tensors[replaced].role = Role::activation;  // not stored: the update forms a slice of it at a time
    graph.kept.formed = replaced;
    graph.kept.forming_op = graph.first_update_op() + static_cast<int>(graph.update_ops.size());
    graph.update_ops.push_back(std::move(sum));
    return;
  }
  sum.accumulates = true;
  graph.table_gradient_ops.push_back(std::move(sum));
  std::erase_if(graph.gradients, [&](const ParameterGradient& g) { return g.gradient == replaced; });
  graph.tensors[replaced].role = Role::activation;  // no op uses it
  for (Op& update : graph.update_ops)
    if (reads(update, replaced) && (update.kind == OpKind::square_sum || is_update(update.kind)))
      update.inputs = {other, -1};
}

bool reads_formed(const Graph& graph, const Op& op) {
  return graph.kept.formed >= 0 && reads(op, graph.kept.formed);
}

int64_t formed_slice(const Graph& graph, int64_t copied) {
  const Tensor& formed = graph.at(graph.kept.formed);
  return slice_of(formed, std::min(longest_slice(formed), copied));
}

}  // namespace stw
