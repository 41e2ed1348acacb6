// The kinds of ops, and the operands of each kind: names, order, and which operands have the same shape. Code
// finds the position of an operand by its name, at compile time. OpRow::infer (op_table.h) checks and
// computes the other shapes.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "kernels/contract/limits.h"

namespace stw {

enum class OpKind : uint8_t {
  embedding,
  norm,
  qk_norm,
  linear,
  adapter,
  scale,
  rope,
  attention,
  attention_cached,  // generation
  activation,
  gated,  // SwiGLU and others
  add,
  dropout,
  cross_entropy,
  loss_sum,
  hit_count,  // evaluation with an accuracy
  embedding_gradient,
  position_gradient,
  norm_gradient,
  qk_norm_gradient,
  linear_input_gradient,
  linear_weight_gradient,
  linear_bias_gradient,
  adapter_input_gradient,
  adapter_weight_gradient,
  attention_gradient,
  activation_gradient,
  gated_gradient,
  square_sum,
  finish_step,
  adamw,  // this and the next six: the rules of optimizers (optimizer.h)
  adamw8,
  sgd,
  lion,
  lion8,
  muon,
  adafactor,
  fetch,  // from host memory
  store,  // to host memory
  preference,
  gradient_sum,
  document_mean,
  document_mean_gradient,
  value_loss,
  value_hits,  // evaluation with several labels
  span_loss,
  take_rows,  // some rows of every sample
  take_rows_gradient,
  keep_rows,           // of a micro-step, for kept_rows_gradient
  kept_rows_gradient,  // of the token table (kept_rows.h)
};

// An absent operand is -1, or lies past the end of the list.
enum class Presence : uint8_t { required, optional };
inline constexpr Presence may_be_absent = Presence::optional;

struct OperandRow {
  const char* name = nullptr;
  Presence presence = Presence::required;
  // The operand that has the same shape, or null. It is not of a part, unless outputs repeat.
  const char* like = nullptr;
  bool only_shape = false;  // the op does not read the values, only the shape
};

inline constexpr size_t most_operands = 8, most_repeated = 2;

struct Operands {
  OpKind kind;
  std::array<OperandRow, most_operands> inputs{};
  // Inputs that follow these once for each part: for instance a weight and its bias.
  std::array<OperandRow, most_repeated> parts{};
  std::array<OperandRow, most_operands> outputs{};
  bool repeats_outputs = false;  // one output for each part
  int most_parts = kernels::max_parts;

