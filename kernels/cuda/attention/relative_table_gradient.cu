// The gradient of the table of relative positions, on the CUDA cores, with the CPU's bits:
//
//   dKr = Σ dS·(scale·Q)   dQr = scale·Σ dS·K
//
// On the CPU, these are chains over blocks of keys and, within each, blocks of queries. So a block of threads
// has one head of one sample and takes all pairs of blocks in this order. It computes the scores again. Its
// sums lie in the scratch memory, (samples, heads, parts, table_rows, head_dim rounded up to 64); a second
// kernel adds them to the gradient, in the order of the samples.
#include "kernels/cuda/attention/attention_gradient.h"
#include "kernels/cuda/attention/relative_attention.h"
#include "kernels/cuda/attention/relative_tile.h"

namespace stw::kernels::cuda {

namespace {

constexpr int pair_rows = key_block;  // Queries of a pair of blocks.
constexpr int pair_distances = pair_rows + key_block, pair_sum_stride = pair_distances + 4,
              pair_tiles = pair_distances / tile_rows, pair_starts_count = pair_distances + 4;
// Sums by rows of the table lie where relative positions and scores were.
constexpr int pair_scratch_floats = relative_floats + tile_rows * score_stride;
static_assert(pair_rows * pair_sum_stride <= pair_scratch_floats);

// Shared memory: scratch, slices, dscores (pair_rows, score_stride), ranges of keys for each query and of
// queries for each key, starts of the table's rows.
constexpr size_t table_gradient_bytes = (pair_scratch_floats + slices_floats + pair_rows * score_stride +
                                         2 * (pair_rows + key_block) + pair_starts_count) *
                                        sizeof(float);

// The queries or keys (of_keys) that have any of the table's rows [row, row + 4) of the pair.
template <bool of_keys>
STW_DEVICE Range reach_of_rows(const TileDistances& t, int row) {
  if (row >= t.count) return {0, 0};
  const int low = t.starts[row], high = t.starts[least_of(row + 4, t.count)];
  if constexpr (of_keys) return {most_of(0, t.keys - high), least_of(t.keys, t.keys + t.queries - 1 - low)};
  return {most_of(0, low - t.keys + 1), least_of(t.queries, high)};
}

// sums (rows of the table, stride), from the pair's first row on, += weightsᵀ · columns. `weights`: (columns,
// pair_sum_stride). Called by all threads of the block.
template <bool of_keys>
STW_DEVICE void add_to_sums(const float* weights, const TileDistances& t, const SomeRows& columns,
                            int head_dim, float* slices, float* sums) {
  const int stride = static_cast<int>(round_up(head_dim, output_columns));
  for (int d = 0; d < head_dim; d += output_columns) {
    float* const own = sums + (t.first + micro_row()) * stride + d + micro_column();
    Micro sum[pair_tiles];
    STW_UNROLL
    for (int tile = 0; tile < pair_tiles; ++tile) STW_UNROLL
    for (int i = 0; i < 4; ++i) {
      float4 x = {0, 0, 0, 0};
      const int row = tile * tile_rows + i;
      if (micro_row() + row < t.count) x = load_four(own + row * stride);
      sum[tile].f[i][0] = x.x, sum[tile].f[i][1] = x.y, sum[tile].f[i][2] = x.z, sum[tile].f[i][3] = x.w;
    }
    for (int part = 0; part < columns.count; part += tile_slice) {
      __syncthreads();
      load_slice(columns, part, head_dim, d, slices);
      __syncthreads();
      STW_UNROLL
      for (int tile = 0; tile < pair_tiles; ++tile) {
        const int row = tile * tile_rows + micro_row();
        const Range reach = both(reach_of_rows<of_keys>(t, row), {part, part + tile_slice});
        for (int c = reach.begin; c < reach.end; ++c)
          multiply_outer(load_four(weights + c * pair_sum_stride + row),
                         load_four(slices + (c - part) * (output_columns + 4) + micro_column()), sum[tile]);
      }
    }
    STW_UNROLL
    for (int tile = 0; tile < pair_tiles; ++tile) STW_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int row = tile * tile_rows + i;
      if (micro_row() + row < t.count)
        store_vector(own + row * stride,
                     float4{sum[tile].f[i][0], sum[tile].f[i][1], sum[tile].f[i][2], sum[tile].f[i][3]});
    }
  }
}

// dS of a pair of blocks, and the keys that each query sees. Called by all threads of the block.
STW_DEVICE void differentiate_pair(const AttentionArgs& args, const GradientHead& h,
                                   const RelativeHead& positions, int64_t sample, int64_t query, int queries,
                                   const SomeRows& key_rows, float* scratch, float* slices, float* dscores,
                                   Range* key_ranges) {
  float* const scores = scratch + relative_floats;
  const int64_t key = key_rows.first;
  const int keys = key_rows.count;
  for (int from = 0; from < queries; from += tile_rows) {
    const int count = least_of(tile_rows, queries - from), r = static_cast<int>(threadIdx.x) / quad;
    store_scores(multiply_relative_rows<false>(positions, {h.queries, query + from, count, args.scale},
                                               key_rows, args.head_dim, slices, scratch),
                 scores);
    float* const d_tile = dscores + from * score_stride;
    store_scores(multiply_rows({h.douts, query + from, count, 1.0f}, {h.values, key, keys, 1.0f},
                               args.head_dim, slices),
                 d_tile);
    __syncthreads();
    const int64_t row = query + from + r;
    Range range = {0, 0};
    if (r < count)
      range = {clamp_to(first_key(h.rule, row) - key, keys), clamp_to(end_key(h.rule, row) - key, keys)};
    Dropout dropout = {};  // Here, because it would keep registers during the products.
    if (args.dropout > 0) dropout = dropout_of(args.dropout, args.stream, *args.state, sample);
    for (int k = range.begin / 16 * 16; k < range.end; k += 16) {
      F16 s = load(scores + r * score_stride + k), d = load(d_tile + r * score_stride + k);
      differentiate(
          args, h, dropout, row, key + k, h.lse[row], h.dots[row],
          [&](int lane) { return k + lane >= range.begin && k + lane < range.end; }, &s, &d);
      store(d_tile + r * score_stride + k, d);
    }
    if (first_lane() == 0) key_ranges[from + r] = range;
  }
}

// Floats that one access loads.
template <int count>
struct alignas(count * sizeof(float)) Numbers {
  float f[count];
};

}  // namespace

