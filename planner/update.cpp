#include "planner/update.h"

#include <utility>

namespace stw {

namespace {

bool is_embedding(const Graph& graph, int parameter) {
  if (graph.segments.empty()) return false;
  const Segment& first = graph.segments.front();   // an embedding's op is there
  for (int i = 0; i < first.op_count; ++i) {
    const Op& op = graph.ops[static_cast<size_t>(first.first_op + i)];
    if (op.kind == OpKind::embedding && (graph.resolve(op.inputs[1]) == parameter || op.inputs[2] == parameter)) return true;
  }
  return false;
}

int add_tensor(Graph& graph, std::string name, Kind kind, Format format, Shape shape) {
  Tensor t;
  t.name = std::move(name);
  t.kind = kind;
  t.format = format;
  t.shape = shape;
  graph.tensors.push_back(std::move(t));
  return static_cast<int>(graph.tensors.size()) - 1;
}

}  // namespace

bool keeps_8bit_states(const Graph& graph, int parameter, const Numerics& numerics) {
  return numerics.state_bits == 8 && graph.at(parameter).shape.elements() >= smallest_8bit_tensor &&
         !is_embedding(graph, parameter);
}

void add_update(Graph& graph, const Numerics& numerics) {
  std::vector<int> trained;
  for (int i = 0; i < static_cast<int>(graph.tensors.size()); ++i)
    if (graph.owns_bytes(i) && graph.at(i).trainable) trained.push_back(i);

  const int sums = add_tensor(graph, "norm_sums", Kind::activation, Format::f64, {static_cast<int64_t>(trained.size())});
  std::vector<Op> updates;
  std::vector<std::vector<int>> gradients_of(graph.tensors.size());
  for (const ParameterGradient& g : graph.gradients) gradients_of[static_cast<size_t>(g.parameter)].push_back(g.gradient);
  for (int p : trained) {
    std::vector<int> gradients = gradients_of[static_cast<size_t>(p)];
    if (gradients.size() < 2) gradients.push_back(-1);
    graph.update_ops.push_back({OpKind::square_sum, {}, gradients, {sums}, -1});

    const std::string name = graph.at(p).name;
    const Shape shape = graph.at(p).shape;
    const int64_t count = static_cast<int64_t>(shape.elements());
    Op update{OpKind::adamw, {}, gradients, {p, -1}, -1};
    update.attributes.decay = graph.at(p).group == 0;
    if (graph.at(p).format == Format::bf16)
      update.outputs[1] = add_tensor(graph, name + ".master", Kind::master, Format::i16, shape);
    if (keeps_8bit_states(graph, p, numerics)) {
      update.kind = OpKind::adamw8;
      const int64_t blocks = (count + state_block - 1) / state_block;
      for (const char* moment : {".first", ".second"})
        update.outputs.push_back(add_tensor(graph, name + moment, Kind::optimizer, Format::u8, shape));
      for (const char* moment : {".first_absmax", ".second_absmax"}) {
        update.outputs.push_back(add_tensor(graph, name + moment, Kind::optimizer, Format::f32, {blocks}));
        graph.tensors.back().block = state_block;
      }
    } else {
      for (const char* moment : {".first", ".second"})
        update.outputs.push_back(add_tensor(graph, name + moment, Kind::optimizer, Format::f32, shape));
    }
    updates.push_back(std::move(update));
  }
  graph.update_ops.push_back({OpKind::finish_step, {}, {sums}, {}, -1});
  for (Op& op : updates) graph.update_ops.push_back(std::move(op));
}

}  // namespace stw
