// Every entry of the kernels: the math of training on raw pointers.
//
// A kernel neither allocates nor synchronises nor fails: shapes were checked when the plan was made, memory comes from
// the plan's arena, scratch memory is the `workspace` of its `Launch`. A kernel set is a table of functions, one table
// per instruction set or device; all tables compute the same function, and all CPU tables the same bits.
//
// Conventions
//   rows       samples × rows_per_sample tokens; activations are row-major (rows, features), without gaps
//   gradients  of parameters are sums that are not normalised, in fp32 but for `gradient_dtype`; `accumulate` continues from
//              what the buffer holds, otherwise the buffer is overwritten with what accumulating onto +0 gives
//   products   are sums of chains. A chain is chain_terms terms of k or fewer, fused multiply-adds in order from +0; k is cut
//              at multiples of chain_terms from its beginning, which every part of a product of several parts has anew. The
//              chains' results are added one after the other, in fp32, to what the element starts from: an addend, the
//              gradient buffer, or +0. One long chain would be 12 times as far from the exact sum as PyTorch's
//   reductions over tokens begin anew in every sample: weight gradients are chains, cut at multiples of chain_terms rows from
//              the sample's first one; others use fixed tiles of `token_tile` rows, which are added up, those of chain_terms rows
//              apart from the next ones, before they are added to the accumulator. So a cut of the rows between two samples
//              never changes a bit (contract E3). Linear ops and activations may also be given a part of one sample
//              (rows <= rows_per_sample): cuts at multiples of chain_terms change nothing either, but for gradients in bf16,
//              which are rounded at the end of a sample. Weight gradients in fp32 may be given any rows that begin and end in
//              their samples at multiples of chain_terms or at the end, and say where (LinearArgs::first_row)
//   other sums have no chain of more than 512 terms that grows with the model or the batch, but for those named here. Logits of a
//              row: loss_columns at once by 64 lanes. Table gradients: what a token has in chain_terms rows of a sample. Squares
//              of gradients: 256 terms a lane, then double. Losses: double. Statistics of a norm: a sixteenth of the features a
//              lane, 512 terms at a width of 8,192; Adafactor's sums over a row the same. Exceptions: attention's sums over keys
//              and queries, which go on from tile to tile as in every fused attention; and what is added to a gradient buffer, a
//              result for each sample and tile or chain in it
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/contract/weight_codes.h"