static __global__ void __launch_bounds__(tile_threads, relative_blocks)
    relative_table_gradient_kernel(AttentionArgs args, float* dots, float* sums) {
  STW_DYNAMIC_SHARED(float, scratch);
  float* slices = scratch + pair_scratch_floats;
  float* dscores = slices + slices_floats;
  Range* key_ranges = reinterpret_cast<Range*>(dscores + pair_rows * score_stride);  // For each query.
  Range* query_ranges = key_ranges + pair_rows;
  int* starts = reinterpret_cast<int*>(query_ranges + key_block);
  const int64_t rows = args.rows_per_sample, sample = blockIdx.x / args.query_heads,
                head = blockIdx.x % args.query_heads;
  const GradientHead h = gradient_head(args, dots, sample, head);
  const RelativeHead positions = relative_head(args, head);
  const bool has_keys = positions.keys.data != nullptr, has_queries = positions.queries.data != nullptr;
  const int64_t of_part = args.relative.table_rows * round_up(args.head_dim, output_columns),
                of_head = has_keys && has_queries ? 2 * of_part : of_part;
  float* const key_sums = sums + blockIdx.x * of_head;
  float* const query_sums = key_sums + (has_keys ? of_part : 0);
  clear_outputs(key_sums, of_head);

  for (int64_t key = 0; key < rows; key += key_block) {
    const int keys = static_cast<int>(min(static_cast<int64_t>(key_block), rows - key));
    const SomeRows key_rows = {h.keys, key, keys, 1.0f};
    const int64_t before = first_row(h.rule, key);
    for (int64_t query = before - before % pair_rows; query < rows; query += pair_rows) {
      if (first_key(h.rule, query) >= key + keys) break;  // Later rows see none of the keys.
      const int queries = static_cast<int>(min(static_cast<int64_t>(pair_rows), rows - query));
      differentiate_pair(args, h, positions, sample, query, queries, key_rows, scratch, slices, dscores,
                         key_ranges);
      if (static_cast<int>(threadIdx.x) < keys) {
        const int64_t k = key + static_cast<int>(threadIdx.x);
        query_ranges[threadIdx.x] = {clamp_to(first_row(h.rule, k) - query, queries),
                                     clamp_to(end_key(h.rule, k) - query, queries)};
      }
      const TileDistances distances = tile_distances_of(positions, query, queries, key, keys, starts);
      __syncthreads();
      if (has_keys) {
        for (int task = static_cast<int>(threadIdx.x); task < queries * pair_distances;
             task += tile_threads) {
          const int q = task / pair_distances, t = task % pair_distances;
          if (t < distances.count)
            scratch[q * pair_sum_stride + t] =
                sum_of(dscores + q * score_stride, 1, both(key_ranges[q], keys_of_row(distances, q, t)));
        }
        add_to_sums<false>(scratch, distances, {h.queries, query, queries, args.scale}, args.head_dim, slices,
                           key_sums);
        __syncthreads();
      }
      if (has_queries) {
        for (int task = static_cast<int>(threadIdx.x); task < keys * pair_distances; task += tile_threads) {
          const int k = task / pair_distances, t = task % pair_distances;
          if (t < distances.count)
            scratch[k * pair_sum_stride + t] =
                sum_of(dscores + k, score_stride, both(query_ranges[k], queries_of_row(distances, k, t)));
        }
        add_to_sums<true>(scratch, distances, key_rows, args.head_dim, slices, query_sums);
      }
    }
  }
}

