#include "planner/quantize.h"

#include "planner/parameter_groups.h"

namespace stw {

namespace {

// body(tensor) for the weights of a product that are codes, each once.
template <class Body>
void for_quantized(const Graph& graph, const Op& op, const Body& body) {
  for (int t : op.inputs)
    if (t >= 0 && is_quantized(graph.at(t).format)) body(graph.at(t));
}

}  // namespace

void quantize_frozen(Graph& graph, Quantize quantize, const std::function<bool(const Tensor&)>& stays) {
  if (quantize == Quantize::none || !graph.has_adapters()) return;
  const std::vector<ParameterUse> uses = parameter_uses(graph);
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    Tensor& t = graph.tensors[i];
    const bool is_frozen = t.kind == Kind::parameter && !t.trainable && t.adapter_of < 0 && t.tied_to < 0;
    if (is_frozen && is_hidden_matrix(t, uses[i]) && !(stays && stays(t))) t.format = quantize == Quantize::nf4 ? Format::nf4 : Format::int8;
  }
}

uint64_t quantized_operands(const Graph& graph, const Op& op) {
  uint64_t count = 0;
  for_quantized(graph, op, [&](const Tensor&) { ++count; });
  return count;
}

uint64_t quantized_operand_bytes(const Graph& graph, const Op& op) {
  uint64_t sum = 0;
  for_quantized(graph, op, [&](const Tensor& t) { sum = size_add(sum, t.bytes(1)); });
  return sum;
}

uint64_t dequantized_bytes(const Graph& graph, const Op& op) {
  uint64_t sum = 0;
  for_quantized(graph, op, [&](const Tensor& t) {
    sum = size_add(sum, round_up(size_mul(t.shape.elements(), element_bytes(graph.compute)), dequantized_alignment));
  });
  return sum;
}

}  // namespace stw