namespace stw::kernels {

enum class DType : uint8_t { f32 = 0, bf16 = 1, f16 = 2 };
enum class Isa : uint8_t { scalar = 0, avx2 = 1, avx512 = 2, neon = 3 };

inline constexpr int64_t token_tile = 64;         // rows of one tile of a reduction over tokens
inline constexpr int64_t product_step = 16;       // tokens that tensor cores add up at once; they restart in every sample
inline constexpr int64_t chain_terms = 256;       // of a long sum that are added up at once
inline constexpr int64_t loss_columns = 64 * 256; // of a row of logits that 64 lanes add up at once
inline constexpr int max_parts = 4;               // matrices side by side in one `linear`
inline constexpr int most_biases = 2 * max_parts; // of one norm_gradient
inline constexpr int32_t ignored_target = -100;   // a token that has no loss

struct Matrix { void* data; DType dtype; };
struct ConstMatrix { const void* data; DType dtype; };

// How a kernel gets threads. `run` calls task(context, index, thread) once for every index in [0, tasks), with
// 0 <= thread < threads, and returns when all are done. Which thread takes which index is open: no bit may depend on it.
struct Parallel {
  void* self;
  int threads;
  void (*run)(void* self, int64_t tasks, void (*task)(void* context, int64_t index, int thread), void* context);
};

struct Launch {
  const Parallel* parallel;
  void* workspace;          // 64-byte aligned
  uint64_t workspace_bytes; // at least the kernel's X_workspace(args, parallel->threads)
  void* stream;             // a cudaStream_t; null on the CPU
  const struct ProductLibrary* products = nullptr;      // product_library.h; null where nothing asks for it
  const struct AttentionLibrary* attention = nullptr;   // attention_library.h; the same
};

// What one call does for several tensors that have nothing to do with each other: a launch for each of a model's many small
// ones would cost a GPU more than their bytes. All have the same StepState.
inline constexpr int most_together = 48;
template <class Args>
struct List { const Args* first; int count; };   // count: 1 … most_together

// Scalars of a step. They live in the arena, so that a captured graph can read what changes from step to step.
struct StepState {
  // written by the runtime before a step or micro-step
  uint64_t seed;
  uint64_t step;           // number of successful updates before this one
  uint64_t first_sample;   // index in the global batch of the micro-batch's first sample
  uint64_t position;       // generate: number of tokens already in the cache
  double learning_rate, beta1, beta2, epsilon, max_norm;  // max_norm 0: no clipping
  double momentum;         // of sgd and muon
  double inverse_root;     // adafactor: 1 / sqrt(t), t = step + 1
  double fresh_share;      // adafactor: t^-0.8, the weight of this step's squares
  double label_smoothing, z_loss;
  double batch_factor;     // fp16: 2^-ceil(log2(tokens of the global batch; samples, where losses are means of tokens)), else 1: keeps sums of gradients in range
  double outlier_limit;    // standard deviations from the running mean beyond which a step is skipped; 0: never
  uint32_t nesterov;       // sgd: look ahead
  uint32_t growth_interval;  // fp16: updates in a row after which loss_scale doubles; 0: it stays as it is
  // carried from step to step; changed by `finish_step`
  double loss_scale;       // 1 unless fp16; gradients carry loss_scale · batch_factor
  uint64_t good_steps;     // updates in a row since loss_scale changed
  uint64_t observed;       // steps that the running statistics have seen
  double loss_mean, loss_variance, norm_mean, norm_variance;
  // accumulated by the micro-steps
  double loss_sum;         // sum of the token losses, not normalised; of preferences, of the pairs'
  uint64_t target_count;   // targets that are not ignored; of preferences, pairs
  // written by `finish_step`
  double loss, grad_norm, coefficient;
  double step_size;        // learning_rate / (1 - beta1^t)
  double correction2;      // sqrt(1 - beta2^t)
  uint32_t skip;           // a Skip
  // accumulated by evaluations of classifiers, and of preferences by micro-steps too
  uint32_t hits;           // targets whose logit is the largest of its row; rows of values that are all right; pairs that are in order
};
static_assert(sizeof(StepState) == 256);

// `midway`: a gradient was not finite after other parameters had been updated (a fused update, FinishStepPart).
enum Skip : uint32_t { skip_none = 0, skip_no_target = 1, skip_not_finite = 2, skip_outlier = 3, skip_midway = 4 };

// ---- matrix products --------------------------------------------------------------------------------------------
// What computes the products of a CUDA device; the CPU knows chains alone. Where something else than a chain does not take an operand
// (its type, its alignment), the one before it does: the same one at every budget, since all follows from types and shapes.
//   chain    chains of fused multiply-adds, the CPU's bits
//   tensor   16-bit operands: the tensor cores, whose order of additions is the device's own, by our kernels
//   library  Launch::products, and for attention Launch::attention; what they decline, as tensor. How long the library's chains
//            of additions are is its own affair: exact weight gradients are added to the buffer sample after sample
//   warpgroup  matrix products with sums in fp32, and attention of a head_dim of 64 or 128, by wgmma, else as tensor;
//              on devices of compute capability 9.0, where has_warpgroup_kernels()
//   library_or_warpgroup  as library; what it declines, as warpgroup
enum class ProductKernels : uint8_t { chain, tensor, library, warpgroup, library_or_warpgroup };
inline bool may_use_library(ProductKernels p) { return p == ProductKernels::library || p == ProductKernels::library_or_warpgroup; }
inline bool may_use_warpgroups(ProductKernels p) { return p == ProductKernels::warpgroup || p == ProductKernels::library_or_warpgroup; }

// One part is a weight (features, inputs), or (inputs, features) where `transposed` is set (GPT-2's Conv1D). Several
// parts stand side by side: columns [sum of the features before, + features) of the output belong to a part.
struct LinearPart {
  const void* weight;
  const void* bias;        // (features), or null
  void* weight_gradient;   // shape of the weight, of type gradient_dtype; linear_weight_gradient only; null: none is wanted (frozen)
  void* bias_gradient;     // fp32 (features); linear_bias_gradient only; null: none is wanted
  int64_t features;
  uint32_t stream = 0;     // of random numbers: weight_gradient's, where gradient_dtype is bf16
};
struct LinearArgs {
  int64_t rows, inputs, rows_per_sample;
  int64_t first_row;       // linear_weight_gradient only: the place of row 0 in its sample, a multiple of chain_terms
  int parts;
  bool transposed;
  bool accumulate;         // the gradients of the parameters
  ProductKernels products;
  bool exact;              // of the library's weight gradients: sample after sample, so that cuts between samples change no bit
  DType weight_dtype;      // of weights and biases
  DType gradient_dtype;    // of weight gradients: f32, or bf16 with stochastic rounding
  const StepState* state;  // null unless gradient_dtype is bf16
  LinearPart part[max_parts];
  Matrix x;                // (rows, inputs); for linear_input_gradient the output dx
  Matrix y;                // (rows, sum of features); for the gradients the input dy
  ConstMatrix residual;    // linear of one part only: (rows, features) of y's type, rows as far apart as y's, not y; or null
  ConstMatrix addend;      // linear_input_gradient only: (rows, inputs) the chains are added to, may be dx itself, or null
  int64_t y_stride;        // elements from one row of y to the next. What dy has past the features of a row is +0, up to the next
                           // multiple of 8 at least (of a multiple of 8 anything)
  int64_t x_stride = 0;    // linear_input_gradient only: elements from one row of dx and of the addend to the next; 0: inputs
  // GELU inside of the product, as `gelu` and `gelu_gradient` compute gelu_tanh where `fast` is set. One part, no residual or addend,
  // rows without gaps.
  Matrix activated{};      // linear only: gelu(y as it is stored), of y's type; y may then be null, where nobody needs it
  ConstMatrix before_gelu{};   // linear_input_gradient only: h (rows, inputs) of dx's type: dx, as it would be stored, times GELU's slope at h.
                           // May be dx on CUDA where a product may end in it (ends_in_gelu), else not
  float* input_bias_gradient = nullptr;   // with before_gelu: fp32 (inputs), which gets what linear_bias_gradient makes of dx; or null
  float* input_bias_sums = nullptr;       // in place of it: (tiles, inputs), sums of dx's columns in tiles of token_tile rows of a sample; or null
  const float* tile_sums = nullptr;       // linear_bias_gradient of one part: such sums of dy (tiles, features), in place of y
  // linear_weight_gradient and linear_bias_gradient: the same of another linear op, with the same rows, in the same launches where its types
  // allow it; a list. The operands have nothing to do with each other.
  const LinearArgs* further = nullptr;
};
// Whether a product on tensor cores may have GELU inside, whatever its number of rows: what the planner asks of operands in 16 bits.
inline constexpr bool ends_in_gelu(int64_t inputs, int64_t features) { return inputs % 8 == 0 && features % 8 == 0; }
// The bias gradient of the linear op that made before_gelu, by itself.
inline LinearArgs input_bias_args(const LinearArgs& args) {
  LinearArgs bias = {};
  bias.rows = args.rows, bias.rows_per_sample = args.rows_per_sample, bias.parts = 1, bias.accumulate = args.accumulate;
  bias.part[0].features = args.inputs, bias.part[0].bias_gradient = args.input_bias_gradient;
  bias.y = args.x, bias.y_stride = args.inputs;
  return bias;
}
// linear:                  y = x·Wᵀ + b. Chains over inputs, added up from +0; the bias is added last. What that is when it is stored is
//                          then added to the residual, and stored: as by `add`. The library adds up in an order of its own.
// linear_input_gradient:   dx = addend + Σ_parts dy·W: chains over the features of a part, part after part.
// linear_weight_gradient:  dW_i += dy_iᵀ·x: chains over the rows of a sample, added to the buffer. In bf16 those of a sample are
//                          added to what the samples before have left, and the sum is rounded: 16 random bits are added below
//                          the half and cut off with what is there (not finite stays not finite). Philox4x32-10, key = seed,
//                          counter = (element / 8, sample in the global batch, stream, step), the 16 bits number element % 8,
//                          element counted in the weight as it is stored. Rows are whole samples.
// linear_bias_gradient:    db_i += Σ_rows dy_i, tiled.

// A matrix that is frozen may be stored as codes (weight_codes.h): y = what those of a part of it stand for, in the type that
// products take.
struct DequantizeArgs {
  int64_t count;           // elements of the matrix
  WeightCodes codes;
  const void* data;        // weight_codes_bytes(codes, count) of them, at a multiple of 16 bytes
  int64_t first, rows, columns, stride;   // the part: rows of neighbours, `stride` apart, from element `first` on. Multiples of 16, and
                                          // fewer than 2^31 elements, where there is more than one row
  Matrix y;                // (rows, columns) without gaps
};

// Low-rank adapters (LoRA, Hu et al. 2021) of matrices side by side. A part is a weight (features, rank), whose product with the part's
// columns of `low`, [part·rank, + rank), belongs to columns [column, + features) of y.
struct AdapterPart {
  const void* weight;
  float* weight_gradient;  // (features, rank); adapter_weight_gradient only; null: none is wanted (frozen)
  int64_t features, column;
};
struct AdapterArgs {
  int64_t rows, rank, rows_per_sample;
  int64_t first_row;       // adapter_weight_gradient only, as of LinearArgs
  int parts;
  bool accumulate;         // the gradients of the weights
  ProductKernels products; // chain or tensor
  DType weight_dtype;
  AdapterPart part[max_parts];
  Matrix low;              // (rows, parts·rank); for adapter_input_gradient the output dlow
  Matrix y;                // (rows, width); for the gradients the input dy
  ConstMatrix base;        // adapter only: (rows, width) of y's type, may be y
  int64_t width;
};
// adapter:                  y = base, plus low·Wᵀ where a part lies: chains over the rank, added to the base.
// adapter_input_gradient:   dlow_i = dy_i·W_i, chains over the features.
// adapter_weight_gradient:  dW_i += dy_iᵀ·low_i, as linear_weight_gradient in fp32.

// ---- norms ------------------------------------------------------------------------------------------------------
struct NormArgs {
  int64_t rows, features, rows_per_sample;
  float epsilon;
  bool rms;                // RMSNorm: no mean, no bias
  bool accumulate;
  DType weight_dtype;
  float weight_offset;     // what the weight counts from: 0, or 1 where it is the share by which a feature grows
  const void* weight;      // (features)
  const void* bias;        // (features) or null
  Matrix x;                // (rows, features)
  Matrix y;                // (rows, features): output; for norm_gradient the input dy
  Matrix dx;               // norm_gradient: output, or null data where only the weight is trained
  ConstMatrix addend;      // norm_gradient: added to dx, may be dx itself, or null
  float* weight_gradient;  // norm_gradient: fp32 (features) or null
  float* bias_gradient;    // norm_gradient: fp32 (features) or null
  // norm_gradient that makes a weight's gradient: what linear_bias_gradient does of these, most_biases parts at most, in the same launches.
  // A list, as LinearArgs::further; same rows. The dy of an op of one part may be the addend, also where that is dx.
  const LinearArgs* biases = nullptr;
};
// The statistics are computed again in the backward pass from x, by the same code: two numbers a row are not worth a
// tensor that must be kept.

// RMSNorm of every head of queries and keys, each kind with a weight of its own; values are copied. x, y, dx: (rows,
// (query_heads + 2·kv_heads)·head_dim), queries, keys and values side by side. The gradient has dy in y.
struct QkNormArgs {
  int64_t rows, rows_per_sample;
  int query_heads, kv_heads, head_dim;
  float epsilon;
  bool accumulate;
  DType weight_dtype;
  float weight_offset;       // as in NormArgs
  const void* weight[2];     // of queries, of keys: (head_dim)
  Matrix x;
  Matrix y;                  // output, may be x; for qk_norm_gradient the input dy
  Matrix dx;                 // qk_norm_gradient: output, may be dy, or null data where only weights are trained
  float* weight_gradient[2]; // qk_norm_gradient: fp32 (head_dim) or null
};

// ---- element-wise -----------------------------------------------------------------------------------------------
struct AddArgs { int64_t count; ConstMatrix a, b; Matrix y; };                 // y = a + b; y may be a or b
struct ScaleArgs { int64_t count; float factor; ConstMatrix x; Matrix y; };    // y = factor·x; y may be x
enum class Activation : uint8_t { gelu_tanh = 0, gelu_erf = 1, tanh = 2, relu = 3 };
struct GeluArgs {
  int64_t count;
  Activation activation;
  ConstMatrix x, dy;
  Matrix y;                      // may be x (or dy in the gradient)
  bool fast = false;             // CUDA, x in 16 bits, gelu_tanh: 2^x and 1 / x by the special function unit; false: the CPU's bits
};
// Columns [0, features) of x are the gate, [features, 2·features) the up projection: y = silu(gate)·up.
enum class Gate : uint8_t { silu, gelu_tanh, gelu_erf };   // SwiGLU, and GeGLU with either GELU
struct SwigluArgs {
  int64_t rows, features;
  ConstMatrix x, dy;
  Matrix y;                      // gradient: dx (rows, 2·features), may be x
  bool fast = false;             // as GELU's; of silu and gelu_tanh
  Gate gate = Gate::silu;
};
// Inverted dropout: an element is kept with probability 1 - p and then scaled by 1 / (1 - p). Philox4x32-10, key = seed,
// counter = (element / 4, sample in the global batch, stream + 2^16·(upper half of element / 4), step), where element counts inside the
// sample and word element % 4 decides: kept where word >= p·2^32. The gradient is the same function applied to dy. Streams are below 2^16.
struct DropoutArgs {
  int64_t samples, per_sample;   // elements a sample
  float p; uint32_t stream;
  const StepState* state;
  ConstMatrix x; Matrix y;       // y may be x
};

// Means of documents. A row r of document_mean's y is the mean of the rows of its document where r is the document's first row, else 0. Rows are
// added up in chains of chain_terms rows from the document's first one, and the chains' results one after the other; the sum is divided by the
// number of rows. The gradient has dy in x and dx in y: every row of dx is dy of its document's first row, divided by the number of rows.
struct DocumentMeanArgs {
  int64_t rows, features;
  const int32_t *positions, *following;   // (rows): how many rows of its document come before a row and after it
  ConstMatrix x;
  Matrix y;                               // (rows, features), not x
};

// ---- positions and attention ------------------------------------------------------------------------------------
// Packed rows (query_heads + 2·kv_heads)·head_dim: queries, keys, values. Rotates pairs (i, i + head_dim/2) of queries
// and keys by the angle of the row's position; `inverse` turns back (the backward pass).
struct RopeArgs {
  int64_t rows, rows_per_sample;
  int query_heads, kv_heads, head_dim;
  int turned;                    // elements of a head that are turned, the first ones; even. The others are copied
  bool inverse;
  const float* cosine;           // (positions, turned / 2)
  const float* sine;
  const StepState* state;        // null: positions start at 0, else at state->position
  const int32_t* position_ids;   // (rows): of each token in its document, whatever `state`; null: its row in the sample
  ConstMatrix x; Matrix y;       // y may be x; the values are copied
};
struct AttentionArgs {
  int64_t samples, rows_per_sample;
  int query_heads, kv_heads, head_dim;
  float scale;                   // of the scores, usually 1 / sqrt(head_dim)
  bool causal;                   // a row sees no later key; else keys before and after it
  int64_t window;                // a row sees keys with |row - key| < window (where causal: only up to its own); 0: no limit
  float dropout; uint32_t stream;// of the probabilities; element = (head·rows_per_sample + query)·rows_per_sample + key
  const StepState* state;        // null where dropout is 0
  const int32_t* position_ids;   // (rows): row r sees no key before row r - position_ids[r], the first of its document;
                                 // inside a document they count up from 0. Null: a sample is one document
  ConstMatrix qkv;               // (rows, (query_heads + 2·kv_heads)·head_dim)
  Matrix out;                    // (rows, query_heads·head_dim); for the gradient the same tensor as input
  float* lse;                    // (samples, query_heads, rows_per_sample): log of the sum of exponentials
  ConstMatrix dout;              // gradient: (rows, query_heads·head_dim)
  Matrix dqkv;                   // gradient: output, shape of qkv, may not overlap the inputs
  ProductKernels products = ProductKernels::chain;   // others take 16 bits and a head_dim that is a multiple of 8 up to 128
  const int32_t* following = nullptr;   // (rows): how many rows of its document come after row r. Beside position_ids where not causal
  double alibi_root = 0;         // kernels::alibi_root(query_heads): ALiBi, causal only; 0: scores have no bias
};
// Attention of `rows` new tokens of one sequence at state->position over a cache that holds what came before. The new
// keys and values are appended first. No dropout.
struct AttentionCachedArgs {
  int64_t rows, capacity;        // capacity: positions of the cache
  int query_heads, kv_heads, head_dim;
  float scale;
  int64_t window;                // as in AttentionArgs
  const StepState* state;
  ConstMatrix qkv; Matrix out;
  Matrix key_cache, value_cache; // (capacity, kv_heads·head_dim) each
  double alibi_root = 0;         // as in AttentionArgs
};
// common/score_rule.h says which keys a row sees and how a score is biased. Attention must be causal, or have no bias and have `following`
// exactly where it has position_ids.
inline bool is_valid_score_rule(const AttentionArgs& a) {
  return a.causal || (a.alibi_root == 0 && (a.position_ids == nullptr) == (a.following == nullptr));
}
// ALiBi (Press et al., arXiv 2108.12409) subtracts slope·(row - key) from a score. The slope of each of `heads` heads is a power of this
// root: 2^(-4/m), in double precision, where m is the largest power of two not above `heads`. The host makes it by square roots.
double alibi_root(int heads);

// ---- embedding and loss -----------------------------------------------------------------------------------------
struct EmbeddingArgs {
  int64_t rows, rows_per_sample, features, vocabulary;
  bool accumulate;
  DType weight_dtype;
  const int32_t* tokens;         // (rows), each in [0, vocabulary)
  const void* table;             // (vocabulary, features) of weight_dtype, or int8 codes of it
  const void* positions;         // (at least rows_per_sample, features), or null
  const StepState* state;        // null: positions start at 0, else at state->position
  const int32_t* position_ids;   // (rows): of each token in its document, whatever `state`; null: its row in the sample
  Matrix y;                      // (rows, features); for the gradients the input dy
  float* table_gradient;         // embedding_gradient: (vocabulary, features)
  float* position_gradient;      // position_gradient: (position_rows, features)
  int64_t position_rows;         // rows of the position table
  bool with_positions = false;   // embedding_gradient: does position_gradient's work, too, in the same launch
  const float* table_scales = nullptr;   // of codes (weight_codes.h), whose values are rounded to weight_dtype first; null: none
};
// embedding_gradient: stable order by (token, row); what a token has in each chain_terms rows of a sample is added up from +0,
// and the results one after the other to the buffer. It knows no positions: the gradient of a position table is that of a table
// whose tokens are the position_ids.
// position_gradient: the same without position_ids: for each position one serial fold over the samples. Rows past
// rows_per_sample get +0 unless accumulating.
struct CrossEntropyArgs {
  int64_t rows, vocabulary;
  const int32_t* targets;        // (rows); ignored_target has neither loss nor gradient
  Matrix logits;                 // (rows, vocabulary); with `gradient` replaced by the loss's gradient
  bool gradient;
  float* token_loss;             // (rows), 0 where ignored
  const float* weights;          // (rows), factors of loss and gradient, 0 makes both 0 for any logits; null: 1
  const StepState* state;        // null: no smoothing, no z-loss, scale 1
  int64_t stride;                // elements from one row of logits to the next; a gradient is +0 past the row's end
  bool fast;                     // CUDA, 16-bit logits: sums in an order of the device's own; false: the CPU's bits
};
// With s = label_smoothing, z = z_loss, l = log Σ exp x, V = vocabulary:
//   loss     = l - (1 - s)·x[target] - s·mean(x) + z·l²
//   gradient = ((1 + 2·z·l)·softmax - s / V - (1 - s)·onehot) · loss_scale · batch_factor
// and both times the row's weight.
// state->loss_sum += Σ token losses: serial in double inside a sample, then serial over the samples.
struct LossSumArgs { int64_t samples, rows_per_sample; const float* token_loss; const int32_t* targets; StepState* state; };
// state->hits += rows whose target's logit is the largest; of equal ones the first counts, and none beside what is no number.
struct HitCountArgs {
  int64_t rows, classes;
  const int32_t* targets;        // (rows); rows of ignored_target do not count
  ConstMatrix logits;            // (rows, classes)
  int64_t stride;                // elements from one row of logits to the next
  StepState* state;
};

// The loss of a row of values: the mean over its `count` values of, with a logit x and its value y,
//   binary_cross_entropy   loss = max(x, 0) - x·y + log(1 + e^-|x|)   slope = 1 / (1 + e^-x) - y
//   squared_error          loss = (x - y)²                            slope = 2·(x - y)
// times the row's weight. The gradient is slope · loss_scale · batch_factor / count, times the row's weight. A row's sum is one over columns.
enum class ValueLoss : uint8_t { binary_cross_entropy, squared_error };
struct ValueLossArgs {
  int64_t rows, count;
  ValueLoss kind;
  const int32_t* targets;        // (rows); rows of ignored_target have neither loss nor gradient, and any values
  const float* values;           // (rows, count)
  Matrix logits;                 // (rows, count); with `gradient` replaced by the loss's gradient
  bool gradient;
  float* row_loss;               // (rows), 0 where ignored
  const float* weights;          // (rows), factors of loss and gradient, 0 makes both 0 for any logits; null: 1
  const StepState* state;        // null: scale 1
  int64_t stride;                // elements from one row of logits to the next; a gradient is +0 past the row's end
};
// state->hits += rows whose logits are all right: above 0 where the value is above 0.5, not above 0 elsewhere, and none of them a NaN.
struct ValueHitsArgs {
  int64_t rows, count;
  const int32_t* targets;        // (rows); rows of ignored_target do not count
  const float* values;           // (rows, count)
  ConstMatrix logits;            // (rows, count)
  int64_t stride;                // elements from one row of logits to the next
  StepState* state;
};

// What is learned of pairs of documents (preference_pair.h has the formulas): planner/graph/preference.h; src/ asserts that both agree.
enum class PairLoss : uint8_t { none, dpo, ipo, simpo, orpo };
struct PairTerms {
  PairLoss kind;
  double beta;             // dpo, simpo: of differences; ipo: of the regulariser; orpo: of the odds ratio's loss
  double margin;           // simpo: gamma
  double smoothing;        // dpo, simpo: share of pairs that are the wrong way round
  double answer_share;     // of the chosen document's mean token loss, which is added; orpo: 1 is added to it
};
// Documents of a sample begin where positions are 0, and with its first row; the first and second, third and fourth, … are pairs, chosen and
// rejected. A pair counts where both have a target that is not ignored.
//   state->loss_sum += Σ losses of pairs: serial in double inside a sample, then serial over the samples
//   state->target_count += pairs; state->hits += those whose chosen document is ahead
//   token_weights: d loss / d token_loss of the pair's documents, 0 for rows of what counts not
struct PreferenceArgs {
  int64_t samples, rows_per_sample;
  PairTerms terms;
  const float* token_loss;       // (rows), without smoothing
  const int32_t* targets;        // (rows)
  const int32_t* positions;      // (rows)
  const float* reference;        // (rows): log-probabilities of the targets; dpo and ipo only, else null
  float* token_weights;          // (rows), or null
  StepState* state;
};

// ---- update -----------------------------------------------------------------------------------------------------
// *sum = Σ g² with g = gradient[0] + gradient[1] (fp32 sum where both are there): fixed chunks of 4096 elements, each by
// 16 lanes and a fixed fold, then the chunks' sums one after the other in double.
// `checked`, where given: the step's state, whose skip becomes skip_midway where the sum is not finite and nothing is skipped yet.
struct SquareSumArgs { int64_t count; const void* gradient[2]; double* sum; DType dtype = DType::f32; StepState* checked = nullptr; };
// N targets; scale = loss_scale · batch_factor.
//   loss = loss_sum / N; norm = sqrt(Σ sums) / (N·scale); coefficient = min(1, max_norm / (norm + 1e-6)) / (N·scale)
// A step is skipped where there is no target, where loss or norm are not finite, or where one of them is an outlier: more
// than outlier_limit standard deviations (each at least outlier_spread of the mean: where values were all alike, a limit that one beside
// them would break for good) above its running mean, once `outlier_history` steps were seen. The statistics
// (exponential, weight `outlier_weight`, of the first steps even) take in every finite step, outliers as if they lay at the limit.
// Loss scale: halved by a step that is not finite, doubled after growth_interval updates in a row unless that is not
// finite in fp32; a step without targets or with an outlier changes neither it nor good_steps.
// A fused update, which uses gradients while others are not there yet, does it in two parts. `begin`, when the loss is known:
// all but the norm, which counts as 0, without clipping. `end`, after the last update: the norm and what follows a step;
// where it is not finite and the step was not skipped, the skip is skip_midway.
enum class FinishStepPart : uint8_t { whole, begin, end };
struct FinishStepArgs { int64_t sums; const double* sum; StepState* state; FinishStepPart part = FinishStepPart::whole; };
inline constexpr uint64_t outlier_history = 64;
inline constexpr double outlier_weight = 2.0 / 129;
inline constexpr double outlier_spread = 1e-4;

// One parameter's update; nothing happens where state->skip is set. p is the fp32 master, however it is stored:
//   f32   `parameter` itself
//   bf16  a half with the 16 bits that are missing (`remainder`): the master's bits are (half << 16) + remainder, the half
//         is the master rounded to nearest, ties upward in magnitude
//   bf16  the same with the 8 bits that count most of those (`short_remainder`): the master is rounded to 24 bits, nearest,
//         ties upward in magnitude, and is (half << 16) + (short_remainder << 8)
//   bf16  the half alone, neither remainder given: the new value is rounded up in magnitude with the probability of what
//         rounding down would lose. Philox4x32-10, key = seed, counter = (element / 8, its upper half, stream, step), the
//         16 bits number element % 8
//   f16   `master`; `parameter` is the master rounded to nearest, ties to even
// g = coefficient · (gradient[0] + gradient[1]), lr = learning_rate · rate. Everything is computed in fp32.
struct UpdateArgs {
  int64_t count;
  int64_t columns;                         // muon, adafactor: of the matrix (its last dimension); else 0
  DType dtype;
  void* parameter; int16_t* remainder; int8_t* short_remainder; float* master;
  const void* gradient[2];                 // second one null unless the tensor is used twice (tied); of more uses gradient_sum adds them up before
  DType gradient_dtype;                    // f32, or bf16
  double rate, decay;                      // factor of the learning rate; weight decay
  uint32_t stream; int64_t first_element;  // of random numbers: the parameter's; its element that is here the first
  const StepState* state;
  float *first, *second;                   // states in 32 bits
  // states in 8 bits: one byte an element, one absmax per block of 256 elements; of adamw8 `second` holds sqrt(v)
  uint8_t *first_code, *second_code; float *first_absmax, *second_absmax;
  ProductKernels products = ProductKernels::chain;   // muon: others compute it in bf16, with tensor cores, of a parameter in 16 bits
};
// adamw      p *= 1 - lr·decay; first = m, second = v, bias-corrected (adamw_step.h)
// sgd        g += decay·p; first = momentum·first + g (the first step: g); p -= lr·first, with nesterov lr·(g + momentum·first)
// lion       p *= 1 - lr·decay; p -= lr·sign(beta1·m + (1 - beta1)·g); m = beta2·m + (1 - beta2)·g; first = m
// muon       first = momentum·first + (1 - momentum)·g; u = (1 - momentum)·g + momentum·first, orthogonalised by five
//            Newton-Schulz steps; p *= 1 - lr·decay; p -= lr·0.2·sqrt(max(rows, columns))·u
// adafactor  second moments as an outer product of means over rows and columns: first (rows), second (columns); a vector
//            has second (count) alone
// sum = term[0] + term[1] + … in this order, in fp32; rounded once, to nearest, where it is stored in 16 bits. `sum` may be any of them.
inline constexpr int most_terms = 32;
struct GradientSumArgs { int64_t count; int terms; const void* term[most_terms]; void* sum; DType dtype; };
struct FillArgs { void* data; uint64_t bytes; };   // zeros
struct CopyArgs { void* to; const void* from; uint64_t bytes; };   // between host memory and the arena

// ---- the table --------------------------------------------------------------------------------------------------
#define STW_KERNELS(X) \
  X(linear, LinearArgs) X(linear_input_gradient, LinearArgs) X(linear_weight_gradient, LinearArgs) \
  X(linear_bias_gradient, LinearArgs) X(dequantize, DequantizeArgs) X(adapter, AdapterArgs) X(adapter_input_gradient, AdapterArgs) \
  X(adapter_weight_gradient, AdapterArgs) X(norm, NormArgs) X(norm_gradient, NormArgs) X(qk_norm, QkNormArgs) \
  X(qk_norm_gradient, QkNormArgs) X(add, AddArgs) X(scale, ScaleArgs) \
  X(gelu, GeluArgs) X(gelu_gradient, GeluArgs) X(swiglu, SwigluArgs) X(swiglu_gradient, SwigluArgs) \
  X(document_mean, DocumentMeanArgs) X(document_mean_gradient, DocumentMeanArgs) \
  X(dropout, DropoutArgs) X(rope, RopeArgs) X(attention, AttentionArgs) X(attention_gradient, AttentionArgs) \
  X(attention_cached, AttentionCachedArgs) X(embedding, EmbeddingArgs) X(embedding_gradient, EmbeddingArgs) \
  X(position_gradient, EmbeddingArgs) X(cross_entropy, CrossEntropyArgs) X(loss_sum, LossSumArgs) \
  X(hit_count, HitCountArgs) X(value_loss, ValueLossArgs) X(value_hits, ValueHitsArgs) X(preference, PreferenceArgs) \
  X(square_sum, List<SquareSumArgs>) X(finish_step, FinishStepArgs) X(adamw, List<UpdateArgs>) \
  X(adamw8, List<UpdateArgs>) X(sgd, List<UpdateArgs>) X(lion, List<UpdateArgs>) X(lion8, List<UpdateArgs>) \
  X(muon, UpdateArgs) X(adafactor, UpdateArgs) X(gradient_sum, GradientSumArgs) X(fill, FillArgs) X(copy, CopyArgs)

struct Table {
#define STW_KERNEL_ENTRY(name, Args) void (*name)(const Launch&, const Args&);
  STW_KERNELS(STW_KERNEL_ENTRY)
#undef STW_KERNEL_ENTRY
};

// Scratch memory in bytes that a kernel may use: a pure function of shapes and threads, the same on every instruction
// set. The others need none.
#define STW_KERNEL_WORKSPACES(X) \
  X(linear, LinearArgs) X(linear_input_gradient, LinearArgs) X(linear_weight_gradient, LinearArgs) \
  X(linear_bias_gradient, LinearArgs) X(adapter, AdapterArgs) X(adapter_input_gradient, AdapterArgs) \
  X(adapter_weight_gradient, AdapterArgs) X(norm_gradient, NormArgs) X(qk_norm_gradient, QkNormArgs) X(attention, AttentionArgs) \
  X(attention_gradient, AttentionArgs) X(attention_cached, AttentionCachedArgs) X(embedding_gradient, EmbeddingArgs) \
  X(cross_entropy, CrossEntropyArgs) X(loss_sum, LossSumArgs) X(preference, PreferenceArgs) X(square_sum, List<SquareSumArgs>) \
  X(muon, UpdateArgs) X(adafactor, UpdateArgs)
#define STW_KERNEL_WORKSPACE(name, Args) uint64_t name##_workspace(const Args&, int threads);
STW_KERNEL_WORKSPACES(STW_KERNEL_WORKSPACE)
#undef STW_KERNEL_WORKSPACE

// Null where this build or this processor has no such table. `best_isa` is the widest one that runs here.
const Table* cpu_table(Isa isa);
Isa best_isa();
// The kernels for CUDA devices, null in a build without CUDA. They work on `stream`, ask for workspaces of their own
// (kernels/cuda/workspace.h), and leave errors to the runtime's cudaGetLastError.
const Table* cuda_table();
bool has_warpgroup_kernels();   // whether the build has those for compute capability 9.0

}  // namespace stw::kernels
