// Op table rows of the matrix products: y = x·Wᵀ + b, for up to four weights side by side, or for one weight
// plus a residual; and their three gradients.
#include "kernels/contract/cpu_workspace.h"
#include "kernels/contract/cuda_workspace.h"
#include "planner/graph/differentiate.h"
#include "planner/graph/infer.h"
#include "planner/graph/quantize.h"

namespace stw {

namespace {

struct Sizes {
  int64_t inputs, features;
};

Sizes sizes(const Graph& g, const Op& op) {
  constexpr OpKind forward = OpKind::linear, of_input = OpKind::linear_input_gradient,
                   of_weight = OpKind::linear_weight_gradient;
  switch (op.kind) {
    case forward: return {g.features(op.inputs[in(forward, "x")]), g.features(op.outputs[0])};
    case of_input: return {g.features(op.outputs[0]), g.features(op.inputs[in(of_input, "dy")])};
    default: return {g.features(op.inputs[in(of_weight, "x")]), g.features(op.inputs[in(of_weight, "dy")])};
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
  if (g.at(op.inputs[in(OpKind::linear_bias_gradient, "dy")]).tile_sums) return 0;
  const PartInputs weights = part_inputs(op, "weight");
  int64_t features = 0;
  for (int part = 0; part < weights.size(); ++part)
    if (op.outputs[part] >= 0) features += g.at(weights[part]).shape[op.attributes.transposed ? 1 : 0];
  return kernels::cuda_workspace::tile_sums(e.rows, g.rows_of(op), features);
}

// The sides of a part's weight as the product uses them.
Sizes part_sizes(const Inference& op, int weight) {
  const bool transposed = op.op().attributes.transposed;
  return {op.shape(weight)[transposed ? 0 : 1], op.shape(weight)[transposed ? 1 : 0]};
}

// Checks the weights of all parts, and that x has as many features as they take. Sets `features` to the
// columns of all parts. x: -1 if the op does not read it.
Status check_linear_parts(const Inference& op, int x, int64_t* features) {
  const Operands& operands = operands_of(op.op().kind);
  *features = 0;
  for (int k = operands.first_part(); k < static_cast<int>(op.op().inputs.size());
       k += operands.part_size()) {
    if (op.shape(k).rank != 2) return op.fail(op.described(k) + " is not a matrix");
    const Sizes sizes = part_sizes(op, k), first = part_sizes(op, operands.first_part());
    if (x >= 0 && sizes.inputs != op.features(x))
      return op.fail(op.described(k) + " does not fit " + op.described(x) + ": it takes " +
                     std::to_string(sizes.inputs) + " features");
    if (sizes.inputs != first.inputs)
      return op.fail(op.described(k) + " does not fit " + op.described(operands.first_part()) +
                     ": the parts take the same inputs");
    if (operands.part_size() > 1) STW_TRY(op.expect(k + 1, {sizes.features}, k));
    *features += sizes.features;
  }
  return ok();
}

Status linear_shapes(Inference& op) {
  int64_t features = 0;
  STW_TRY(check_linear_parts(op, in(OpKind::linear, "x"), &features));
  op.set(0, op.row_shape(features));
  if (op.has(in(OpKind::linear, "residual")) && part_count(op.op()) > 1)
    return op.fail("only an op of one part can have a residual");
  return ok();
}
Status input_gradient_shapes(Inference& op) {
  constexpr int dy = in(OpKind::linear_input_gradient, "dy"),
                weight = in(OpKind::linear_input_gradient, "weight");
  int64_t features = 0;
  STW_TRY(check_linear_parts(op, -1, &features));
  op.set(0, op.row_shape(part_sizes(op, weight).inputs));
  return op.expect(dy, op.row_shape(features), weight);
}
Status weight_gradient_shapes(Inference& op) {
  constexpr OpKind kind = OpKind::linear_weight_gradient;
  int64_t features = 0;
  STW_TRY(check_linear_parts(op, in(kind, "x"), &features));
  return op.expect(in(kind, "dy"), op.row_shape(features), in(kind, "weight"));
}
Status bias_gradient_shapes(Inference& op) {
  constexpr int dy = in(OpKind::linear_bias_gradient, "dy"),
                first = in(OpKind::linear_bias_gradient, "weight");
  int64_t features = 0;
  STW_TRY(check_linear_parts(op, -1, &features));
  for (size_t part = 0; part < op.outputs.size(); ++part) {
    op.outputs[part].per_sample = false;
    op.set(static_cast<int>(part), {part_sizes(op, first + static_cast<int>(part)).features}, Format::f32);
  }
  if (op.features(dy) == features) return ok();
  return op.fail(op.described(dy) + " does not fit the parts, which have " + std::to_string(features) +
                 " features");
}

// Weight gradients come first: they are the last to read x.
void linear_backward(Differentiation& d, const Op& op) {
  const int x = op.inputs[in(OpKind::linear, "x")], dy = d.gradient_of(op.outputs[0]);
  if (residual_of(op) >= 0) d.add_gradient(residual_of(op), dy);
  // Each list holds every part, trained or not, so that the position of a part gives its columns. The shapes
  // of the weights give the widths.
  const PartInputs weights = part_inputs(op, "weight"), biases = part_inputs(op, "bias");
  std::vector<int> dweights, dbiases;
  for (int part = 0; part < weights.size(); ++part) {
    dweights.push_back(d.parameter_gradient(weights[part]));
    dbiases.push_back(biases[part] >= 0 ? d.parameter_gradient(biases[part]) : -1);
  }
  const auto any = [](const std::vector<int>& list) {
    return std::any_of(list.begin(), list.end(), [](int t) { return t >= 0; });
  };
  const auto with_weights = [&](std::vector<int> inputs) {
    for (const int weight : weights) inputs.push_back(weight);
    return inputs;
  };
  if (any(dweights))
    d.emit(OpKind::linear_weight_gradient, op.attributes, with_weights({dy, x}), std::move(dweights));
  if (any(dbiases))
    d.emit(OpKind::linear_bias_gradient, op.attributes, with_weights({dy}), std::move(dbiases));
  if (!d.requires_gradient(x)) return;
  const int dx = d.new_gradient(x, "linear_gradient"), addend = d.gradient_of(x);
  d.emit(OpKind::linear_input_gradient, op.attributes, with_weights({dy, addend}), {dx});
  d.set_gradient(x, dx);
}

constexpr OpRow linear_table[] = {
    {.kind = OpKind::linear,
     .name = "linear",
     .cost = product_cost,
     .cpu_workspace = product_workspace,
     .cuda_workspace = product_cuda_workspace,
     .infer = linear_shapes,
     .backward = linear_backward,
     .is_row_by_row = true},
    {.kind = OpKind::linear_input_gradient,
     .name = "linear_input_gradient",
     .cost = product_cost,
     .cpu_workspace = input_workspace,
     .cuda_workspace = product_cuda_workspace,
     .infer = input_gradient_shapes,
     .in_place = {{{out(OpKind::linear_input_gradient, "dx"), in(OpKind::linear_input_gradient, "addend")}}},
     .is_row_by_row = true},
    {.kind = OpKind::linear_weight_gradient,
     .name = "linear_weight_gradient",
     .cost = product_cost,
     .cpu_workspace = weight_workspace,
     .infer = weight_gradient_shapes,
     .is_row_by_row = true},
    {.kind = OpKind::linear_bias_gradient,
     .name = "linear_bias_gradient",
     .cost = bias_cost,
     .cuda_workspace = bias_cuda_workspace,
     .infer = bias_gradient_shapes,
     .is_row_by_row = true},
};

}  // namespace

constinit const std::span<const OpRow> linear_rows{linear_table};

}  // namespace stw
