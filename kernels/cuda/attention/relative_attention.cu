// Attention with relative positions and the gradients of its queries, keys and values, on the CUDA cores,
// with the CPU's bits. The kernels are those of attention.cu and attention_gradient.cu, with the biases in
// the scores, and with a product with the table's rows after each block:
//
//   dQ += scale·dS·Kr   dK += dSᵀ·(scale·Qr)
//
// Workspace of the gradient: as in attention_gradient.cu; then, if the table is trained, its sums
// (relative_table_gradient.cu).
#include "kernels/cuda/attention/relative_attention.h"

#include "kernels/contract/cuda_workspace.h"
#include "kernels/cuda/attention/attention_forward.h"
#include "kernels/cuda/attention/attention_gradient.h"
#include "kernels/cuda/attention/relative_tile.h"

namespace stw::kernels::cuda {

static __global__ void __launch_bounds__(tile_threads, relative_blocks)
    relative_attention_kernel(AttentionArgs args) {
  STW_DYNAMIC_SHARED(float, memory);
  const HeadAttention h = head_of_tile(args);
  const RelativeHead relative = relative_head(args, blockIdx.x % args.query_heads);
  attend_tile(h, first_of_tile(args), memory + relative_floats,
              [&](const SomeRows& queries, const SomeRows& keys, float* slices) {
                return multiply_relative_rows<false>(relative, queries, keys, args.head_dim, slices, memory);
              });
}

void relative_attention(const Launch& l, const AttentionArgs& args) {
  const int64_t blocks = args.samples * args.query_heads * ceil_div(args.rows_per_sample, tile_rows);
  launch(l, relative_attention_kernel, static_cast<unsigned>(blocks), tile_threads,
         forward_shared_bytes(args.head_dim) + relative_floats * sizeof(float), args);
}

// Shared memory: relative positions, slices, scores and dscores (tile_rows, score_stride), ranges
// (tile_rows), starts of the table's rows, outputs.
inline size_t relative_query_bytes(int head_dim) {
  return static_cast<size_t>(relative_floats + slices_floats + tile_rows * (2 * score_stride + 2) +
                             row_starts_count + outputs_floats(head_dim)) *
         4;
}

static __global__ void __launch_bounds__(tile_threads, relative_blocks)
    relative_query_gradient_kernel(AttentionArgs args, float* dots) {
  STW_DYNAMIC_SHARED(float, relative);
  float* slices = relative + relative_floats;
  float* scores = slices + slices_floats;
  float* dscores = scores + tile_rows * score_stride;
  Range* ranges = reinterpret_cast<Range*>(dscores + tile_rows * score_stride);
  int* starts = reinterpret_cast<int*>(ranges + tile_rows);
  float* outputs = dscores + tile_rows * (score_stride + 2) + row_starts_count;
  const int64_t rows = args.rows_per_sample, heads = args.samples * args.query_heads;
  const int64_t sample = blockIdx.x % heads / args.query_heads, first = blockIdx.x / heads * tile_rows;
  const GradientHead h = gradient_head(args, dots, sample, blockIdx.x % args.query_heads);
  const RelativeHead positions = relative_head(args, blockIdx.x % args.query_heads);
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
    const SomeRows query_rows = {h.queries, first, queries, args.scale}, key_rows = {h.keys, key, keys, 1.0f};
    store_scores(
        multiply_relative_rows<false>(positions, query_rows, key_rows, args.head_dim, slices, relative),
        scores);
    store_scores(
        multiply_rows({h.douts, first, queries, 1.0f}, {h.values, key, keys, 1.0f}, args.head_dim, slices),
        dscores);
    const TileDistances distances = tile_distances_of(positions, first, queries, key, keys, starts);
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
    if (positions.keys.data != nullptr)
      for (int task = static_cast<int>(threadIdx.x); task < tile_rows * distances.count;
           task += tile_threads) {
        const int q = task / distances.count, t = task % distances.count;
        relative[q * row_sum_stride + t] =
            sum_of(dscores + q * score_stride, 1, both(ranges[q], keys_of_row(distances, q, t)));
      }
    multiply_columns<false>(dscores, ranges, all, nullptr, key_rows, args.head_dim, slices, outputs);
    if (positions.keys.data != nullptr)
      multiply_table_rows<false>(
          relative, rows_of_numbers(positions, distances, micro_row(), micro_row() + 3 + keys),
          {positions.keys, distances.first, distances.count, 1.0f}, args.head_dim, slices, outputs);
  }
  __syncthreads();
  if (row < rows)
    store_output_row(outputs + r * stride, args.scale, args.head_dim, args.dqkv,
                     h.queries.at + row * h.queries.stride);
}

