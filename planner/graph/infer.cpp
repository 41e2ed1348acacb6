#include "planner/graph/infer.h"

#include <algorithm>
#include <cstring>

#include "planner/graph/op_table.h"

namespace stw {

std::string to_text(const Shape& shape) {
  std::string text = "(";
  for (int k = 0; k < shape.rank; ++k) text += (k > 0 ? ", " : "") + std::to_string(shape[k]);
  return text + ")";
}

Inference::Inference(const Graph& graph, const Op& op, size_t count)
    : outputs(count), graph_(graph), op_(op), rows_(graph.rows_of(op)) {
  const bool on_tables = std::none_of(op.inputs.begin(), op.inputs.end(),
                                      [&](int t) { return t >= 0 && graph.at(t).per_sample; });
  for (Tensor& t : outputs) {
    t.per_sample = !on_tables;
    t.rows = rows_;
    t.format = graph.compute;
  }
}

Status Inference::fail(const std::string& what) const {
  return Error{Code::unsupported_shape, std::string(op_row(op_.kind).name) + ": " + what};
}

std::string Inference::described(int input) const {
  const OperandRow& row = input_row_of(op_.kind, static_cast<size_t>(input));
  return row.name + (" (" + at(input).name + ")") + " with the shape " + to_text(shape(input));
}

Status Inference::expect(int input, const Shape& expected, int reason) const {
  if (!has(input) || shape(input) == expected) return ok();
  return fail(described(input) + " does not fit " + described(reason) + ": expected " + to_text(expected));
}

void Inference::set(int output, const Shape& shape, Format format) {
  if (output >= static_cast<int>(outputs.size())) return;
  outputs[output].shape = shape;
  outputs[output].format = format;
}

Status Inference::check_presence() const {
  const Operands& all = operands_of(op_.kind);
  const auto fixed = static_cast<size_t>(all.first_part()), size = static_cast<size_t>(all.part_size());
  const auto absent = [&](const OperandRow& row) { return fail(std::string(row.name) + " is missing"); };
  for (size_t k = 0; k < std::max(fixed, op_.inputs.size()); ++k) {
    if (k >= fixed && size == 0)
      return fail("takes " + std::to_string(fixed) + " inputs, found " + std::to_string(op_.inputs.size()));
    const OperandRow& row = input_row_of(op_.kind, k);
    if (row.presence == Presence::required && input_at(op_, static_cast<int>(k)) < 0) return absent(row);
  }
  if (size > 0 && (op_.inputs.size() < fixed + size || (op_.inputs.size() - fixed) % size != 0))
    return fail("its parts are not complete");
  if (part_count(op_) > all.most_parts)
    return fail("takes at most " + std::to_string(all.most_parts) + " parts, found " +
                std::to_string(part_count(op_)));
  return ok();
}

// The shape of an operand that is not of a part. Null if it is absent.
const Shape* Inference::shape_of(const char* name) const {
  const Operands& all = operands_of(op_.kind);
  const auto is_named = [&](const OperandRow& row) { return row.name && std::strcmp(row.name, name) == 0; };
  for (size_t k = 0; k < all.inputs.size(); ++k)
    if (is_named(all.inputs[k]) && has(static_cast<int>(k))) return &shape(static_cast<int>(k));
  for (size_t k = 0; k < outputs.size() && k < all.outputs.size(); ++k)
    if (is_named(all.outputs[k])) return &outputs[k].shape;
  return nullptr;
}

// Outputs have the shapes that the operand table says.
void Inference::copy_shapes() {
  for (size_t k = 0; k < outputs.size(); ++k) {
    const OperandRow& row = output_row_of(op_.kind, k);
    const Operands& all = operands_of(op_.kind);
    if (!row.like) continue;
    for (size_t i = 0; i < op_.inputs.size(); ++i) {
      const size_t fixed = static_cast<size_t>(all.first_part());
      const bool is_of_part =
          i < fixed || !all.repeats_outputs || (i - fixed) / static_cast<size_t>(all.part_size()) == k;
      if (op_.inputs[i] < 0 || !is_of_part || std::strcmp(input_row_of(op_.kind, i).name, row.like) != 0)
        continue;
      const Tensor& from = at(static_cast<int>(i));
      outputs[k].shape = from.shape;
      outputs[k].per_sample = from.per_sample;
      outputs[k].rows = from.rows;
      break;
    }
  }
}

// Compares the inputs that have the shape of another operand, as far as it is known.
Status Inference::check_equal() const {
  for (size_t k = 0; k < op_.inputs.size(); ++k) {
    const OperandRow& row = input_row_of(op_.kind, k);
    if (op_.inputs[k] < 0 || !row.like) continue;
    const Shape* other = shape_of(row.like);
    if (other && other->rank > 0 && shape(static_cast<int>(k)) != *other)
      return fail(described(static_cast<int>(k)) + " does not fit " + row.like + " with the shape " +
                  to_text(*other));
  }
  return ok();
}

Status Inference::run() {
  STW_TRY(check_presence());
  STW_TRY(check_equal());  // the outputs have no shapes yet
  copy_shapes();
  if (const auto infer = op_row(op_.kind).infer) STW_TRY(infer(*this));
  return check_equal();
}

Status expect_heads(const Inference& op, int x) {
  const Attributes& a = op.op().attributes;
  const auto counts = std::to_string(a.query_heads) + " query heads, " + std::to_string(a.kv_heads) +
                      " key-value heads and a head size of " + std::to_string(a.head_dim);
  if (a.query_heads < 1 || a.kv_heads < 1 || a.head_dim < 1 || a.query_heads % a.kv_heads != 0)
    return op.fail("cannot have " + counts);
  const int64_t features = (a.query_heads + int64_t{2} * a.kv_heads) * a.head_dim;
  if (op.features(x) == features) return ok();
  return op.fail(op.described(x) + " does not fit " + counts + ": expected " +
                 to_text(op.row_shape(features)));
}

}  // namespace stw