// A block adds the samples' sums for a row of the table, `at_once` elements a thread.
template <int at_once>
static __global__ void __launch_bounds__(block_threads)
    relative_sums_kernel(AttentionArgs args, const float* sums, int copies, float key_factor) {
  const RelativePositions& r = args.relative;
  const int head_dim = args.head_dim, of_heads = args.query_heads * head_dim,
            parts = r.has_keys && r.has_queries ? 2 : 1,
            stride = static_cast<int>(round_up(head_dim, output_columns));
  const int64_t of_part = r.table_rows * stride, of_sample = args.query_heads * parts * copies * of_part;
  float* const gradient = r.gradient + static_cast<int64_t>(blockIdx.x) * parts * of_heads;
  const int step = static_cast<int>(blockDim.x) * at_once;
  for (int i = static_cast<int>(threadIdx.x) * at_once; i < parts * of_heads; i += step) {
    const int part = i / of_heads, head = (i - part * of_heads) / head_dim, column = i % head_dim;
    const float factor = part == 1 || !r.has_keys ? args.scale : key_factor;
    const float* from =
        sums + (head * parts + part) * copies * of_part + static_cast<int64_t>(blockIdx.x) * stride + column;
    Numbers<at_once> sum = {};
    if (r.accumulate) sum = load_vector<Numbers<at_once>>(gradient + i);
    for (int64_t sample = 0; sample < args.samples; ++sample, from += of_sample) {
      auto of_copies = load_vector<Numbers<at_once>>(from);
      for (int copy = 1; copy < copies; ++copy) {
        const auto x = load_vector<Numbers<at_once>>(from + copy * of_part);
        STW_UNROLL
        for (int k = 0; k < at_once; ++k) of_copies.f[k] = of_copies.f[k] + x.f[k];
      }
      STW_UNROLL
      for (int k = 0; k < at_once; ++k) sum.f[k] = sum.f[k] + factor * of_copies.f[k];
    }
    store_vector(gradient + i, sum);
  }
}

void add_relative_sums(const Launch& l, const AttentionArgs& args, const float* sums, int copies,
                       float key_factor) {
  const bool in_fours =
      args.head_dim % 4 == 0 && reinterpret_cast<uintptr_t>(args.relative.gradient) % 16 == 0;
  const int64_t of_row = int64_t{args.query_heads} * args.head_dim *
                         (args.relative.has_keys && args.relative.has_queries ? 2 : 1) / (in_fours ? 4 : 1);
  const int threads = of_row < block_threads ? static_cast<int>(round_up(of_row, 32)) : block_threads;
  launch(l, in_fours ? relative_sums_kernel<4> : relative_sums_kernel<1>,
         static_cast<unsigned>(args.relative.table_rows), threads, 0, args, sums, copies, key_factor);
}

void relative_table_gradient(const Launch& l, const AttentionArgs& args, float* dots, float* sums) {
  launch(l, relative_table_gradient_kernel, static_cast<unsigned>(args.samples * args.query_heads),
         tile_threads, table_gradient_bytes, args, dots, sums);
  add_relative_sums(l, args, sums, 1, 1.0f);
}

}  // namespace stw::kernels::cuda