// Shared memory: relative positions, slices, scores and dscores (key_block, transposed_score_stride), ranges
// (tile_rows), seen (key_block), starts of the table's rows, outputs of keys and of values.
inline size_t relative_key_bytes(int head_dim) {
  return static_cast<size_t>(relative_floats + slices_floats + 2 * key_block * transposed_score_stride +
                             2 * (tile_rows + key_block) + row_starts_count + 2 * outputs_floats(head_dim)) *
         4;
}

static_assert(cuda_workspace::most_relative_head == 128);  // Then this is 89 KB, the most of these kernels.

// The first threads store which of `queries` queries see a tile's keys; each gets its key's. Of each query,
// `seen` has the keys that it sees, counted from the tile's first.
STW_DEVICE Range store_query_range(const ScoreRule& rule, int64_t key, int keys, int64_t query, int queries,
                                   const Range* seen, Range* ranges) {
  Range range = {0, key_block};
  const int k = static_cast<int>(threadIdx.x);
  if (k >= tile_rows) return range;
  if (k < keys) range = {clamp_to(first_row(rule, key + k) - query, queries), queries};
  else range.end = 0;
  while (range.end > range.begin && seen[range.end - 1].begin > k) --range.end;
  ranges[k] = range;
  return range;
}

// The columns are blocks of 64 queries counted from the first query of the sample, as on the CPU.
static __global__ void __launch_bounds__(tile_threads, relative_blocks)
    relative_key_gradient_kernel(AttentionArgs args, float* dots) {
  STW_DYNAMIC_SHARED(float, relative);
  float* slices = relative + relative_floats;
  float* scores = slices + slices_floats;
  float* dscores = scores + key_block * transposed_score_stride;
  Range* ranges = reinterpret_cast<Range*>(dscores + key_block * transposed_score_stride);
  // Range of keys that each query sees, counted from the tile's first key.
  Range* seen_keys = ranges + tile_rows;
  int* starts = reinterpret_cast<int*>(seen_keys + key_block);
  float* dkeys = reinterpret_cast<float*>(starts + row_starts_count);
  const int64_t stride = round_up(args.head_dim, output_columns);
  float* dvalues = dkeys + tile_rows * stride;
  const int64_t rows = args.rows_per_sample, heads = args.samples * args.query_heads;
  const int64_t sample = blockIdx.x % heads / args.query_heads, head = blockIdx.x % args.query_heads,
                key = blockIdx.x / heads * tile_rows;
  const int keys = static_cast<int>(min(static_cast<int64_t>(tile_rows), rows - key));
  const GradientHead h = gradient_head(args, dots, sample, head);
  const RelativeHead positions = relative_head(args, head);
  Dropout dropout = {};
  if (args.dropout > 0) dropout = dropout_of(args.dropout, args.stream, *args.state, sample);
  clear_outputs(dkeys, 2 * tile_rows * stride);

  const int64_t before = first_row(h.rule, key);
  for (int64_t query = before - before % key_block; query < rows; query += key_block) {
    if (first_key(h.rule, query) >= key + keys) break;  // Later rows see none of the keys.
    const int queries = static_cast<int>(min(static_cast<int64_t>(key_block), rows - query));
    const SomeRows query_rows = {h.queries, query, queries, args.scale},
                   dout_rows = {h.douts, query, queries, 1.0f};
    store_scores_transposed(multiply_relative_rows<true>(positions, {h.keys, key, keys, 1.0f}, query_rows,
                                                         args.head_dim, slices, relative),
                            scores);
    store_scores_transposed(multiply_rows({h.values, key, keys, 1.0f}, dout_rows, args.head_dim, slices),
                            dscores);
    for (int i = static_cast<int>(threadIdx.x); i < queries; i += tile_threads)
      seen_keys[i] = {static_cast<int>(first_key(h.rule, query + i) - key),
                      static_cast<int>(end_key(h.rule, query + i) - key)};
    const TileDistances distances = tile_distances_of(positions, query, queries, key, keys, starts);
    __syncthreads();
    const Range range = store_query_range(h.rule, key, keys, query, queries, seen_keys, ranges);
    for (int task = static_cast<int>(threadIdx.x) / quad; task < queries * (tile_rows / 16);
         task += tile_threads / quad) {
      const int q = task / (tile_rows / 16), k = task % (tile_rows / 16) * 16;
      float* at = scores + q * transposed_score_stride + k;
      float* dat = dscores + q * transposed_score_stride + k;
      F16 s = load(at), d = load(dat);
      const auto seen = [&](int lane) {
        return k + lane < keys && k + lane >= seen_keys[q].begin && k + lane < seen_keys[q].end;
      };
      differentiate(args, h, dropout, query + q, key + k, h.lse[query + q], h.dots[query + q], seen, &s, &d);
      store(at, s);
      store(dat, d);
    }
    const bool all = !__syncthreads_or(range.begin > 0 || range.end < key_block);
    if (positions.queries.data != nullptr)
      for (int task = static_cast<int>(threadIdx.x); task < tile_rows * distances.count;
           task += tile_threads) {
        const int t = task / tile_rows, k = task % tile_rows;
        relative[t * transposed_score_stride + k] =
            k < keys ? sum_of(dscores + k, transposed_score_stride,
                              both(ranges[k], queries_of_row(distances, k, t)))
                     : 0.0f;
      }
    multiply_columns<true>(scores, ranges, all, nullptr, dout_rows, args.head_dim, slices, dvalues);
    multiply_columns<true>(dscores, ranges, all, nullptr, query_rows, args.head_dim, slices, dkeys);
    if (positions.queries.data != nullptr)
      multiply_table_rows<true>(
          relative,
          rows_of_numbers(positions, distances, keys - 4 - micro_row(), queries + keys - 1 - micro_row()),
          {positions.queries, distances.first, distances.count, args.scale}, args.head_dim, slices, dkeys);
  }
  __syncthreads();
  const int k = static_cast<int>(threadIdx.x) / quad;
  if (k >= keys) return;
  store_output_row(dkeys + k * stride, 1.0f, args.head_dim, args.dqkv, h.keys.at + (key + k) * h.keys.stride);
  store_output_row(dvalues + k * stride, 1.0f, args.head_dim, args.dqkv,
                   h.values.at + (key + k) * h.values.stride);
}

void relative_attention_gradient(const Launch& l, const AttentionArgs& args) {
  const int64_t rows = args.samples * args.query_heads * args.rows_per_sample;
  auto* dots = static_cast<float*>(l.workspace);
  float* const sums = dots + round_up(2 * rows, relative_sums_alignment);
  if (tensor_cores_take_relative(args) && tensor_cores_take_gradient(args))
    return tensor_relative_gradient(l, args, {dots + rows, dots}, sums);
  const auto blocks =
      static_cast<unsigned>(args.samples * args.query_heads * ceil_div(args.rows_per_sample, tile_rows));
  launch(l, relative_query_gradient_kernel, blocks, tile_threads, relative_query_bytes(args.head_dim), args,
         dots);
  launch(l, relative_key_gradient_kernel, blocks, tile_threads, relative_key_bytes(args.head_dim), args,
         dots);
  if (args.relative.gradient != nullptr) relative_table_gradient(l, args, dots, sums);
}

}  // namespace stw::kernels::cuda
