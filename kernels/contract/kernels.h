// Every kernel: the arithmetic of training on raw pointers.
//
// A kernel does not allocate, synchronise or fail. The planner has checked the shapes, the caller's arena
// holds the tensors, and `Launch::workspace` is the scratch memory. A kernel set is a table of functions.
// There is one table for each CPU instruction set and one for CUDA. All tables compute the same functions,
// and all CPU tables produce the same bits.
//
// Conventions
//   Shapes      `rows` = samples × rows_per_sample tokens. Activations are row-major (rows, features) without
//               gaps. A matrix in (…) is row-major. A pointer may alias another only where its comment says
//               so.
//   Gradients   Gradients of parameters are sums over tokens, not means. They are fp32 unless
//               `gradient_dtype` says otherwise. With `accumulate`, a kernel adds to the contents of the
//               buffer; without it, the kernel overwrites the buffer with the result of adding to +0.
//   Products    A sum over k is cut into chains of chain_terms terms, counted from the beginning of k; the
//               last chain may be shorter. A chain is a sequence of fused multiply-adds that starts from +0.
//               The chains' results are added in order, in fp32, to the start value: an addend, the gradient
//               buffer or +0. In a product of several parts, every part begins with a new chain. (One chain
//               over all of k would be 12 times as far from the exact sum as PyTorch's result.)
//   Reductions  Sums over tokens restart in every sample. A weight gradient consists of chains, cut at
//               multiples of chain_terms rows from the first row of the sample. Other sums use tiles of
//               `token_tile` rows. The tiles of each chain_terms rows are added up from +0, and their sum is
//               added to the accumulator. A cut of the batch between two samples therefore changes no bit
//               (contract E3 of CONTRIBUTING.md).
//   Cuts        Linear ops and activations may also get a part of one sample (rows <= rows_per_sample). Cuts
//               at multiples of chain_terms change no bit, except in bf16 gradients, which are rounded at the
//               end of each sample. An fp32 weight gradient may get any rows whose ends lie at multiples of
//               chain_terms in a sample or at the end of a sample; LinearArgs::first_row says where the rows
//               begin.
//   Other sums  Two kinds of sums have chains of more than 512 terms, whose length grows with the model or
//               the batch. One kind is attention's sums over keys and queries, which continue from tile to
//               tile as in every fused attention. The other kind is the sum of all additions to an element of
//               a gradient buffer, with one addition for each tile or chain of each sample. All other sums
//               have shorter chains in fp32. In a row of logits, 64 lanes add loss_columns columns at a time.
//               In a table's gradient, a chain adds the rows of a token within chain_terms rows of a sample.
//               Squares of gradients are added 256 terms a lane in fp32, and then in double. Losses are added
//               in double. For a norm's statistics and Adafactor's row sums, a lane adds a sixteenth of the
//               features, which is 512 terms for a width of 8,192.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/contract/activations.h"
#include "kernels/contract/formats.h"
#include "kernels/contract/limits.h"
#include "kernels/contract/losses.h"
#include "kernels/contract/step_state.h"
#include "kernels/contract/weight_codes.h"

