// The kinds of operations, and the record of an operation. Cost, workspace and backward rule of a kind are in
// its row of the op table (op_table.h). src/execute/execute.cpp calls its kernel.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "kernels/contract/activations.h"
#include "kernels/contract/limits.h"
#include "kernels/contract/losses.h"

namespace stw {

// Operands by position; -1 if an optional one (marked by "?") is absent. (state): the op reads or changes the
// counters of the run in Graph::state.
enum class OpKind : uint8_t {
  embedding,  // tokens, table, positions?, document positions? -> y
  norm,       // x, weight, bias?                     -> y
  qk_norm,    // x, weight of queries, of keys -> y (x and y hold queries, keys and values side by side)
  linear,     // x, (weight, bias?)…, residual? -> y: all parts side by side; a residual only with one part
  adapter,    // base, low, weight… -> y: base, plus low·Wᵀ in the columns of each part
  scale,      // x                                    -> y
  rope,       // x, cosine, sine, document positions? -> y
  attention,  // qkv, document positions?, following? -> out, lse
  attention_cached,    // qkv, key cache, value cache          -> out          (generation)
  activation,          // x                                    -> y
  gated,               // x: gate and up                       -> y        (SwiGLU and others)
  add,                 // a, b                                 -> y
  dropout,             // x                                    -> y
  cross_entropy,       // logits, targets, weights?            -> token_loss, dlogits?
  loss_sum,            // token_loss, targets                  -> (state)
  hit_count,           // logits, targets                      -> (state)      (evaluation with an accuracy)
  embedding_gradient,  // tokens or document positions, dy     -> dtable
  position_gradient,   // dy                                   -> dpositions
  norm_gradient,       // x, weight, dy, addend?               -> dx?, dweight?, dbias?
  qk_norm_gradient,    // x, weight of queries, of keys, dy    -> dx?, dweight of queries?, of keys?
  linear_input_gradient,   // dy, addend?, weight…                 -> dx
  linear_weight_gradient,  // dy, x, weight… (for their shapes)    -> dweight?…
  linear_bias_gradient,  // dy, weight… (for their shapes) -> dbias?… (or tile sums in place of dy: fuse.h)
  adapter_input_gradient,   // dy, weight…                          -> dlow
  adapter_weight_gradient,  // dy, low, weight… (for their shapes)  -> dweight?…
  attention_gradient,       // qkv, out, lse, dout, document positions?, following? -> dqkv
  activation_gradient,      // x, dy                                -> dx (fused: also tile sums of dx)
  gated_gradient,           // x, dy                                -> dx
  square_sum,               // gradient, gradient?                  -> sum
  finish_step,              // sums                                 -> (state)
  // The rules of optimizers (optimizer.h): gradient, gradient?    -> parameter, master?, states…
  adamw,          // first, second
  adamw8,         // first, second (codes), absmax of both
  sgd,            // first
  lion,           // first
  lion8,          // first (codes), absmax
  muon,           // first
  adafactor,      // row means, column means; for a vector: (absent), second
  fetch,          // (host memory)                        -> x (or a part of x: Instruction::elements)
  store,          // x                                    -> (host memory)
  preference,     // token_loss, targets, document positions, reference? -> token_weights? (and the state)
  gradient_sum,   // gradient, gradient…                  -> first gradient: the sum (update.h)
  document_mean,  // x, document positions, following     -> y: the mean in the first row, else 0
  document_mean_gradient,  // dy, document positions, following    -> dx
  value_loss,              // logits, targets, values, weights?    -> row_loss, dlogits?
  value_hits,  // logits, targets, values              -> (state)      (evaluation, several labels)
};
inline constexpr int op_kind_count = static_cast<int>(OpKind::value_hits) + 1;

inline bool is_transfer(OpKind kind) { return kind == OpKind::fetch || kind == OpKind::store; }

using kernels::Activation;
using kernels::Gate;
using kernels::ValueLoss;

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
  bool inverse = false;  // rope: rotate back
  float dropout = 0;
  std::array<int64_t, kernels::max_parts> columns{};  // adapter: the first column of each part in y
  uint32_t stream = 0;  // selects the random numbers of the op; if recomputed, it draws the same ones
};

struct Op {
  OpKind kind;
  Attributes attributes;
  std::vector<int> inputs, outputs;  // tensors
  int segment = -1;
  // If this op runs right after the op before it, the kernel of that op computes this one too (fuse.h).
  bool fused = false;
  // For a linear op: the tensor that is added to its product, or -1.
  int residual() const { return kind == OpKind::linear && inputs.size() % 2 == 0 ? inputs.back() : -1; }
};

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
