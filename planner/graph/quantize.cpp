#include "planner/graph/quantize.h"

#include <algorithm>
#include <bit>

#include "planner/graph/operands.h"
#include "planner/graph/parameter_groups.h"

namespace stw {

namespace {

// Calls body(tensor) once for each quantized weight of a product.
template <class Body>
void for_quantized(const Graph& graph, const Op& op, const Body& body) {
  for (int t : op.inputs)
    if (t >= 0 && is_quantized(graph.at(t).format)) body(graph.at(t));
}

bool uses_weights(const Op& op) {
  return op.kind == OpKind::linear || op.kind == OpKind::linear_input_gradient;
}

// The most elements that are decoded at once: a sixteenth of a small model, or 64 MiB of 16-bit values for a
// large one. That is enough work for a GPU, and little compared with the model.
uint64_t values_at_once_of(const Graph& graph) {
  return std::clamp<uint64_t>(graph.parameter_count() / 16, 4096, uint64_t{32} << 20);
}

int64_t pieces_of(int64_t extent, int64_t width) { return (extent + width - 1) / width; }
// Cuts an extent into pieces of equal width; the last one may be narrower. The width is a multiple of `unit`,
// and at most `most` unless `most` is less than a unit.
int64_t piece_width(int64_t extent, int64_t most, int64_t unit) {
  const int64_t pieces = pieces_of(extent, std::max(unit, most / unit * unit));
  return static_cast<int64_t>(round_up(ceil_div(static_cast<uint64_t>(extent), static_cast<uint64_t>(pieces)),
                                       static_cast<uint64_t>(unit)));
}

// The width of the tiles that the kernels of matrix products use.
int64_t tile_width(int64_t extent) {
  return static_cast<int64_t>(
      std::clamp<uint64_t>(std::bit_floor(static_cast<uint64_t>(extent) / 4), 16, 128));
}

uint64_t value_bytes(const Graph& graph, int64_t rows, int64_t columns) {
  return round_up(size_mul(size_mul(static_cast<uint64_t>(rows), static_cast<uint64_t>(columns)),
                           element_bytes(graph.compute)),
                  value_alignment);
}

}  // namespace

void quantize_frozen(Graph& graph, const Numerics& numerics,
                     const std::function<bool(const Tensor&)>& stays) {
  if ((numerics.quantize == Quantize::none && numerics.quantize_embeddings == Quantize::none) ||
      !graph.has_adapters())
    return;
  const std::vector<ParameterUse> uses = parameter_uses(graph);
  const auto format_of = [](Quantize q) { return q == Quantize::nf4 ? Format::nf4 : Format::int8; };
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    Tensor& t = graph.tensors[i];
    // All names of the same bytes have the same format.
    const auto owner = static_cast<size_t>(graph.resolve(static_cast<int>(i)));
    if (t.role != Role::parameter || graph.tensors[owner].trainable || t.of_adapters) continue;
    if (numerics.quantize != Quantize::none && is_hidden_matrix(t, uses[owner]) && !(stays && stays(t)))
      t.format = format_of(numerics.quantize);
    if (numerics.quantize_embeddings != Quantize::none && is_token_matrix(t, uses[owner]))
      t.format = format_of(numerics.quantize_embeddings);
  }
  graph.values_at_once = values_at_once_of(graph);
}

ValuePieces value_pieces(const Graph& graph, const Op& op) {
  uint64_t elements = 0;
  int64_t inputs = 0, features = 0, widest = 0, odd = 0;
  size_t matrices = 0, codes = 0;
  for (const int weight : part_inputs(op, "weight")) {
    const Tensor& t = graph.at(weight);
    ++matrices, codes += is_quantized(t.format);
    elements = size_add(elements, t.shape.elements());
    features += t.shape[0], inputs = t.shape[1], widest = std::max(widest, t.shape[0]),
                            odd += t.shape[0] % 8 != 0;
  }
  ValuePieces pieces;
  // Transposed matrices (GPT-2's) are not cut into pieces. Neither is an op that mixes quantized and other
  // matrices.
  if (!uses_weights(op) || codes == 0 || codes < matrices || op.attributes.transposed ||
      elements <= graph.values_at_once)
    return pieces;
  const auto at_once = static_cast<int64_t>(graph.values_at_once);
  const auto of_features = [&] {
    // An input gradient sums over features.
    const int64_t unit = op.kind == OpKind::linear ? tile_width(widest) : kernels::chain_terms;
    pieces = {ValuePieces::Cut::features, piece_width(widest, at_once / inputs, unit), 0};
    for_quantized(graph, op, [&](const Tensor& t) { pieces.count += pieces_of(t.shape[0], pieces.width); });
    return pieces;
  };
  if (op.kind == OpKind::linear) return of_features();
  // Pieces that are columns of dx need no intermediate sums. But a head has many features, so that such
  // pieces would have too few columns for a GPU.
  const int64_t width = piece_width(inputs, at_once / features, tile_width(inputs));
  if (inputs % 16 == 0 && width * 8 >= inputs)
    return {ValuePieces::Cut::inputs, width, pieces_of(inputs, width)};
  // If the size of one of several parts is no multiple of 8, the whole op cannot run on tensor cores. Its
  // pieces could, and would compute other bits, so the op is not cut.
  if (matrices > 1 && odd > 0) return pieces;
  return of_features();
}

ValueScratch value_scratch(const Graph& graph, const Op& op, int64_t rows) {
  const ValuePieces pieces = value_pieces(graph, op);
  ValueScratch scratch;
  for_quantized(graph, op, [&](const Tensor& t) {
    const int64_t features = t.shape[0], inputs = t.shape[1];
    switch (pieces.cut) {
      case ValuePieces::Cut::none:
        scratch.values = size_add(scratch.values, value_bytes(graph, features, inputs));
        break;
      case ValuePieces::Cut::features:
        scratch.values =
            std::max(scratch.values, value_bytes(graph, std::min(features, pieces.width), inputs));
        break;
      case ValuePieces::Cut::inputs:
        scratch.values =
            size_add(scratch.values, value_bytes(graph, features, std::min(inputs, pieces.width)));
        break;
    }
  });
  if (op.kind == OpKind::linear_input_gradient && pieces.cut == ValuePieces::Cut::features &&
      graph.at(op.outputs[0]).format != Format::f32)
    scratch.sums = round_up(
        size_mul(size_mul(static_cast<uint64_t>(rows), static_cast<uint64_t>(graph.features(op.outputs[0]))),
                 sizeof(float)),
        value_alignment);
  return scratch;
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

uint64_t quantized_operand_values(const Graph& graph, const Op& op) {
  uint64_t sum = 0;
  for_quantized(graph, op, [&](const Tensor& t) {
    sum = size_add(sum, size_mul(t.shape.elements(), element_bytes(graph.compute)));
  });
  return sum;
}

}  // namespace stw
