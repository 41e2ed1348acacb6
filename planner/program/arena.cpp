#include <initializer_list>

#include "planner/program/program.h"

namespace stw {

namespace {

MemoryClass owner_of(Role role) {
  switch (role) {
    case Role::parameter:
    case Role::master: return MemoryClass::parameters;
    case Role::gradient: return MemoryClass::gradients;
    case Role::optimizer: return MemoryClass::optimizer;
    default: return MemoryClass::workspace;  // the step's state and constant tables
  }
}

}  // namespace

Arena make_arena(const Graph& graph, uint64_t alignment, const Offload& offload, int64_t micro_batch) {
  Arena arena;
  arena.alignment = alignment;
  arena.offload = offload;
  arena.host_of_tensor.assign(graph.tensors.size(), -1);
  const std::vector<bool> is_on_host = on_host(graph, offload);
  for (int t = 0; t < static_cast<int>(graph.tensors.size()); ++t) {
    if (!is_on_host[t]) continue;
    Buffer b;
    b.tensor = t;
    b.bytes = graph.at(t).bytes(micro_batch);
    b.owner =
        graph.at(t).role == Role::activation ? MemoryClass::saved_activations : owner_of(graph.at(t).role);
    b.offset = arena.host_bytes;
    arena.host_of_tensor[t] = static_cast<int>(arena.host.size());
    arena.host_bytes = round_up(size_add(arena.host_bytes, b.bytes), alignment);
    arena.host.push_back(b);
  }
  arena.of_tensor.assign(graph.tensors.size(), -1);
  uint64_t end = 0;
  auto place = [&](int t) {
    if (arena.on_host(t)) return;
    Buffer b;
    b.tensor = t;
    b.bytes = graph.at(t).bytes(1);
    b.owner = owner_of(graph.at(t).role);
    b.offset = end;
    end = round_up(size_add(end, b.bytes), alignment);
    arena.of_tensor[t] = static_cast<int>(arena.persistent.size());
    arena.persistent.push_back(b);
  };
  for (Role role : {Role::state, Role::constant, Role::parameter, Role::master, Role::optimizer}) {
    for (int t = 0; t < static_cast<int>(graph.tensors.size()); ++t)
      if (graph.at(t).role == role && graph.at(t).tied_to < 0) place(t);
  }
  arena.gradients_begin = end;
  // Gradients that updates inside the backward pass consume have no place here.
  for (const ParameterGradient& g : graph.gradients)
    if (graph.at(g.gradient).role == Role::gradient) place(g.gradient);
  for (const TableGradient& g : graph.table_gradients) place(g.gradient);
  for (int t : {graph.kept.ids, graph.kept.rows})
    if (t >= 0) place(t);
  arena.gradients_end = end;
  for (int t = 0; t < static_cast<int>(graph.tensors.size()); ++t)
    if (graph.at(t).tied_to >= 0) arena.of_tensor[t] = arena.of_tensor[graph.resolve(t)];
  return arena;
}

}  // namespace stw
