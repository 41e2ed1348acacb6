#include "planner/graph/offload.h"

#include <algorithm>

#include "planner/graph/optimizer.h"
#include "planner/graph/segment_lives.h"

namespace stw {

namespace {

// For every parameter: the index of its block, or the number of blocks if other segments or several blocks
// use it.
std::vector<int> parts(const Graph& graph) {
  std::vector<int> part(graph.tensors.size(), -1);
  const int outside = graph.blocks();
  for (const Segment& s : graph.segments)
    for (int i = 0; i < s.op_count; ++i)
      for (int t : graph.ops[s.first_op + i].inputs) {
        if (t < 0 || graph.at(t).role != Role::parameter) continue;
        int& p = part[graph.resolve(t)];
        const bool is_alone =
            s.kind == SegmentKind::block && graph.at(t).tied_to < 0 && (p < 0 || p == s.block);
        p = is_alone ? s.block : outside;
      }
  return part;
}

}  // namespace

int input_on_host(const Graph& graph, const Segment& s, const Offload& offload) {
  if (s.kind != SegmentKind::block || s.gradient_op_count == 0 || s.block >= offload[Offloaded::inputs])
    return -1;
  const auto input =
      std::find_if(s.inputs.begin(), s.inputs.end(), [&](int t) { return graph.transfer[t] >= 0; });
  return input == s.inputs.end() ? -1 : *input;
}

std::vector<bool> on_host(const Graph& graph, const Offload& offload) {
  std::vector<bool> host(graph.tensors.size());
  if (!offload.any()) return host;
  const std::vector<int> part = parts(graph);
  const int blocks = graph.blocks();
  auto part_of = [&](int parameter) {
    const int p = part[graph.resolve(parameter)];
    return p < 0 ? blocks : p;
  };
  for (const Op& op : graph.update_ops) {
    if (!is_update(op.kind)) continue;
    for (int t : op.outputs) {
      if (t < 0) continue;
      const Role role = graph.at(t).role;
      if (role == Role::optimizer) host[t] = part_of(op.outputs[0]) < offload[Offloaded::optimizer];
      if (role == Role::master) host[t] = part_of(op.outputs[0]) < offload[Offloaded::masters];
    }
  }
  for (const ParameterGradient& g : graph.gradients)
    host[g.gradient] = part_of(g.parameter) < std::min(offload[Offloaded::gradients], blocks);
  // Gradients that gradient_sum ops add up stay on the device.
  for (const Op& op : graph.update_ops)
    if (op.kind == OpKind::gradient_sum)
      for (int t : op.inputs) host[t] = false;
  for (int t = 0; t < static_cast<int>(graph.tensors.size()); ++t)
    if (graph.owns_bytes(t)) host[t] = part_of(t) < std::min(offload[Offloaded::weights], blocks);
  for (const Segment& s : graph.segments)
    if (const int input = input_on_host(graph, s, offload); input >= 0) host[input] = true;
  return host;
}

void add_transfers(Graph& graph) {
  graph.transfer.assign(graph.tensors.size(), -1);
  std::vector<bool> is_input(graph.tensors.size());
  for (const int t : inputs_for_host(graph))
    if (t >= 0) is_input[t] = true;
  for (int t = 0; t < static_cast<int>(graph.tensors.size()); ++t) {
    const Role role = graph.at(t).role;
    const bool stays =
        role == Role::master || role == Role::gradient || role == Role::optimizer || graph.owns_bytes(t);
    if (!stays && !is_input[t]) continue;
    graph.transfer[t] = static_cast<int>(graph.transfer_ops.size());
    graph.transfer_ops.push_back({OpKind::fetch, {}, {}, {t}, -1});
    graph.transfer_ops.push_back({OpKind::store, {}, {t}, {}, -1});
  }
}

}  // namespace stw
