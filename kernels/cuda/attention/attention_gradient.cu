// The gradient of attention on the CUDA cores, with the CPU's bits. It computes the probabilities again from
// the log-sum-exponentials of the forward pass:
//
//   P = exp(scale·Q·Kᵀ - lse)   D = rowsum(dout ∘ out)   dV = (P∘F)ᵀ·dout   dS = P ∘ (F ∘ (dout·Vᵀ) - D)
//   dQ = scale·dS·K             dK = dSᵀ·(scale·Q)
//
// F holds the factors of dropout (Dao et al., 2022, appendix B).
//
// On the CPU, every element of dQ, dK and dV is one chain: dQ over the keys that its row sees, dK and dV over
// the query heads of the group and, within each, over the queries that see the key. To keep these orders
// without atomics, two kernels each compute the scores: one takes tiles of queries, the other tiles of keys.
// This takes 7 products instead of 5, but no order depends on timing. The kernel of queries runs first; it
// computes D of its rows and stores it for the kernel of keys.
//
// Workspace: D (samples, query_heads, rows_per_sample), like lse, and log2(e)·lse in the same shape, which
// the tensor-core kernels need; or the library's scratch memory (attention_library.h).
#include "kernels/cuda/attention/attention_gradient.h"
#include "kernels/cuda/attention/library_attention.h"
#include "kernels/cuda/attention/relative_attention.h"
#include "kernels/cuda/attention/tensor_attention.h"
#include "kernels/cuda/attention/warpgroup_attention.h"