namespace stw::kernels {

enum class Isa : uint8_t { scalar = 0, avx2 = 1, avx512 = 2, neon = 3 };

struct Matrix {
  void* data;
  DType dtype;
};
struct ConstMatrix {
  const void* data;
  DType dtype;
};

// The threads of a kernel. `run` calls task(context, index, thread) once for every index in [0, tasks), with
// 0 <= thread < threads, and returns when all calls have returned. Any thread may take any index: no bit may
// depend on the assignment.
struct Parallel {
  void* self;
  int threads;
  void (*run)(void* self, int64_t tasks, void (*task)(void* context, int64_t index, int thread),
              void* context);
};

struct Launch {
  const Parallel* parallel;
  void* workspace;           // Aligned to 64 bytes.
  uint64_t workspace_bytes;  // At least NAME_workspace(args, parallel->threads) of the kernel NAME.
  void* stream;              // A cudaStream_t; null on the CPU.
  const struct ProductLibrary* products = nullptr;     // product_library.h; null unless a kernel uses it.
  const struct AttentionLibrary* attention = nullptr;  // attention_library.h; null unless a kernel uses it.
};

// Arguments of one call that processes several independent tensors. A model has many small tensors. With one
// launch for each, a GPU would spend more time on launches than on memory accesses. All entries have the same
// StepState.
template <class Args>
struct List {
  const Args* first;
  int count;
};  // `count` is in [1, most_together].

// ---- matrix products --------------------------------------------------------------------------------------
// How a CUDA device computes products; the CPU always uses chains. If a choice does not support an operand
// (its type or its alignment), the choice in parentheses takes over. The fallback depends on types and shapes
// alone, so it is the same at every memory budget.
//   chain      Chains of fused multiply-adds, with the CPU's bits.
//   tensor     Our kernels on tensor cores, for 16-bit operands (else chain). The device defines the order of
//              additions.
//   library    Launch::products, and Launch::attention for attention (else tensor). The library chooses the
//              length of its chains. Exact weight gradients are added to the buffer sample by sample.
//   warpgroup  wgmma, for matrix products with fp32 sums and for attention with a head_dim of 64 or 128 (else
//              tensor). Needs compute capability 9.0 and has_warpgroup_kernels().
//   library_or_warpgroup   As library (else warpgroup).
enum class ProductKernels : uint8_t { chain, tensor, library, warpgroup, library_or_warpgroup };
inline bool may_use_library(ProductKernels p) {
  return p == ProductKernels::library || p == ProductKernels::library_or_warpgroup;
}
inline bool may_use_warpgroups(ProductKernels p) {
  return p == ProductKernels::warpgroup || p == ProductKernels::library_or_warpgroup;
}

// One weight of a linear op: (features, inputs), or (inputs, features) if `transposed` (GPT-2's Conv1D).
// Parts lie side by side: a part owns the columns of the output that follow the columns of the parts before
// it.
struct LinearPart {
  const void* weight;
  const void* bias;  // (features), or null.
  // linear_weight_gradient: the weight's shape, of gradient_dtype. Null: the weight is frozen.
  void* weight_gradient;
  void* bias_gradient;  // linear_bias_gradient: fp32 (features). Null: the bias is frozen.
  int64_t features;
  uint32_t stream = 0;  // Random stream of the rounding of weight_gradient to bf16.
};
// linear:                 y = x·Wᵀ + b (+ residual). Chains over the inputs are added up from +0; the bias is
//                         added last. The sum is rounded to y's type, then added to the residual and rounded
//                         again, as `add` does. A library adds in its own order.
// linear_input_gradient:  dx = addend + Σ_parts dy·W. Chains over the features of a part, part after part.
// linear_weight_gradient: dW_i += dy_iᵀ·x. Chains over the rows of a sample are added to the buffer. A bf16
//                         gradient is rounded stochastically at the end of each sample: 16 random bits are
//                         added below the upper half of the fp32 sum, and the lower half is cut off. Values
//                         that are not finite stay not finite. The 16 bits are number element % 8 of
//                         Philox4x32-10 with key = seed and counter = (element / 8, sample in the global
//                         batch, stream, step); `element` is the index in the stored weight. The rows of a
//                         call with a bf16 gradient are whole samples.
// linear_bias_gradient:   db_i += Σ_rows dy_i, in tiles.
struct LinearArgs {
  int64_t rows, inputs, rows_per_sample;
  int64_t first_row;  // linear_weight_gradient: place of row 0 in its sample, a multiple of chain_terms.
  int parts;
  bool transposed;
  bool accumulate;  // Add to the gradients of the parameters.
  ProductKernels products;
  // Whether a library computes weight gradients sample by sample, so that a cut between samples changes no
  // bit.
  bool exact;
  DType weight_dtype;      // Type of weights and biases.
  DType gradient_dtype;    // Type of weight gradients: f32, or bf16 with stochastic rounding.
  const StepState* state;  // Null unless gradient_dtype is bf16.
  LinearPart part[max_parts];
  Matrix x;  // (rows, inputs). linear_input_gradient: the output dx.
  Matrix y;  // (rows, sum of features). Gradients: the input dy.
  // linear with one part: (rows, features) of y's type and y_stride, not y itself; or null.
  ConstMatrix residual;
  ConstMatrix addend;  // linear_input_gradient: (rows, inputs), may be dx; or null.
  // Elements from one row of y to the next. In dy, the columns after the features are +0 up to the next
  // multiple of 8 at least. If the number of features is a multiple of 8, they may hold anything.
  int64_t y_stride;
  // linear_input_gradient: elements from one row of dx and of the addend to the next; 0: inputs.
  int64_t x_stride = 0;
  // GELU fused into the product. The result equals that of `gelu` or `gelu_gradient` with gelu_tanh and
  // `fast`. Needs one part, rows without gaps, and neither residual nor addend.
  //
  // linear: gelu(y), computed from the stored y and of y's type. If it is given, y may be null.
  Matrix activated{};
  // linear_input_gradient: h (rows, inputs), the input of GELU, of dx's type. The output is dx as it would be
  // stored, times GELU's derivative at h. On CUDA, h may be dx if ends_in_gelu() is true; on the CPU, h may
  // not be dx.
  ConstMatrix before_gelu{};
  // With before_gelu: fp32 (inputs). Gets the bias gradient that linear_bias_gradient would compute from dx;
  // or null.
  float* input_bias_gradient = nullptr;
  // With before_gelu, instead of input_bias_gradient: (tiles, inputs), sums of dx's columns over tiles of
  // token_tile rows of a sample; or null.
  float* input_bias_sums = nullptr;
  // linear_bias_gradient with one part: (tiles, features), the sums of dy's columns over the same tiles. Used
  // instead of y; or null.
  const float* tile_sums = nullptr;
  // linear_weight_gradient and linear_bias_gradient: a linked list of other linear ops with the same rows.
  // Their operands are independent. They share launches where types allow it.
  const LinearArgs* further = nullptr;
};
// The arguments with which a separate linear_bias_gradient computes input_bias_gradient.
inline LinearArgs input_bias_args(const LinearArgs& args) {
  LinearArgs bias = {};
  bias.rows = args.rows, bias.rows_per_sample = args.rows_per_sample, bias.parts = 1,
  bias.accumulate = args.accumulate;
  bias.part[0].features = args.inputs, bias.part[0].bias_gradient = args.input_bias_gradient;
  bias.y = args.x, bias.y_stride = args.inputs;
  return bias;
}

// y = the values of a part of a frozen matrix that is stored as codes (weight_codes.h): code value · scale of
// its block in fp32, rounded once to y's type. The products then read y.
struct DequantizeArgs {
  int64_t count;  // Elements of the matrix.
  WeightCodes codes;
  const void* data;  // weight_codes_bytes(codes, count) bytes, aligned to 16.
  // The part: rows of adjacent elements, `stride` apart, from element `first`. `first` is a multiple of 16.
  // If there is more than one row, `columns` and `stride` are multiples of 16 too, and the part has fewer
  // than 2^31 elements.
  int64_t first, rows, columns, stride;
  Matrix y;  // (rows, columns), without gaps.
};

// Low-rank adapters of matrices side by side (LoRA, Hu et al. 2021, arXiv:2106.09685). A part is a weight
// (features, rank). It maps columns [part·rank, + rank) of `low` to columns [column, + features) of y.
struct AdapterPart {
  const void* weight;
  float* weight_gradient;  // adapter_weight_gradient: (features, rank). Null: the weight is frozen.
  int64_t features, column;
};
// adapter:                 y = base; y's columns of a part += low·Wᵀ. Chains over the rank are added to the
//                          base.
// adapter_input_gradient:  dlow_i = dy_i·W_i. Chains over the features.
// adapter_weight_gradient: dW_i += dy_iᵀ·low_i, like linear_weight_gradient in fp32.
struct AdapterArgs {
  int64_t rows, rank, rows_per_sample;
  int64_t first_row;  // adapter_weight_gradient: as in LinearArgs.
  int parts;
  bool accumulate;          // Add to the gradients of the weights.
  ProductKernels products;  // chain or tensor.
  DType weight_dtype;
  AdapterPart part[max_parts];
  Matrix low;        // (rows, parts·rank). adapter_input_gradient: the output dlow.
  Matrix y;          // (rows, width). Gradients: the input dy.
  ConstMatrix base;  // adapter: (rows, width) of y's type, may be y.
  int64_t width;
};

// ---- norms ------------------------------------------------------------------------------------------------
// LayerNorm (Ba et al. 2016, arXiv:1607.06450) and RMSNorm (Zhang and Sennrich 2019, arXiv:1910.07467). With
// rstd = 1 / sqrt(variance + epsilon), h = (x - mean)·rstd, w = weight_offset + weight and g = dy·w:
//   norm:           y = h·w + bias
//   norm_gradient:  dx = addend + rstd·(g - mean(g) - h·mean(g·h)); weight_gradient += Σ_rows dy·h;
//                   bias_gradient += Σ_rows dy
// RMSNorm has neither mean nor bias: mean = 0, variance = mean(x²), and the term mean(g) is absent.
// norm_gradient computes the statistics from x again, by the same code: keeping a tensor for two numbers a
// row is not worth it.
struct NormArgs {
  int64_t rows, features, rows_per_sample;
  float epsilon;
  bool rms;  // RMSNorm.
  bool accumulate;
  DType weight_dtype;
  float weight_offset;     // Added to the weight: 0, or 1 if the model stores weight - 1.
  const void* weight;      // (features)
  const void* bias;        // (features), or null.
  Matrix x;                // (rows, features)
  Matrix y;                // (rows, features). norm_gradient: the input dy.
  Matrix dx;               // norm_gradient: output (rows, features). Null data: only the weight is trained.
  ConstMatrix addend;      // norm_gradient: (rows, features), may be dx; or null.
  float* weight_gradient;  // norm_gradient: fp32 (features), or null.
  float* bias_gradient;    // norm_gradient: fp32 (features), or null.
  // norm_gradient with a weight gradient: up to most_biases parts of linear_bias_gradient that run in the
  // same launches. A list linked by LinearArgs::further, with the same rows. The dy of an op with one part
  // may be the addend, even if the addend is dx.
  const LinearArgs* biases = nullptr;
};

// RMSNorm of every head of queries and keys, with one weight for queries and one for keys; values are copied.
// x, y and dx: (rows, (query_heads + 2·kv_heads)·head_dim), with queries, keys and values side by side. The
// formulas are those of NormArgs, with head_dim features.
struct QkNormArgs {
  int64_t rows, rows_per_sample;
  int query_heads, kv_heads, head_dim;
  float epsilon;
  bool accumulate;
  DType weight_dtype;
  float weight_offset;    // As in NormArgs.
  const void* weight[2];  // For queries and for keys: (head_dim).
  Matrix x;
  Matrix y;                   // Output, may be x. qk_norm_gradient: the input dy.
  Matrix dx;                  // qk_norm_gradient: output, may be dy. Null data: only the weights are trained.
  float* weight_gradient[2];  // qk_norm_gradient: fp32 (head_dim), or null.
};

// ---- element-wise -----------------------------------------------------------------------------------------
struct AddArgs {
  int64_t count;
  ConstMatrix a, b;
  Matrix y;
};  // y = a + b; y may be a or b.
struct ScaleArgs {
  int64_t count;
  float factor;
  ConstMatrix x;
  Matrix y;
};  // y = factor·x; y may be x.
// gelu:           y = activation(x)
// gelu_gradient:  y = dy · activation'(x)
// GELU: Hendrycks and Gimpel 2016, arXiv:1606.08415; common/gelu_form.h has the formulas.
struct GeluArgs {
  int64_t count;
  Activation activation;
  ConstMatrix x, dy;
  Matrix y;  // gelu: may be x. gelu_gradient: may be x or dy.
  // On CUDA, for a 16-bit x and gelu_tanh: the special function unit computes powers of 2 and reciprocals.
  // False: the result has the CPU's bits.
  bool fast = false;
};
// swiglu:           y = act(gate)·up
// swiglu_gradient:  y = dx, from dy and x
// Columns [0, features) of x are the gate, columns [features, 2·features) the up projection. Source: Shazeer
// 2020, arXiv:2002.05202.
struct SwigluArgs {
  int64_t rows, features;
  ConstMatrix x, dy;
  Matrix y;           // (rows, features). swiglu_gradient: dx (rows, 2·features), may be x.
  bool fast = false;  // As in GeluArgs; for silu and gelu_tanh.
  Gate gate = Gate::silu;
};
// Inverted dropout (Srivastava et al. 2014), forward and backward: y = x / (1 - p) for an element that is
// kept, else 0. The gradient is the same function of dy. An element is kept if its random word >= p·2^32. The
// word is number element % 4 of Philox4x32-10 with key = seed and counter = (element / 4, sample in the
// global batch, stream + 2^16·(upper half of element / 4), step); `element` is the index in the sample.
// Streams are below 2^16.
struct DropoutArgs {
  int64_t samples, per_sample;  // Elements of a sample.
  float p;
  uint32_t stream;
  const StepState* state;
  ConstMatrix x;
  Matrix y;  // y may be x.
};

// Means over documents. document_mean: the row of y at the first row of a document is the mean of the
// document's rows of x; the other rows of y are 0. Rows are added in chains of chain_terms rows from the
// document's first row, the chains' results are added in order, and the sum is divided by the number of rows.
// document_mean_gradient: x is dy, y is dx; every row of dx is dy at the first row of its document, divided
// by the number of rows.
struct DocumentMeanArgs {
  int64_t rows, features;
  const int32_t *positions, *following;  // (rows): number of rows of the document before and after a row.
  ConstMatrix x;
  Matrix y;  // (rows, features), not x.
};

// Copies some rows of every sample. take_rows: row k of a sample in y is row places[k] of the sample in x, or
// the sample's first row if places[k] is negative. take_rows_gradient: x is dy (samples·taken, features), y
// is dx (samples·rows_per_sample, features). Row places[k] of a sample in y is row k in x; all other rows are
// 0.
struct TakeRowsArgs {
  int64_t samples, rows_per_sample, taken, features;
  // (samples·taken): rows of a sample. Those of a sample increase; negative ones, for no row, come last.
  const int32_t* places;
  ConstMatrix x;
  Matrix y;  // Not x; the same format.
};

// ---- positions and attention ------------------------------------------------------------------------------
// Rotary positions (RoFormer, Su et al. 2021, arXiv:2104.09864). x and y: (rows, (query_heads +
// 2·kv_heads)·head_dim), with queries, keys and values side by side. In each head of queries and keys, the
// pair (i, i + rotary_dim/2) is rotated by the angle of the row's position: a' = a·cos - b·sin, b' = b·cos +
// a·sin. `inverse` rotates back, which is the gradient.
struct RopeArgs {
  int64_t rows, rows_per_sample;
  int query_heads, kv_heads, head_dim;
  int rotary_dim;  // The first elements of a head are rotated, the others are copied. Even.
  bool inverse;
  const float* cosine;  // (positions, rotary_dim / 2), and so is `sine`.
  const float* sine;
  const StepState* state;  // Null: positions start at 0. Else at state->position.
  // (rows): position of each token in its document; `state` is not read. Null: the row's place in its sample.
  const int32_t* position_ids;
  ConstMatrix x;
  Matrix y;  // y may be x. Values are copied.
};
// Relative positions as in DeBERTa (He et al. 2021, arXiv:2006.03654). A table has a row for a distance, or
// for a range of distances. With r the row for the distance (query - key), its key Kr and its query Qr, a
// score gets the bias scale·Q·Kr + scale·Qr·K, in this order. Attention is bidirectional, without a window,
// and has as many key heads as query heads.
//   attention_gradient:  of each sample, the sums over its scores for the rows of the table begin at +0; they
//                        are added to `gradient` in the order of the samples.
struct RelativePositions {
  ConstMatrix table{};  // (table_rows, width): keys of all heads, then queries of all heads. Null data: none.
  int64_t table_rows = 0;
  bool has_keys = false, has_queries = false;  // The parts of a row of the table; at least one.
  // (2·rows_per_sample - 1): the row for each distance, the smallest first. From one distance to the next,
  // the row stays or grows by one.
  const int32_t* rows = nullptr;
  float* gradient = nullptr;  // fp32, of the table's shape. Null: the table is frozen.
  bool accumulate = false;    // Add to `gradient`.
};

// Multi-head attention (Vaswani et al. 2017, arXiv:1706.03762), fused as in FlashAttention (Dao et al. 2022,
// arXiv:2205.14135). Query heads share key and value heads in groups of query_heads / kv_heads neighbours.
//   attention:           S = scale·Q·Kᵀ + bias, masked; P = softmax(S); out = dropout(P)·V; lse = log Σ_keys
//                        e^S
//   attention_gradient:  dqkv from qkv, out, lse and dout, with P computed again from lse
// common/score_rule.h says which keys a row sees, and the bias.
struct AttentionArgs {
  int64_t samples, rows_per_sample;
  int query_heads, kv_heads, head_dim;
  float scale;     // Factor of the scores, usually 1 / sqrt(head_dim).
  bool causal;     // A row sees no later key. False: it sees keys before and after it.
  int64_t window;  // A row sees keys with |row - key| < window (if causal, none after itself); 0: no limit.
  // Dropout of the probabilities: element = (head·rows_per_sample + query)·rows_per_sample + key.
  float dropout;
  uint32_t stream;
  const StepState* state;  // May be null if dropout is 0.
  // (rows): positions within documents, counted from 0. Row r sees no key before row r - position_ids[r], the
  // first row of its document. Null: every sample is one document.
  const int32_t* position_ids;
  ConstMatrix qkv;  // (rows, (query_heads + 2·kv_heads)·head_dim).
  Matrix out;       // (rows, query_heads·head_dim). Gradient: an input, the result of the forward pass.
  float* lse;  // (samples, query_heads, rows_per_sample): log of the sum of exponentials. Gradient: an input.
  ConstMatrix dout;  // Gradient: (rows, query_heads·head_dim).
  Matrix dqkv;       // Gradient: output of qkv's shape. May not overlap the inputs.
  // Every value except chain needs 16-bit tensors and a head_dim that is a multiple of 8 and at most 128,
  // with relative positions at most 64.
  ProductKernels products = ProductKernels::chain;
  // (rows): number of rows of the document after row r. Required with position_ids if not causal.
  const int32_t* following = nullptr;
  double alibi_root = 0;  // kernels::alibi_root(query_heads): ALiBi, causal only. 0: no bias.
  RelativePositions relative{};
};
// Causal attention of the `rows` new tokens of one sequence over a cache, without dropout. The kernel first
// appends the new keys and values at state->position, then attends to all positions up to each row's own. A
// row gets the bits that `attention` would give it.
struct AttentionCachedArgs {
  int64_t rows, capacity;  // capacity: positions of the cache.
  int query_heads, kv_heads, head_dim;
  float scale;
  int64_t window;  // As in AttentionArgs.
  const StepState* state;
  ConstMatrix qkv;
  Matrix out;                     // As in AttentionArgs.
  Matrix key_cache, value_cache;  // (capacity, kv_heads·head_dim) each. Read and appended to.
  double alibi_root = 0;          // As in AttentionArgs.
};
// Whether the kernels support this combination: attention is causal, or it has no bias and has `following`
// exactly if it has position_ids.
inline bool is_valid_score_rule(const AttentionArgs& a) {
  const RelativePositions& r = a.relative;
  if (r.table.data != nullptr &&
      (a.causal || a.window > 0 || a.query_heads != a.kv_heads || !(r.has_keys || r.has_queries)))
    return false;
  return a.causal || (a.alibi_root == 0 && (a.position_ids == nullptr) == (a.following == nullptr));
}
// ALiBi (Press et al., arXiv:2108.12409) subtracts slope·(row - key) from a score. The slopes of `heads`
// heads are powers of this root: 2^(-4/m) in double precision, where m is the largest power of two that does
// not exceed `heads`. The host computes it by square roots.
double alibi_root(int heads);

// ---- embedding and loss -----------------------------------------------------------------------------------
// embedding:           y = table[token] (+ positions[position])
// embedding_gradient:  table_gradient[token] += Σ dy. Rows are sorted by (token, row), stably. The rows of a
//                      token within each chain_terms rows of a sample are added from +0, and the results are
//                      added to the buffer in order. If positions are given by position_ids, the same kernel
//                      computes the gradient of the position table: it gets position_ids as tokens and the
//                      position table as table.
// kept_rows_gradient:  the same sums over the rows that keep_rows kept. With `accumulate`, each begins at +0,
//                      and is added to the table's buffer at its end; rows of other tokens get +0 added.
//                      Otherwise the buffer is a slice of the table: `slice_tokens` rows from row
//                      `first_token` on. It gets the bits that embedding_gradient gives these rows.
// position_gradient:   position_gradient[p] += Σ_samples dy at position p, one serial sum over the samples.
//                      There are no position_ids. Positions that no row has get +0, or stay unchanged with
//                      `accumulate`.
struct EmbeddingArgs {
  int64_t rows, rows_per_sample, features, vocabulary;
  bool accumulate;
  DType weight_dtype;
  const int32_t* tokens;   // (rows), each in [0, vocabulary).
  const void* table;       // (vocabulary, features) of weight_dtype, or its int8 codes.
  const void* positions;   // (at least rows_per_sample, features), or null.
  const StepState* state;  // Null: positions start at 0. Else at state->position.
  // (rows): position of each token in its document; `state` is not read. Null: the row's place in its sample.
  const int32_t* position_ids;
  Matrix y;                  // (rows, features). Gradients: the input dy.
  float* table_gradient;     // embedding_gradient: fp32 (vocabulary, features).
  float* position_gradient;  // position_gradient: fp32 (position_rows, features).
  int64_t position_rows;     // Rows of the position table.
  // embedding_gradient also does the work of position_gradient, in the same launch.
  bool with_positions = false;
  // Scales of the int8 codes (weight_codes.h). A value is rounded to weight_dtype. Null: no codes.
  const float* table_scales = nullptr;
  int64_t first_token = 0, slice_tokens = 0;  // kept_rows_gradient without `accumulate`
};
// keep_rows: copies the rows of a micro-batch to their places among those of the global batch, which begins
// at sample number `first_sample` of state->first_sample's count.
struct KeepRowsArgs {
  int64_t rows, rows_per_sample, features;
  uint64_t first_sample;
  const int32_t* tokens;  // (rows)
  ConstMatrix y;          // (rows, features)
  int32_t* kept_tokens;   // (rows of the global batch)
  void* kept;             // (rows of the global batch, features) of y's type.
  const StepState* state;
};
// Cross entropy of a row with label smoothing (Szegedy et al. 2016, arXiv:1512.00567) and z-loss (PaLM,
// Chowdhery et al. 2022, arXiv:2204.02311). With s = label_smoothing, z = z_loss, l = log Σ exp x, V =
// vocabulary:
//   loss     = l - (1 - s)·x[target] - s·mean(x) + z·l²
//   gradient = ((1 + 2·z·l)·softmax - s / V - (1 - s)·onehot) · loss_scale · batch_factor
// Both are multiplied by the row's weight.
struct CrossEntropyArgs {
  int64_t rows, vocabulary;
  const int32_t* targets;  // (rows). A row with ignored_target has loss and gradient 0.
  Matrix logits;           // (rows, vocabulary). With `gradient`, replaced by the gradient of the loss.
  bool gradient;
  float* token_loss;  // (rows); 0 for ignored rows.
  // (rows): factors of loss and gradient. A weight of 0 gives 0 for any logits, NaN included. Null: 1.
  const float* weights;
  const StepState* state;  // Null: no smoothing, no z-loss, scale 1.
  int64_t stride;  // Elements from one row of logits to the next. A gradient is +0 after the last column.
  bool fast;       // CUDA, 16-bit logits: sums in the device's own order. False: the CPU's bits.
};
// state->loss_sum += Σ token_loss: serially in double within a sample, then serially over the samples.
// state->target_count += the number of targets that are not ignored.
struct LossSumArgs {
  int64_t samples, rows_per_sample;
  const float* token_loss;
  const int32_t* targets;
  StepState* state;
};
// state->hits += number of rows whose target has the largest logit; of equal logits, the first one counts. A
// row with a NaN is no hit.
struct HitCountArgs {
  int64_t rows, classes;
  const int32_t* targets;  // (rows). Rows with ignored_target do not count.
  ConstMatrix logits;      // (rows, classes).
  int64_t stride;          // Elements from one row of logits to the next.
  StepState* state;
};

// Loss of a row of real values: the mean over its `count` values y of a function of the logits x,
//   binary_cross_entropy   loss = max(x, 0) - x·y + log(1 + e^-|x|)   slope = 1 / (1 + e^-x) - y
//   squared_error          loss = (x - y)²                            slope = 2·(x - y)
// times the row's weight. The gradient of an element is slope · loss_scale · batch_factor / count · weight.
// The sum over a row's columns is formed as in cross_entropy.
struct ValueLossArgs {
  int64_t rows, count;
  ValueLoss kind;
  const int32_t* targets;  // (rows). A row with ignored_target has loss and gradient 0, whatever its values.
  const float* values;     // (rows, count).
  Matrix logits;           // (rows, count). With `gradient`, replaced by the gradient of the loss.
  bool gradient;
  float* row_loss;  // (rows); 0 for ignored rows.
  // (rows): factors of loss and gradient. A weight of 0 gives 0 for any logits, NaN included. Null: 1.
  const float* weights;
  const StepState* state;  // Null: scale 1.
  int64_t stride;  // Elements from one row of logits to the next. A gradient is +0 after the last column.
};
// Loss of an answer in a document: the mean of two cross entropies, of the answer's first and last row among
// the rows of the document. The logits of column c over the rows of a document are one softmax. With p =
// values[first row of the document][c], a row counted from the first one:
//   loss = Σ_c (log Σ_rows e^x - x[p]) / 2                gradient = (softmax - [row = p]) / 2
// loss is times the weight of the document's first row; gradient is times weight · loss_scale · batch_factor.
// A p outside of the document adds no loss and no gradient. A document whose first row has ignored_target has
// none either. A sum over rows is formed as one over columns in cross_entropy.
struct SpanLossArgs {
  int64_t rows;
  const int32_t* targets;    // (rows). Read in first rows of documents; any number but ignored_target counts.
  const float* values;       // (rows, 2). Read in the same rows.
  const int32_t* positions;  // (rows): place of a row in its document. The first row has 0.
  const int32_t* following;  // (rows): rows that follow in the document. All documents are whole.
  Matrix logits;             // (rows, 2). With `gradient`, replaced by the gradient of the loss.
  bool gradient;
  float* row_loss;         // (rows): the document's loss in its first row, 0 in others.
  const float* weights;    // (rows), or null: 1. A weight of 0 gives 0 for any logits, NaN included.
  const StepState* state;  // Null: scale 1.
  int64_t stride;          // Elements from one row of logits to the next. A gradient is +0 after the columns.
};
// state->hits += number of rows whose logits are all right: above 0 if the value is above 0.5, else at most
// 0. A row with a NaN is no hit.
struct ValueHitsArgs {
  int64_t rows, count;
  const int32_t* targets;  // (rows). Rows with ignored_target do not count.
  const float* values;     // (rows, count).
  ConstMatrix logits;      // (rows, count).
  int64_t stride;          // Elements from one row of logits to the next.
  StepState* state;
};

// The loss of a preference pair (preference_pair.h has formulas and sources).
struct PairTerms {
  Preference kind;
  // DPO, SimPO: factor of the difference. IPO: factor of the regulariser. ORPO: factor of the odds-ratio
  // loss.
  double beta;
  double margin;        // SimPO: gamma.
  double smoothing;     // DPO, SimPO: share of pairs whose order is wrong.
  double answer_share;  // Factor of the chosen document's mean token loss in the pair's loss. ORPO adds 1.
};
// A document begins at the first row of a sample and at each row whose position is 0. The first and second
// document of a sample form a pair, chosen and rejected, then the third and fourth, and so on. A pair counts
// if both documents have a target that is not ignored.
//   state->loss_sum     += Σ losses of the pairs: serially in double within a sample, then serially over
//                       samples
//   state->target_count += number of pairs that count
//   state->hits         += number of these pairs whose chosen document is ahead
//   token_weights        = d pair loss / d token_loss for the rows of a pair that counts, else 0
struct PreferenceArgs {
  int64_t samples, rows_per_sample;
  PairTerms terms;
  const float* token_loss;   // (rows), without label smoothing.
  const int32_t* targets;    // (rows)
  const int32_t* positions;  // (rows)
  // (rows): log-probabilities of the targets under the reference model. Null unless DPO or IPO.
  const float* reference;
  float* token_weights;  // (rows), or null.
  StepState* state;
};

// ---- update -----------------------------------------------------------------------------------------------
// *sum = Σ g², with g = gradient[0] + gradient[1] (an fp32 sum) or gradient[0] alone if the other is null.
// Chunks of 4096 elements are summed by 16 lanes and a fixed fold; the chunks' sums are added in order in
// double. If `checked` is given and the sum is not finite, checked->skip becomes skip_midway unless the step
// is already skipped. With `continues`, the gradient is a slice of a tensor, and *sum has the sum of the
// slices before it, to which the chunks' sums are added in order.
struct SquareSumArgs {
  int64_t count;
  const void* gradient[2];
  double* sum;
  DType dtype = DType::f32;
  StepState* checked = nullptr;
  bool continues = false;
};
// Ends a step: computes loss, norm and coefficient, and decides whether the update takes place. With N
// targets and scale = loss_scale · batch_factor:
//   loss = loss_sum / N
//   grad_norm = sqrt(Σ sums) / (N·scale)
//   coefficient = min(1, max_norm / (grad_norm + 1e-6)) / (N·scale)
// A step is skipped if it has no target, if loss or norm is not finite, or if one of them is an outlier. An
// outlier exceeds the running mean by more than outlier_limit standard deviations, once outlier_history steps
// were seen. The deviation counts as at least outlier_spread of the mean: otherwise, after a run of equal
// values, the first different value would be an outlier, and so would all later ones. The running statistics
// are exponential with the weight outlier_weight, but the first steps all have equal weights. Every finite
// step enters the statistics; an outlier enters them as if its value lay at the limit.
//
// A step that is not finite halves loss_scale. growth_interval successive updates double it, unless the
// result is not finite in fp32. A step without targets or with an outlier changes neither loss_scale nor
// good_steps.
//
// A fused update uses each gradient before the later ones exist. So it calls this kernel twice, and there is
// no clipping. The call with `begin` comes when the loss is known; it does everything except the norm, which
// counts as 0. The call with `end` comes after the last update; it computes the norm and the state that
// follows a step. If the norm is not finite and the step was not skipped, this call sets the skip to
// skip_midway.
enum class FinishStepPart : uint8_t { whole, begin, end };
struct FinishStepArgs {
  int64_t sums;
  const double* sum;
  StepState* state;
  FinishStepPart part = FinishStepPart::whole;
};
inline constexpr uint64_t outlier_history = 64;
inline constexpr double outlier_weight = 2.0 / 129;
inline constexpr double outlier_spread = 1e-4;

// The update of one parameter. It does nothing if state->skip is set. p is the fp32 master, which is stored
// as:
//   f32   `parameter` itself.
//   bf16  with `remainder`: bits of p = (parameter << 16) + remainder. `parameter` is p rounded to nearest,
//         ties upward in magnitude.
//   bf16  with `short_remainder`: p is rounded to 24 bits (nearest, ties upward in magnitude), and its bits
//         are (parameter << 16) + (short_remainder << 8).
//   bf16  with neither remainder: p is rounded stochastically. It is rounded up in magnitude with a
//         probability equal to the share that rounding down would lose. The 16 random bits are number element
//         % 8 of Philox4x32-10 with key = seed and counter = (element / 8, its upper half, stream, step).
//   f16   `master`. `parameter` is the master rounded to nearest, ties to even.
// With g = coefficient · (gradient[0] + gradient[1]) and lr = learning_rate · rate, all in fp32:
//   adamw      p *= 1 - lr·decay; first = m, second = v, bias-corrected (adamw_step.h)
//   sgd        g += decay·p; first = momentum·first + g; p -= lr·first, or lr·(g + momentum·first) with
//              nesterov
//   lion       p *= 1 - lr·decay; p -= lr·sign(beta1·m + (1 - beta1)·g); m = beta2·m + (1 - beta2)·g; first =
//              m (lion_step.h)
//   muon       first = momentum·first + (1 - momentum)·g; u = (1 - momentum)·g + momentum·first, made
//              orthogonal by five Newton-Schulz steps; p *= 1 - lr·decay; p -= lr·0.2·sqrt(max(rows,
//              columns))·u (muon_step.h)
//   adafactor  second moments as the outer product of means over rows and columns: first (rows), second
//              (columns); a vector has second (count) alone (adafactor_step.h)
// adamw8 and lion8 are adamw and lion with 8-bit states.
struct UpdateArgs {
  int64_t count;
  int64_t columns;  // Muon, Adafactor: the last dimension of the matrix; else 0.
  DType dtype;
  void* parameter;
  int16_t* remainder;
  int8_t* short_remainder;
  float* master;
  // The second is non-null if the tensor has two uses (tied). For more uses, gradient_sum adds them up first.
  const void* gradient[2];
  DType gradient_dtype;  // f32 or bf16.
  double rate, decay;    // Factor of the learning rate; weight decay.
  // Random numbers: the parameter's stream, and the index in the parameter of the first element here.
  uint32_t stream;
  int64_t first_element;
  const StepState* state;
  float *first, *second;  // 32-bit states.
  // 8-bit states: one byte an element, and one absmax for each block of 256 elements. adamw8's `second` holds
  // sqrt(v).
  uint8_t *first_code, *second_code;
  float *first_absmax, *second_absmax;
  // Muon: unless this is chain, 16-bit parameters are updated in bf16 on tensor cores.
  ProductKernels products = ProductKernels::chain;
};
// Whether Muon works in bf16 on tensor cores.
inline bool is_tensor_muon(const UpdateArgs& args) {
  return args.products != ProductKernels::chain && args.dtype != DType::f32;
}
// sum = term[0] + term[1] + … in this order, in fp32, rounded once to nearest if `dtype` has 16 bits. `sum`
// may be any of the terms.
struct GradientSumArgs {
  int64_t count;
  int terms;
  const void* term[most_terms];
  void* sum;
  DType dtype;
};
struct FillArgs {
  void* data;
  uint64_t bytes;
};  // Zeros.
struct CopyArgs {
  void* to;
  const void* from;
  uint64_t bytes;
};  // A copy between host memory and the arena.

// ---- the table --------------------------------------------------------------------------------------------
#define STW_KERNELS(X)                        \
  X(linear, LinearArgs)                       \
  X(linear_input_gradient, LinearArgs)        \
  X(linear_weight_gradient, LinearArgs)       \
  X(linear_bias_gradient, LinearArgs)         \
  X(dequantize, DequantizeArgs)               \
  X(adapter, AdapterArgs)                     \
  X(adapter_input_gradient, AdapterArgs)      \
  X(adapter_weight_gradient, AdapterArgs)     \
  X(norm, NormArgs)                           \
  X(norm_gradient, NormArgs)                  \
  X(qk_norm, QkNormArgs)                      \
  X(qk_norm_gradient, QkNormArgs)             \
  X(add, AddArgs)                             \
  X(scale, ScaleArgs)                         \
  X(gelu, GeluArgs)                           \
  X(gelu_gradient, GeluArgs)                  \
  X(swiglu, SwigluArgs)                       \
  X(swiglu_gradient, SwigluArgs)              \
  X(document_mean, DocumentMeanArgs)          \
  X(document_mean_gradient, DocumentMeanArgs) \
  X(take_rows, TakeRowsArgs)                  \
  X(take_rows_gradient, TakeRowsArgs)         \
  X(dropout, DropoutArgs)                     \
  X(rope, RopeArgs)                           \
  X(attention, AttentionArgs)                 \
  X(attention_gradient, AttentionArgs)        \
  X(attention_cached, AttentionCachedArgs)    \
  X(embedding, EmbeddingArgs)                 \
  X(embedding_gradient, EmbeddingArgs)        \
  X(position_gradient, EmbeddingArgs)         \
  X(keep_rows, KeepRowsArgs)                  \
  X(kept_rows_gradient, EmbeddingArgs)        \
  X(cross_entropy, CrossEntropyArgs)          \
  X(loss_sum, LossSumArgs)                    \
  X(hit_count, HitCountArgs)                  \
  X(value_loss, ValueLossArgs)                \
  X(value_hits, ValueHitsArgs)                \
  X(span_loss, SpanLossArgs)                  \
  X(preference, PreferenceArgs)               \
  X(square_sum, List<SquareSumArgs>)          \
  X(finish_step, FinishStepArgs)              \
  X(adamw, List<UpdateArgs>)                  \
  X(adamw8, List<UpdateArgs>)                 \
  X(sgd, List<UpdateArgs>)                    \
  X(lion, List<UpdateArgs>)                   \
  X(lion8, List<UpdateArgs>)                  \
  X(muon, UpdateArgs)                         \
  X(adafactor, UpdateArgs)                    \
  X(gradient_sum, GradientSumArgs)            \
  X(fill, FillArgs)                           \
  X(copy, CopyArgs)

struct Table {
#define STW_KERNEL_ENTRY(name, Args) void (*name)(const Launch&, const Args&);
  STW_KERNELS(STW_KERNEL_ENTRY)
#undef STW_KERNEL_ENTRY
};

// Scratch memory in bytes, for the CPU's kernels and for the CUDA kernels: pure functions of shapes and
// number of threads, the same for every instruction set and device. cpu_workspace.h and cuda_workspace.h have
// the formulas. Kernels without an entry need none.
#define STW_KERNEL_WORKSPACES(X)           \
  X(linear, LinearArgs)                    \
  X(linear_input_gradient, LinearArgs)     \
  X(linear_weight_gradient, LinearArgs)    \
  X(linear_bias_gradient, LinearArgs)      \
  X(adapter, AdapterArgs)                  \
  X(adapter_input_gradient, AdapterArgs)   \
  X(adapter_weight_gradient, AdapterArgs)  \
  X(norm_gradient, NormArgs)               \
  X(qk_norm_gradient, QkNormArgs)          \
  X(attention, AttentionArgs)              \
  X(attention_gradient, AttentionArgs)     \
  X(attention_cached, AttentionCachedArgs) \
  X(embedding_gradient, EmbeddingArgs)     \
  X(kept_rows_gradient, EmbeddingArgs)     \
  X(cross_entropy, CrossEntropyArgs)       \
  X(loss_sum, LossSumArgs)                 \
  X(preference, PreferenceArgs)            \
  X(square_sum, List<SquareSumArgs>)       \
  X(muon, UpdateArgs)                      \
  X(adafactor, UpdateArgs)
#define STW_KERNEL_WORKSPACE(name, Args)               \
  uint64_t name##_workspace(const Args&, int threads); \
  namespace cuda {                                     \
  uint64_t name##_workspace(const Args&);              \
  }
STW_KERNEL_WORKSPACES(STW_KERNEL_WORKSPACE)
#undef STW_KERNEL_WORKSPACE

// The table of an instruction set. Null if this build or this processor lacks it. best_isa() is the widest
// that runs here.
const Table* cpu_table(Isa isa);
Isa best_isa();
// The CUDA kernels, null in a build without CUDA. They work on Launch::stream. Errors stay in the runtime,
// for cudaGetLastError.
const Table* cuda_table();
bool has_warpgroup_kernels();  // Whether the build has kernels for compute capability 9.0.

}  // namespace stw::kernels
