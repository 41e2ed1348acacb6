#include "src/execute/coded_products.h"

#include <algorithm>

#include "planner/graph/quantize.h"

namespace stw {

namespace {

using Cut = ValuePieces::Cut;

// The weight of a part, from the op's operands.
const Tensor& weight_of(const Call& c, int part) {
  const Operands& operands = operands_of(c.op.kind);
  return c.input_tensor(operands.first_part() + operands.part_size() * part);
}

void* element(const void* data, kernels::DType dtype, int64_t at) {
  return data == nullptr
             ? nullptr
             : static_cast<std::byte*>(const_cast<void*>(data)) + at * (dtype == kernels::DType::f32 ? 4 : 2);
}

struct Range {
  int64_t first, count;
};
// Computes values of the op's weight number `of`, for these features and inputs. Writes them to the workspace
// at `at`, and points a.part[part] to them. Returns the offset past the values.
uint64_t make_values(const Call& c, kernels::LinearArgs& a, int part, int of, Range features, Range inputs,
                     uint64_t at) {
  const Tensor& weight = weight_of(c, of);
  kernels::DequantizeArgs d{};
  d.count = static_cast<int64_t>(weight.shape.elements());
  d.codes = weight_codes_of(weight.format);
  d.data = a.part[part].weight;
  const bool in_rows = inputs.count < weight.shape[1];  // otherwise the values are contiguous
  d.first = features.first * weight.shape[1] + inputs.first;
  d.rows = in_rows ? features.count : 1;
  d.columns = in_rows ? inputs.count : features.count * inputs.count;
  d.stride = in_rows ? weight.shape[1] : 0;
  d.y = {c.workspace(at), a.weight_dtype};
  c.run(c.x.table->dequantize, d);
  a.part[part].weight = d.y.data;
  return at +
         round_up(static_cast<uint64_t>(features.count * inputs.count) * element_bytes(c.x.graph->compute),
                  value_alignment);
}
kernels::LinearArgs with_all_values(const Call& c, kernels::LinearArgs a) {
  uint64_t at = 0;
  for (int p = 0; p < a.parts; ++p)
    if (const Shape& shape = weight_of(c, p).shape; is_quantized(weight_of(c, p).format))
      at = make_values(c, a, p, p, {0, shape[0]}, {0, shape[1]}, at);
  return a;
}
// Calls piece(args, column) for all features in turn, at most `width` at a time. args: one part with these
// features; column: their first column in y.
template <class Piece>
void for_features(const Call& c, const kernels::LinearArgs& a, int64_t width, const Piece& piece) {
  int64_t column = 0;
  for (int p = 0; p < a.parts; column += a.part[p++].features)
    for (int64_t first = 0; first < a.part[p].features; first += width) {
      kernels::LinearArgs one = a;
      one.parts = 1, one.part[0] = a.part[p],
      one.part[0].features = std::min(width, a.part[p].features - first);
      make_values(c, one, 0, p, {first, one.part[0].features}, {0, a.inputs}, 0);
      one.part[0].bias = element(a.part[p].bias, a.weight_dtype, first);
      one.y.data = element(a.y.data, a.y.dtype, column + first);
      piece(one, column + first);
    }
}

}  // namespace

void run_product(const Call& c, const kernels::LinearArgs& a) {
  const ValuePieces pieces = value_pieces(*c.x.graph, c.op);
  const uint64_t taken = value_scratch(*c.x.graph, c.op, a.rows).bytes();
  if (pieces.cut == Cut::none) return c.run(c.x.table->linear, with_all_values(c, a), taken);
  for_features(c, a, pieces.width, [&](kernels::LinearArgs& one, int64_t column) {
    one.residual.data = element(a.residual.data, a.residual.dtype, column);
    c.run(c.x.table->linear, one, taken);
  });
}

void run_input_gradient(const Call& c, const kernels::LinearArgs& a) {
  const ValuePieces pieces = value_pieces(*c.x.graph, c.op);
  const ValueScratch scratch = value_scratch(*c.x.graph, c.op, a.rows);
  const auto run = [&](const kernels::LinearArgs& args) {
    c.run(c.x.table->linear_input_gradient, args, scratch.bytes());
  };
  switch (pieces.cut) {
    case Cut::none: return run(with_all_values(c, a));
    case Cut::inputs:
      for (int64_t first = 0; first < a.inputs; first += pieces.width) {
        kernels::LinearArgs some = a;
        some.inputs = std::min(pieces.width, a.inputs - first), some.x_stride = a.inputs;
        some.x.data = element(a.x.data, a.x.dtype, first);
        some.addend.data = element(a.addend.data, a.addend.dtype, first);
        uint64_t at = 0;
        for (int p = 0; p < a.parts; ++p)
          at = make_values(c, some, p, p, {0, a.part[p].features}, {first, some.inputs}, at);
        run(some);
      }
      return;
    case Cut::features: {
      // Sums stay in fp32 between pieces: in dx, or in scratch memory after the values.
      const kernels::Matrix sums =
          scratch.sums > 0 ? kernels::Matrix{c.workspace(scratch.values), kernels::DType::f32} : a.x;
      int64_t left = pieces.count;
      for_features(c, a, pieces.width, [&](kernels::LinearArgs& one, int64_t column) {
        if (column > 0) one.addend = {sums.data, sums.dtype};
        if (--left > 0) one.x = sums;
        run(one);
      });
    }
  }
}

}  // namespace stw