namespace stw::kernels::cuda {

// Shared memory: slices, scores and dscores (tile_rows, score_stride), ranges (tile_rows), outputs.
inline size_t query_gradient_shared_bytes(int head_dim) {
  return static_cast<size_t>(slices_floats + tile_rows * (2 * score_stride + 2) + outputs_floats(head_dim)) *
         4;
}

static __global__ void __launch_bounds__(tile_threads)
    attention_query_gradient_kernel(AttentionArgs args, float* dots) {
  STW_DYNAMIC_SHARED(float, memory);
  float* slices = memory;
  float* scores = slices + slices_floats;
  float* dscores = scores + tile_rows * score_stride;
  Range* ranges = reinterpret_cast<Range*>(dscores + tile_rows * score_stride);
  float* outputs = dscores + tile_rows * (score_stride + 2);
  const int64_t rows = args.rows_per_sample, heads = args.samples * args.query_heads,
                tiles = ceil_div(rows, tile_rows);
  const int64_t sample = blockIdx.x % heads / args.query_heads,
                first = (tiles - 1 - blockIdx.x / heads) * tile_rows;
  const GradientHead h = gradient_head(args, dots, sample, blockIdx.x % args.query_heads);
  const int64_t stride = round_up(args.head_dim, output_columns);
  clear_outputs(outputs, tile_rows * stride);

  const int r = static_cast<int>(threadIdx.x) / quad;  // The row of this quad.
  const int64_t row = first + r, end = min(first + tile_rows, rows), before = first_key(h.rule, first),
                last = end_key(h.rule, end - 1);
  const int queries = static_cast<int>(end - first);
  int64_t row_start = 0, row_end = 0;
  float lse = 0, dot = 0;
  if (row < rows) {
    row_start = first_key(h.rule, row);
    row_end = end_key(h.rule, row);
    lse = h.lse[row];
    dot = row_dot(h, row, args.head_dim);
    if (first_lane() == 0) h.dots[row] = dot;
  }
  for (int64_t key = before - before % key_block; key < last; key += key_block) {
    const int keys = static_cast<int>(min(static_cast<int64_t>(key_block), last - key));
    store_scores(multiply_rows({h.queries, first, queries, args.scale}, {h.keys, key, keys, 1.0f},
                               args.head_dim, slices),
                 scores);
    store_scores(
        multiply_rows({h.douts, first, queries, 1.0f}, {h.values, key, keys, 1.0f}, args.head_dim, slices),
        dscores);
    __syncthreads();
    const Range range = {clamp_to(row_start - key, keys), clamp_to(row_end - key, keys)};
    Dropout dropout = {};  // Here, because it would keep registers during the products.
    if (args.dropout > 0) dropout = dropout_of(args.dropout, args.stream, *args.state, sample);
    for (int k = range.begin / 16 * 16; k < range.end; k += 16) {
      F16 s = load(scores + r * score_stride + k), d = load(dscores + r * score_stride + k);
      differentiate(
          args, h, dropout, row, key + k, lse, dot,
          [&](int lane) { return k + lane >= range.begin && k + lane < range.end; }, &s, &d);
      store(dscores + r * score_stride + k, d);
    }
    if (first_lane() == 0) ranges[r] = range;
    const bool all = !__syncthreads_or(range.begin > 0 || range.end < key_block);
    multiply_columns<false>(dscores, ranges, all, nullptr, {h.keys, key, keys, 1.0f}, args.head_dim, slices,
                            outputs);
  }
  __syncthreads();
  if (row < rows)
    store_output_row(outputs + r * stride, args.scale, args.head_dim, args.dqkv,
                     h.queries.at + row * h.queries.stride);
}

// Shared memory: slices, scores and dscores (key_block, transposed_score_stride), ranges (tile_rows), seen
// (key_block), outputs of keys and of values. The columns are 64 queries.
inline size_t key_gradient_shared_bytes(int head_dim) {
  return static_cast<size_t>(slices_floats + 2 * key_block * transposed_score_stride +
                             2 * (tile_rows + key_block) + 2 * outputs_floats(head_dim)) *
         4;
}

static __global__ void __launch_bounds__(tile_threads)
    attention_key_gradient_kernel(AttentionArgs args, float* dots) {
  STW_DYNAMIC_SHARED(float, memory);
  float* slices = memory;
  float* scores = slices + slices_floats;
  float* dscores = scores + key_block * transposed_score_stride;
  Range* ranges = reinterpret_cast<Range*>(dscores + key_block * transposed_score_stride);
  // Range of keys that each query sees, counted from the tile's first key.
  Range* seen_keys = ranges + tile_rows;
  float* dkeys = reinterpret_cast<float*>(seen_keys + key_block);
  const int64_t stride = round_up(args.head_dim, output_columns);
  float* dvalues = dkeys + tile_rows * stride;
  const int64_t rows = args.rows_per_sample, heads = args.samples * args.kv_heads,
                group = args.query_heads / args.kv_heads;
  const int64_t sample = blockIdx.x % heads / args.kv_heads, kv_head = blockIdx.x % args.kv_heads,
                key = blockIdx.x / heads * tile_rows;
  const int keys = static_cast<int>(min(static_cast<int64_t>(tile_rows), rows - key));
  Dropout dropout = {};
  if (args.dropout > 0) dropout = dropout_of(args.dropout, args.stream, *args.state, sample);
  clear_outputs(dkeys, 2 * tile_rows * stride);

  for (int64_t member = 0; member < group; ++member) {
    const GradientHead h = gradient_head(args, dots, sample, kv_head * group + member);
    for (int64_t query = first_row(h.rule, key); query < rows; query += key_block) {
      if (first_key(h.rule, query) >= key + keys) break;  // Later rows see none of the keys.
      const int queries = static_cast<int>(min(static_cast<int64_t>(key_block), rows - query));
      const SomeRows query_rows = {h.queries, query, queries, args.scale},
                     dout_rows = {h.douts, query, queries, 1.0f};
      store_scores_transposed(multiply_rows({h.keys, key, keys, 1.0f}, query_rows, args.head_dim, slices),
                              scores);
      store_scores_transposed(multiply_rows({h.values, key, keys, 1.0f}, dout_rows, args.head_dim, slices),
                              dscores);
      for (int i = static_cast<int>(threadIdx.x); i < queries; i += tile_threads)
        seen_keys[i] = {static_cast<int>(first_key(h.rule, query + i) - key),
                        static_cast<int>(end_key(h.rule, query + i) - key)};
      __syncthreads();
      Range range = {0, key_block};
      if (static_cast<int>(threadIdx.x) < tile_rows) {
        const int k = static_cast<int>(threadIdx.x);
        if (k < keys) range = {clamp_to(first_row(h.rule, key + k) - query, queries), queries};
        else range.end = 0;
        while (range.end > range.begin && seen_keys[range.end - 1].begin > k) --range.end;
        ranges[k] = range;
      }
      for (int task = static_cast<int>(threadIdx.x) / quad; task < queries * (tile_rows / 16);
           task += tile_threads / quad) {
        const int q = task / (tile_rows / 16), k = task % (tile_rows / 16) * 16;
        float* at = scores + q * transposed_score_stride + k;
        float* dat = dscores + q * transposed_score_stride + k;
        F16 s = load(at), d = load(dat);
        const auto seen = [&](int lane) {
          return k + lane < keys && k + lane >= seen_keys[q].begin && k + lane < seen_keys[q].end;
        };
        differentiate(args, h, dropout, query + q, key + k, h.lse[query + q], h.dots[query + q], seen, &s,
                      &d);
        store(at, s);
        store(dat, d);
      }
      const bool all = !__syncthreads_or(range.begin > 0 || range.end < key_block);
      multiply_columns<true>(scores, ranges, all, nullptr, dout_rows, args.head_dim, slices, dvalues);
      multiply_columns<true>(dscores, ranges, all, nullptr, query_rows, args.head_dim, slices, dkeys);
    }
  }
  __syncthreads();
  const GradientHead h = gradient_head(args, dots, sample, kv_head * group);
  const int k = static_cast<int>(threadIdx.x) / quad;
  if (k >= keys) return;
  store_output_row(dkeys + k * stride, 1.0f, args.head_dim, args.dqkv, h.keys.at + (key + k) * h.keys.stride);
  store_output_row(dvalues + k * stride, 1.0f, args.head_dim, args.dqkv,
                   h.values.at + (key + k) * h.values.stride);
}

void attention_gradient(const Launch& l, const AttentionArgs& args) {
  STW_ASSERT_WORKSPACE(attention_gradient);
  assert(is_valid_score_rule(args));
  if (has_relative(args)) return relative_attention_gradient(l, args);
  if (library_takes(l, args, true)) return library_attention_gradient(l, args);
  auto* dots = static_cast<float*>(l.workspace);
  const QueryStatistics statistics = {dots + args.samples * args.query_heads * args.rows_per_sample, dots};
  if (warpgroups_take_gradient(args)) return warpgroup_attention_gradient(l, args, statistics);
  if (tensor_cores_take_gradient(args)) return tensor_attention_gradient(l, args, statistics);
  const int64_t tiles = args.samples * ceil_div(args.rows_per_sample, tile_rows);
  launch(l, attention_query_gradient_kernel, static_cast<unsigned>(tiles * args.query_heads), tile_threads,
         query_gradient_shared_bytes(args.head_dim), args, dots);
  launch(l, attention_key_gradient_kernel, static_cast<unsigned>(tiles * args.kv_heads), tile_threads,
         key_gradient_shared_bytes(args.head_dim), args, dots);
}

}  // namespace stw::kernels::cuda
