// Op table rows of the matrix products: y = x·Wᵀ + b, for up to four weights side by side, or for one weight
// plus a residual; and their three gradients.
#include "kernels/contract/cpu_workspace.h"
#include "kernels/contract/cuda_workspace.h"
#include "planner/graph/differentiate.h"
#include "planner/graph/quantize.h"

namespace stw {

namespace {

struct Sizes {
  int64_t inputs, features;
};

Sizes sizes(const Graph& g, const Op& op) {
  switch (op.kind) {
    case OpKind::linear: return {g.features(op.inputs[0]), g.features(op.outputs[0])};
    case OpKind::linear_input_gradient: return {g.features(op.outputs[0]), g.features(op.inputs[0])};
    default: return {g.features(op.inputs[1]), g.features(op.inputs[0])};  // weight gradient: dy, x
  }
}

// The cost of rounding an element of a 16-bit gradient, once a sample. Most of it is the drawing of random
// numbers. Measured on a CPU with AVX2 (0.74 ns); an estimate for GPUs.
constexpr uint64_t rounding_flops = 64;

// Adds the cost of decoding: codes are read first, and the product reads the decoded values in their place.
// Each piece is a product of its own.
Cost with_values(const Graph& g, const Op& op, const Extent& e, Cost c) {
  const uint64_t values = quantized_operand_values(g, op);
  if (values == 0) return c;
  const uint64_t codes = quantized_operand_bytes(g, op);
  const ValuePieces pieces = value_pieces(g, op);
  const auto again = static_cast<uint64_t>(pieces.count - 1);  // how many more times x, or dy, is read
  c.bytes_before = size_add(codes, values);
  const auto count = static_cast<uint64_t>(pieces.count);
  c.launches_before = pieces.cut == ValuePieces::Cut::inputs ? size_mul(count, quantized_operands(g, op))
                                                             : std::max(quantized_operands(g, op), count);
  c.launches_before += again;
  c.bytes = size_add(c.bytes - codes, values);
  if (again == 0) return c;
  const bool has_sums = op.kind == OpKind::linear_input_gradient && pieces.cut == ValuePieces::Cut::features;
  const uint64_t of_piece = has_sums ? size_mul(size_mul(2 * sizeof(float), static_cast<uint64_t>(e.rows)),
                                                static_cast<uint64_t>(g.features(op.outputs[0])))
                                     : operand_bytes(g, op.inputs[0], e);  // x, or dy
  c.bytes = size_add(c.bytes, size_mul(again, of_piece));
  return c;
}

Cost product_cost(const Graph& g, const Op& op, const Extent& e) {
  Cost c = streaming_cost(g, op, e, 0);
  Sizes s = sizes(g, op);
  c.flops = size_mul(size_mul(2 * static_cast<uint64_t>(e.rows), static_cast<uint64_t>(s.inputs)),
                     static_cast<uint64_t>(s.features));
  if (op.kind != OpKind::linear_weight_gradient) return with_values(g, op, e, c);
  // In exact mode, every sample reads and writes the sums. One product of all rows would read and write them
  // once.
  if (g.exact && g.is_library_product(op))
    for (int t : op.outputs)
      if (t >= 0)
        c.bytes = size_add(c.bytes, size_mul(g.at(t).bytes(1), 2 * static_cast<uint64_t>(e.samples) - 1));
  for (int t : op.outputs)
    if (t >= 0 && g.at(t).format == Format::bf16)
      c.flops = size_add(c.flops, size_mul(size_mul(rounding_flops, g.at(t).shape.elements()),
                                           static_cast<uint64_t>(e.samples)));
  return c;
}

Cost bias_cost(const Graph& g, const Op& op, const Extent& e) { return streaming_cost(g, op, e, 1); }

// The scratch memory of the product is counted for whole matrices. Pieces of them need no more.
uint64_t product_workspace(const Graph& g, const Op& op, const Extent& e) {
  Sizes s = sizes(g, op);
  return size_add(value_scratch(g, op, e.rows).bytes(),
                  kernels::cpu_workspace::linear(e.rows, s.inputs, s.features,
                                                 dtype_of(g.at(op.outputs[0]).format), e.threads));
}
uint64_t input_workspace(const Graph& g, const Op& op, const Extent& e) {
  Sizes s = sizes(g, op);
  return size_add(value_scratch(g, op, e.rows).bytes(),
                  kernels::cpu_workspace::linear_input_gradient(
                      e.rows, s.inputs, s.features, dtype_of(g.at(op.outputs[0]).format), e.threads));
}
uint64_t product_cuda_workspace(const Graph& g, const Op& op, const Extent& e) {
  return value_scratch(g, op, e.rows).bytes();
}
uint64_t weight_workspace(const Graph& g, const Op& op, const Extent& e) {
  uint64_t largest = 0;
  for (int t : op.outputs) {
    if (t < 0) continue;
    const Shape& w = g.at(t).shape;
    largest = std::max(largest, kernels::cpu_workspace::linear_weight_gradient(
                                    e.rows, w[0], w[1], dtype_of(g.at(t).format), e.threads));
  }
  return largest;
}
// The scratch memory holds the tile sums of all parts side by side.
uint64_t bias_cuda_workspace(const Graph& g, const Op& op, const Extent& e) {
  if (g.at(op.inputs[0]).tile_sums) return 0;
  int64_t features = 0;
  for (size_t i = 1; i < op.inputs.size(); ++i)
    if (op.outputs[i - 1] >= 0) features += g.at(op.inputs[i]).shape[op.attributes.transposed ? 1 : 0];
  return kernels::cuda_workspace::tile_sums(e.rows, g.rows_of(op), features);
}

// Weight gradients come first: they are the last to read x.
void linear_backward(Differentiation& d, const Op& op) {
  const int x = op.inputs[0], dy = d.gradient_of(op.outputs[0]);
  if (op.residual() >= 0) d.add_gradient(op.residual(), dy);
  std::vector<int> weights, biases, inputs{dy, -1};
  bool any_weight = false, any_bias = false;
  for (size_t i = 1; i + 1 < op.inputs.size(); i += 2) {
    inputs.push_back(op.inputs[i]);
    weights.push_back(d.parameter_gradient(op.inputs[i]));
    biases.push_back(op.inputs[i + 1] >= 0 ? d.parameter_gradient(op.inputs[i + 1]) : -1);
    any_weight |= weights.back() >= 0;
    any_bias |= biases.back() >= 0;
  }
  // Each list holds every part, trained or not, so that the position of a part gives its columns. The shapes
  // of the weights give the widths.
  std::vector<int> products{dy, x}, sums{dy};
  for (size_t i = 1; i + 1 < op.inputs.size(); i += 2) {
    products.push_back(op.inputs[i]);
    sums.push_back(op.inputs[i]);
  }
  if (any_weight)
    d.emit(OpKind::linear_weight_gradient, op.attributes, std::move(products), std::move(weights));
  if (any_bias) d.emit(OpKind::linear_bias_gradient, op.attributes, std::move(sums), std::move(biases));
  if (!d.requires_gradient(x)) return;
  const int dx = d.new_gradient(x, "linear_gradient");
  inputs[1] = d.gradient_of(x);
  d.emit(OpKind::linear_input_gradient, op.attributes, std::move(inputs), {dx});
  d.set_gradient(x, dx);
}

constexpr OpRow linear_table[] = {
    {.kind = OpKind::linear,
     .name = "linear",
     .cost = product_cost,
     .cpu_workspace = product_workspace,
     .cuda_workspace = product_cuda_workspace,
     .backward = linear_backward,
     .is_row_by_row = true},
    {.kind = OpKind::linear_input_gradient,
     .name = "linear_input_gradient",
     .cost = product_cost,
     .cpu_workspace = input_workspace,
     .cuda_workspace = product_cuda_workspace,
     .in_place = {{{0, 1}}},
     .is_row_by_row = true},
    {.kind = OpKind::linear_weight_gradient,
     .name = "linear_weight_gradient",
     .cost = product_cost,
     .cpu_workspace = weight_workspace,
     .shapes_from = 2,
     .is_row_by_row = true},
    {.kind = OpKind::linear_bias_gradient,
     .name = "linear_bias_gradient",
     .cost = bias_cost,
     .cuda_workspace = bias_cuda_workspace,
     .shapes_from = 1,
     .is_row_by_row = true},
};

}  // namespace

constinit const std::span<const OpRow> linear_rows{linear_table};

}  // namespace stw