  static constexpr int count(const auto& rows) {
    int n = 0;
    while (n < static_cast<int>(rows.size()) && rows[static_cast<size_t>(n)].name) ++n;
    return n;
  }
  // The position of the first part, and the number of inputs of each part (0: the op has no parts).
  constexpr int first_part() const { return count(inputs); }
  constexpr int part_size() const { return count(parts); }
};

// The gradients of a parameter, of which norm and update add up two.
inline constexpr std::array<OperandRow, most_operands> gradient_inputs{
    {{"gradient"}, {"second_gradient", may_be_absent, "gradient"}}};

// `state`: the op reads or changes the counters of the run in Graph::state.
inline constexpr Operands operand_table[] = {
    {.kind = OpKind::embedding,
     .inputs = {{{"ids"}, {"table"}, {"positions", may_be_absent}, {"position_ids", may_be_absent, "ids"}}},
     .outputs = {{{"y"}}}},
    {.kind = OpKind::norm,
     .inputs = {{{"x"}, {"weight"}, {"bias", may_be_absent, "weight"}}},
     .outputs = {{{"y", {}, "x"}}}},
    // x and y hold queries, keys and values side by side
    {.kind = OpKind::qk_norm,
     .inputs = {{{"x"}, {"query_weight"}, {"key_weight", {}, "query_weight"}}},
     .outputs = {{{"y", {}, "x"}}}},
    // all parts side by side; a residual only with one part
    {.kind = OpKind::linear,
     .inputs = {{{"x"}, {"residual", may_be_absent, "y"}}},
     .parts = {{{"weight"}, {"bias", may_be_absent}}},
     .outputs = {{{"y"}}}},
    // the base, plus low·Wᵀ in the columns of each part
    {.kind = OpKind::adapter,
     .inputs = {{{"base"}, {"low"}}},
     .parts = {{{"weight"}}},
     .outputs = {{{"y", {}, "base"}}}},
    {.kind = OpKind::scale, .inputs = {{{"x"}}}, .outputs = {{{"y", {}, "x"}}}},
    {.kind = OpKind::rope,
     .inputs = {{{"x"}, {"cosine"}, {"sine", {}, "cosine"}, {"positions", may_be_absent}}},
     .outputs = {{{"y", {}, "x"}}}},
    {.kind = OpKind::attention,
     .inputs = {{{"qkv"},
                 {"positions", may_be_absent},
                 {"following", may_be_absent, "positions"},
                 {"relative", may_be_absent},         // keys, queries or both of relative positions
                 {"relative_rows", may_be_absent}}},  // the row of `relative` for each distance
     .outputs = {{{"out"}, {"lse"}}}},
    {.kind = OpKind::attention_cached,  // generation
     .inputs = {{{"qkv"}, {"keys"}, {"values", {}, "keys"}}},
     .outputs = {{{"out"}}}},
    {.kind = OpKind::activation, .inputs = {{{"x"}}}, .outputs = {{{"y", {}, "x"}}}},
    // x: gate and up side by side (SwiGLU and others)
    {.kind = OpKind::gated, .inputs = {{{"x"}}}, .outputs = {{{"y"}}}},
    {.kind = OpKind::add, .inputs = {{{"a"}, {"b", {}, "a"}}}, .outputs = {{{"y", {}, "a"}}}},
    {.kind = OpKind::dropout, .inputs = {{{"x"}}}, .outputs = {{{"y", {}, "x"}}}},
    {.kind = OpKind::cross_entropy,
     .inputs = {{{"logits"}, {"targets"}, {"weights", may_be_absent, "targets"}}},
     .outputs = {{{"loss"}, {"dlogits", may_be_absent, "logits"}}}},
    {.kind = OpKind::loss_sum, .inputs = {{{"loss"}, {"targets", {}, "loss"}}}},  // -> state
    {.kind = OpKind::hit_count, .inputs = {{{"logits"}, {"targets"}}}},           // -> state
    {.kind = OpKind::embedding_gradient, .inputs = {{{"ids"}, {"dy"}}}, .outputs = {{{"dtable"}}}},
    {.kind = OpKind::position_gradient, .inputs = {{{"dy"}}}, .outputs = {{{"dpositions"}}}},
    {.kind = OpKind::norm_gradient,
     .inputs = {{{"x"}, {"weight"}, {"dy", {}, "x"}, {"addend", may_be_absent, "x"}}},
     .outputs = {{{"dx", may_be_absent, "x"},
                  {"dweight", may_be_absent, "weight"},
                  {"dbias", may_be_absent, "weight"}}}},
    {.kind = OpKind::qk_norm_gradient,
     .inputs = {{{"x"}, {"query_weight"}, {"key_weight", {}, "query_weight"}, {"dy", {}, "x"}}},
     .outputs = {{{"dx", may_be_absent, "x"},
                  {"dquery_weight", may_be_absent, "query_weight"},
                  {"dkey_weight", may_be_absent, "key_weight"}}}},
    {.kind = OpKind::linear_input_gradient,
     .inputs = {{{"dy"}, {"addend", may_be_absent, "dx"}}},
     .parts = {{{"weight"}}},
     .outputs = {{{"dx"}}}},
    {.kind = OpKind::linear_weight_gradient,
     .inputs = {{{"dy"}, {"x"}}},
     .parts = {{{"weight", {}, nullptr, true}}},
     .outputs = {{{"dweight", may_be_absent, "weight"}}},
     .repeats_outputs = true},
    // dy may be a tensor of tile sums (fuse.h)
    {.kind = OpKind::linear_bias_gradient,
     .inputs = {{{"dy"}}},
     .parts = {{{"weight", {}, nullptr, true}}},
     .outputs = {{{"dbias", may_be_absent}}},
     .repeats_outputs = true},
    {.kind = OpKind::adapter_input_gradient,
     .inputs = {{{"dy"}}},
     .parts = {{{"weight"}}},
     .outputs = {{{"dlow"}}}},
    {.kind = OpKind::adapter_weight_gradient,
     .inputs = {{{"dy"}, {"low"}}},
     .parts = {{{"weight", {}, nullptr, true}}},
     .outputs = {{{"dweight", may_be_absent, "weight"}}},
     .repeats_outputs = true},
    {.kind = OpKind::attention_gradient,
     .inputs = {{{"qkv"},
                 {"out"},
                 {"lse"},
                 {"dout", {}, "out"},
                 {"positions", may_be_absent},
                 {"following", may_be_absent, "positions"},
                 {"relative", may_be_absent},
                 {"relative_rows", may_be_absent}}},
     .outputs = {{{"dqkv", {}, "qkv"}, {"drelative", may_be_absent, "relative"}}}},
    // bias_sums: column sums of dx in tiles of rows (fuse.h)
    {.kind = OpKind::activation_gradient,
     .inputs = {{{"x"}, {"dy", {}, "x"}}},
     .outputs = {{{"dx", {}, "x"}, {"bias_sums", may_be_absent}}}},
    {.kind = OpKind::gated_gradient, .inputs = {{{"x"}, {"dy"}}}, .outputs = {{{"dx", {}, "x"}}}},
    {.kind = OpKind::square_sum, .inputs = gradient_inputs, .outputs = {{{"sum"}}}},
    {.kind = OpKind::finish_step, .inputs = {{{"sums", may_be_absent}}}},  // -> state
    // The rules of optimizers (optimizer.h). They change the parameter, its master weights and its states.
    {.kind = OpKind::adamw,
     .inputs = gradient_inputs,
     .outputs = {{{"parameter", {}, "gradient"}, {"master", may_be_absent}, {"first"}, {"second"}}}},
    {.kind = OpKind::adamw8,
     .inputs = gradient_inputs,
     .outputs = {{{"parameter", {}, "gradient"},
                  {"master", may_be_absent},
                  {"first"},
                  {"second"},
                  {"first_absmax"},
                  {"second_absmax"}}}},
    {.kind = OpKind::sgd,
     .inputs = gradient_inputs,
     .outputs = {{{"parameter", {}, "gradient"}, {"master", may_be_absent}, {"first"}}}},
    {.kind = OpKind::lion,
     .inputs = gradient_inputs,
     .outputs = {{{"parameter", {}, "gradient"}, {"master", may_be_absent}, {"first"}}}},
    {.kind = OpKind::lion8,
     .inputs = gradient_inputs,
     .outputs = {{{"parameter", {}, "gradient"}, {"master", may_be_absent}, {"first"}, {"absmax"}}}},
    {.kind = OpKind::muon,
     .inputs = gradient_inputs,
     .outputs = {{{"parameter", {}, "gradient"}, {"master", may_be_absent}, {"first"}}}},
    // a matrix has means of its rows and columns, a vector has `columns` alone
    {.kind = OpKind::adafactor,
     .inputs = gradient_inputs,
     .outputs =
         {{{"parameter", {}, "gradient"}, {"master", may_be_absent}, {"rows", may_be_absent}, {"columns"}}}},
    {.kind = OpKind::fetch,
     .outputs = {{{"x"}}}},  // from host memory; x may be a part (Instruction::elements)
    {.kind = OpKind::store, .inputs = {{{"x"}}}},  // to host memory
    {.kind = OpKind::preference,                   // -> state
     .inputs = {{{"loss"},
                 {"targets", {}, "loss"},
                 {"positions", {}, "loss"},
                 {"reference", may_be_absent, "loss"}}},
     .outputs = {{{"weights", may_be_absent, "loss"}}}},
    // the sum replaces the first gradient (update.h)
    {.kind = OpKind::gradient_sum,
     .inputs = {{{"gradient"}}},
     .parts = {{{"term", {}, "gradient"}}},
     .outputs = {{{"sum", {}, "gradient"}}},
     .most_parts = kernels::most_terms - 1},
    // y: the mean in the first row of a document, else 0
    {.kind = OpKind::document_mean,
     .inputs = {{{"x"}, {"positions"}, {"following", {}, "positions"}}},
     .outputs = {{{"y", {}, "x"}}}},
    {.kind = OpKind::document_mean_gradient,
     .inputs = {{{"dy"}, {"positions"}, {"following", {}, "positions"}}},
     .outputs = {{{"dx", {}, "dy"}}}},
    {.kind = OpKind::value_loss,
     .inputs = {{{"logits"}, {"targets"}, {"values"}, {"weights", may_be_absent, "targets"}}},
     .outputs = {{{"loss"}, {"dlogits", may_be_absent, "logits"}}}},
    {.kind = OpKind::value_hits, .inputs = {{{"logits"}, {"targets"}, {"values"}}}},  // -> state
    {.kind = OpKind::span_loss,
     .inputs = {{{"logits"},
                 {"targets"},
                 {"values"},
                 {"positions", {}, "targets"},
                 {"following", {}, "targets"},
                 {"weights", may_be_absent, "targets"}}},
     .outputs = {{{"loss"}, {"dlogits", may_be_absent, "logits"}}}},
    {.kind = OpKind::take_rows, .inputs = {{{"x"}, {"places"}}}, .outputs = {{{"y"}}}},
    {.kind = OpKind::take_rows_gradient,
     .inputs = {{{"dy"}, {"places"}, {"x", {}, nullptr, true}}},
     .outputs = {{{"dx", {}, "x"}}}},
    // the kept rows are those of the global batch; the op fills those of a micro-batch
    {.kind = OpKind::keep_rows, .inputs = {{{"ids"}, {"dy"}}}, .outputs = {{{"kept_ids"}, {"kept_rows"}}}},
    // adds to the gradient of the table's other use
    {.kind = OpKind::kept_rows_gradient,
     .inputs = {{{"kept_ids"}, {"kept_rows"}}},
     .outputs = {{{"dtable"}}}},
};
inline constexpr int op_kind_count = static_cast<int>(std::size(operand_table));

inline constexpr const Operands& operands_of(OpKind kind) { return operand_table[static_cast<size_t>(kind)]; }

consteval bool is_in_order() {
  for (size_t k = 0; k < std::size(operand_table); ++k)
    if (operand_table[k].kind != static_cast<OpKind>(k)) return false;
  return true;
}
static_assert(is_in_order(), "operand_table has a row for each kind of op, in the order of OpKind");

// The row of an input or an output, by its position.
inline constexpr const OperandRow& input_row_of(OpKind kind, size_t position) {
  const Operands& all = operands_of(kind);
  const auto fixed = static_cast<size_t>(all.first_part()), size = static_cast<size_t>(all.part_size());
  if (position < fixed || size == 0) return all.inputs[position < fixed ? position : most_operands - 1];
  return all.parts[(position - fixed) % size];
}
inline constexpr const OperandRow& output_row_of(OpKind kind, size_t position) {
  const Operands& all = operands_of(kind);
  return all.outputs[all.repeats_outputs ? 0 : position];
}

// The position of an operand. A name that the op does not have does not compile. For an input of a part: its
// position in the first part.
consteval int in(OpKind kind, std::string_view name) {
  const Operands& all = operands_of(kind);
  for (size_t k = 0; k < most_operands; ++k)
    if (all.inputs[k].name && all.inputs[k].name == name) return static_cast<int>(k);
  for (size_t k = 0; k < most_repeated; ++k)
    if (all.parts[k].name && all.parts[k].name == name) return all.first_part() + static_cast<int>(k);
  throw "the op has no such input";
}
consteval int out(OpKind kind, std::string_view name) {
  const Operands& all = operands_of(kind);
  for (size_t k = 0; k < most_operands; ++k)
    if (all.outputs[k].name && all.outputs[k].name == name) return static_cast<int>(k);
  throw "the op has no such output";
}

// Whether the op reads the values of its input. Otherwise it needs only the shape.
inline bool reads_input(OpKind kind, size_t position) { return !input_row_of(kind, position).only_shape; }

}  // namespace stw
