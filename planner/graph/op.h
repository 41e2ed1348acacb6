// The record of an operation. Its kind's operands are in operands.h. Cost, workspace, shapes and backward
// rule are in the kind's row of the op table (op_table.h). src/execute/execute.cpp calls its kernel.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "kernels/contract/activations.h"
#include "kernels/contract/limits.h"
#include "planner/graph/head.h"
#include "planner/graph/operands.h"

namespace stw {

inline bool is_transfer(OpKind kind) { return kind == OpKind::fetch || kind == OpKind::store; }

using kernels::Activation;
using kernels::Gate;

struct Attributes {
  float epsilon = 0;
  bool rms = false;
  bool transposed = false;                                 // linear: weights are (inputs, features)
  Activation activation = Activation::gelu_tanh;           // activation
  Gate gate = Gate::silu;                                  // gated
  ValueLoss value_loss = ValueLoss::binary_cross_entropy;  // of a value_loss op
  float weight_offset = 0;                                 // norms: the number that is added to every weight
  int query_heads = 0, kv_heads = 0, head_dim = 0;
  float scale = 0;     // of attention's scores; of a scale op
  bool causal = true;  // attention: a row sees no later key
  bool alibi = false;  // attention: scores fall with the distance, by a slope for each head
  // Attention: a row sees keys at a distance of less than `window` rows. 0: no limit.
  int64_t window = 0;
  // Attention with relative positions: the parts that each row of `relative` has.
  bool relative_keys = false, relative_queries = false;
  bool inverse = false;  // rope: rotate back
  float dropout = 0;
  std::array<int64_t, kernels::max_parts> columns{};  // adapter: the first column of each part in y
  uint32_t stream = 0;  // selects the random numbers of the op; if recomputed, it draws the same ones
  bool operator==(const Attributes&) const = default;
};

struct Op {
  OpKind kind;
  Attributes attributes;
  std::vector<int> inputs, outputs;  // tensors
  int segment = -1;
  // If this op runs right after the op before it, the kernel of that op computes this one too (fuse.h).
  bool fused = false;
  // Of the gradients of ops on tables (Graph): the op adds to its outputs, which earlier ops filled.
  bool accumulates = false;
  bool operator==(const Op&) const = default;
};

// The input, or -1 if it is absent.
inline int input_at(const Op& op, int position) {
  return static_cast<size_t>(position) < op.inputs.size() ? op.inputs[position] : -1;
}

// For a linear op: the tensor that is added to its product, or -1.
inline int residual_of(const Op& op) {
  return op.kind == OpKind::linear ? input_at(op, in(OpKind::linear, "residual")) : -1;
}

inline int part_count(const Op& op) {
  const Operands& all = operands_of(op.kind);
  if (all.part_size() == 0) return 0;
  return (static_cast<int>(op.inputs.size()) - all.first_part()) / all.part_size();
}

// The inputs `name` of all parts: a view of op.inputs, as kernels are called without an allocation.
class PartInputs {
 public:
  class Iterator {
   public:
    Iterator(const PartInputs& inputs, int part) : inputs_(&inputs), part_(part) {}
    int operator*() const { return (*inputs_)[part_]; }
    Iterator& operator++() { return ++part_, *this; }
    bool operator==(const Iterator& other) const { return part_ == other.part_; }

   private:
    const PartInputs* inputs_;
    int part_;
  };

  PartInputs(const Op& op, std::string_view name) : op_(op), parts_(part_count(op)) {
    const Operands& all = operands_of(op.kind);
    step_ = all.part_size();
    first_ = all.first_part();
    for (int k = 0; k < step_ && all.parts[static_cast<size_t>(k)].name != name; ++k) ++first_;
  }
  int size() const { return parts_; }
  int operator[](int part) const { return op_.inputs[first_ + step_ * part]; }
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, parts_}; }

 private:
  const Op& op_;
  int parts_, step_ = 0, first_ = 0;
};
inline PartInputs part_inputs(const Op& op, std::string_view name) { return {op, name}; }

inline bool reads(const Op& op, int tensor) {
  return std::find(op.inputs.begin(), op.inputs.end(), tensor) != op.inputs.end();
}

// Attention over whole samples, forward or backward.
inline bool is_attention(OpKind kind) {
  return kind == OpKind::attention || kind == OpKind::attention_gradient;
}

// Whether the op computes the gradient of a matrix or a bias. Its sums over rows are chains of
// kernels::chain_terms terms.
inline bool is_sum_of_chains(const Op& op) {
  const bool sums = op.kind == OpKind::linear_weight_gradient || op.kind == OpKind::linear_bias_gradient ||
                    op.kind == OpKind::adapter_weight_gradient;
  return sums && std::any_of(op.outputs.begin(), op.outputs.end(), [](int t) { return t >= 0; });
}

}  // namespace stw
