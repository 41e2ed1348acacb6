// The building blocks of attention with relative positions (RelativePositions) on the CUDA cores. A tile of
// 32 rows and 64 columns of scores has 95 distances between a query and a key.
//
// The scores: a thread's 4 × 4 elements have 7 distances. So the table's rows lie in shared memory in the
// order of the distances, and the biases of 16 elements take four more reads of 16 bytes a step. No tensor of
// biases exists, not even in shared memory.
//
// The gradient: the scores' gradients of a query whose keys share a row of the table are added up first, in
// the order of the keys; so are those of a key, in the order of the queries. A product with the table's rows
// follows. The order of all additions is the CPU's (kernels/cpu/attention/relative.h). There, blocks reach
// more rows of the table: rows whose sums are 0, which change nothing.
#pragma once
#include "kernels/cuda/attention/attention_tile.h"

namespace stw::kernels::cuda {

inline constexpr int relative_blocks = 3;                     // Of threads, for a multiprocessor.
inline constexpr int tile_distances = tile_rows + key_block;  // One more than there are.
inline constexpr int distance_stride = tile_distances + 4;
inline constexpr int distance_slice_floats = tile_slice * distance_stride;
// Scratch memory in shared memory: a slice of the table's keys and one of its queries. After the scores, sums
// by rows of the table; and where each row of the table begins among the distances of a tile.
inline constexpr int row_sum_stride = tile_distances + 4;
inline constexpr int relative_floats = 2 * distance_slice_floats, row_starts_count = tile_distances + 4;
static_assert(tile_rows * row_sum_stride <= relative_floats &&
              tile_distances * transposed_score_stride <= relative_floats);

// The table's rows of one head.
struct RelativeHead {
  HeadRows keys, queries;  // Null data: the table has no such part.
  const int32_t* row_at;   // The row for distance 0; negative indices are valid.
  int64_t rows;            // Distances are smaller.
  float scale;
};
STW_DEVICE RelativeHead relative_head(const AttentionArgs& args, int64_t head) {
  const RelativePositions& r = args.relative;
  const int64_t of_heads = static_cast<int64_t>(args.query_heads) * args.head_dim,
                width = of_heads * (r.has_keys && r.has_queries ? 2 : 1), at = head * args.head_dim;
  return {{r.has_keys ? r.table.data : nullptr, r.table.dtype, at, width},
          {r.has_queries ? r.table.data : nullptr, r.table.dtype, at + (r.has_keys ? of_heads : 0), width},
          r.rows + args.rows_per_sample - 1,
          args.rows_per_sample,
          args.scale};
}

// ---- scores
// Loads elements [d, d + tile_slice) of the table's rows for the distances from `distance` on, and transposes
// them: element (distance + i, d + e) goes to to[e·distance_stride + i].
STW_DEVICE void load_distances(const RelativeHead& h, const HeadRows& table, float factor, int64_t distance,
                               int head_dim, int d, float* to) {
  constexpr int tasks = tile_distances * (tile_slice / 16), quads = tile_threads / quad;
  for (int task = static_cast<int>(threadIdx.x) / quad; task < tasks; task += quads) {
    const int i = task % tile_distances, element = task / tile_distances * 16;
    if (d + element >= head_dim) continue;
    F16 x = zero();
    if (distance + i > -h.rows && distance + i < h.rows)
      x = mul(
          load_group(table.data, table.dtype, table.at + h.row_at[distance + i] * table.stride + d + element,
                     head_dim - d - element),
          splat(factor));
    for (int k = 0; k < 4; ++k) to[(element + first_lane() + k) * distance_stride + i] = x.f[k];
  }
}
// sum(i, j) += x(i or j) · the table's element for the distance of row i and column j. `at`: its elements for
// the distances around that of row 0 and column 0, which is number 4.
template <bool of_keys, bool by_rows>
STW_DEVICE void multiply_distances(const float4& x, const float* at, Micro& sum) {
  const float4 low = load_four(at), high = load_four(at + 4);
  const float a[4] = {x.x, x.y, x.z, x.w},
              t[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  STW_UNROLL
  for (int i = 0; i < 4; ++i) STW_UNROLL
  for (int j = 0; j < 4; ++j)
    sum.f[i][j] = fma1(a[by_rows ? i : j], t[4 + (of_keys ? j - i : i - j)], sum.f[i][j]);
}
// multiply_rows with the biases of relative positions. Rows are queries and columns are keys, or the reverse
// (of_keys); queries have the factor `scale`.
template <bool of_keys>
STW_DEVICE Micro multiply_relative_rows(const RelativeHead& h, const SomeRows& rows, const SomeRows& columns,
                                        int head_dim, float* slices, float* relative) {
  Micro sum = {}, by_query = {}, by_key = {};
  float* row_slice = slices;
  float* column_slice = slices + row_slice_floats;
  float* key_slice = relative;
  float* query_slice = relative + distance_slice_floats;
  const bool has_keys = h.keys.data != nullptr, has_queries = h.queries.data != nullptr;
  // Distance number 0, and the thread's first one.
  const int64_t distance =
      of_keys ? columns.first - rows.first - tile_rows : rows.first - columns.first - key_block;
  const int at =
      of_keys ? micro_column() - micro_row() + tile_rows - 4 : micro_row() - micro_column() + key_block - 4;
  for (int d = 0; d < head_dim; d += tile_slice) {
    __syncthreads();
    load_slice_transposed<tile_rows>(rows, head_dim, d, row_slice);
    load_slice_transposed<key_block>(columns, head_dim, d, column_slice);
    if (has_keys) load_distances(h, h.keys, 1.0f, distance, head_dim, d, key_slice);
    if (has_queries) load_distances(h, h.queries, h.scale, distance, head_dim, d, query_slice);
    __syncthreads();
    const int depth = head_dim - d < tile_slice ? head_dim - d : tile_slice;
    for (int e = 0; e < depth; ++e) {
      const float4 row = load_four(row_slice + e * (tile_rows + 4) + micro_row()),
                   column = load_four(column_slice + e * (key_block + 4) + micro_column());
      multiply_outer(row, column, sum);
      if (has_keys)
        multiply_distances<of_keys, !of_keys>(of_keys ? column : row, key_slice + e * distance_stride + at,
                                              by_query);
      if (has_queries)
        multiply_distances<of_keys, of_keys>(of_keys ? row : column, query_slice + e * distance_stride + at,
                                             by_key);
    }
  }
  STW_UNROLL
  for (int i = 0; i < 4; ++i) STW_UNROLL
  for (int j = 0; j < 4; ++j) {
    const float bias = has_keys && has_queries ? by_query.f[i][j] + by_key.f[i][j]
                       : has_keys              ? by_query.f[i][j]
                                               : by_key.f[i][j];
    sum.f[i][j] = sum.f[i][j] + bias;
  }
  return sum;
}

// ---- sums by rows of the table
// The distances of a block of queries and a block of keys, and the rows of the table that they have. Distance
// number n is least + n; query q and key k of the blocks have number q - k + keys - 1.
struct TileDistances {
  int64_t least;
  int queries, keys;
  int64_t first;      // Row of the table.
  int count;          // Rows of the table.
  const int* starts;  // The first number of each row; at last, one more than the last number.
};
// Called by all threads of the block. `starts` may be read after the next barrier.
STW_DEVICE TileDistances tile_distances_of(const RelativeHead& h, int64_t query, int queries, int64_t key,
                                           int keys, int* starts) {
  TileDistances t;
  t.least = query - (key + keys - 1);
  t.queries = queries, t.keys = keys;
  const int numbers = queries + keys - 1;
  t.first = h.row_at[t.least];
  t.count = static_cast<int>(h.row_at[t.least + numbers - 1] - t.first) + 1;
  t.starts = starts;
  for (int n = static_cast<int>(threadIdx.x); n < numbers; n += tile_threads) {
    const int32_t row = h.row_at[t.least + n];
    if (n == 0 || h.row_at[t.least + n - 1] != row) starts[row - t.first] = n;
  }
  if (threadIdx.x == 0) starts[t.count] = numbers;
  return t;
}
STW_DEVICE int least_of(int a, int b) { return a < b ? a : b; }
STW_DEVICE int most_of(int a, int b) { return a > b ? a : b; }
// The keys with row `row` of the table for query q, and the queries with it for key k.
STW_DEVICE Range keys_of_row(const TileDistances& t, int q, int row) {
  return {most_of(0, q + t.keys - t.starts[row + 1]), least_of(t.keys, q + t.keys - t.starts[row])};
}
STW_DEVICE Range queries_of_row(const TileDistances& t, int k, int row) {
  const int before = k - t.keys + 1;
  return {most_of(0, t.starts[row] + before), least_of(t.queries, t.starts[row + 1] + before)};
}
STW_DEVICE Range both(const Range& a, const Range& b) {
  return {most_of(a.begin, b.begin), least_of(a.end, b.end)};
}
// The sum of the elements in `range` of a column, in order from +0.
STW_DEVICE float sum_of(const float* from, int stride, const Range& range) {
  float sum = 0;
  for (int i = range.begin; i < range.end; ++i) sum = sum + from[i * stride];
  return sum;
}
// Rows of the table for the distances with numbers [begin, end).
STW_DEVICE Range rows_of_numbers(const RelativeHead& h, const TileDistances& t, int begin, int end) {
  const int last = t.queries + t.keys - 2;
  begin = least_of(most_of(begin, 0), last), end = most_of(least_of(end - 1, last), 0);
  return {static_cast<int>(h.row_at[t.least + begin] - t.first),
          static_cast<int>(h.row_at[t.least + end] - t.first) + 1};
}

// outputs (tile_rows, round_up(head_dim, 64)) += sums · rows of the table. `table`: rows [first, first +
// count). The sums of this thread's rows are 0 outside of `own`. Sums are (tile_rows, row_sum_stride), or
// (table rows, transposed_score_stride) if `transposed`. Called by all threads of the block.
template <bool transposed>
STW_DEVICE void multiply_table_rows(const float* sums, const Range& own, const SomeRows& table, int head_dim,
                                    float* slices, float* outputs) {
  const int stride = static_cast<int>(round_up(head_dim, output_columns));
  for (int d = 0; d < head_dim; d += output_columns) {
    float* out = outputs + micro_row() * stride + d + micro_column();
    Micro sum;
    STW_UNROLL
    for (int i = 0; i < 4; ++i) {
      const float4 o = load_four(out + i * stride);
      sum.f[i][0] = o.x, sum.f[i][1] = o.y, sum.f[i][2] = o.z, sum.f[i][3] = o.w;
    }
    for (int part = 0; part < table.count; part += tile_slice) {
      __syncthreads();
      load_slice(table, part, head_dim, d, slices);
      __syncthreads();
      const int begin = most_of(part, own.begin), end = least_of(part + tile_slice, own.end);
      if (d + micro_column() >= head_dim) continue;
      for (int t = begin; t < end; ++t) {
        float4 w;
        if constexpr (transposed) w = load_four(sums + t * transposed_score_stride + micro_row());
        else {
          const float* at = sums + micro_row() * row_sum_stride + t;
          w = float4{at[0], at[row_sum_stride], at[2 * row_sum_stride], at[3 * row_sum_stride]};
        }
        multiply_outer(w, load_four(slices + (t - part) * (output_columns + 4) + micro_column()), sum);
      }
    }
    STW_UNROLL
    for (int i = 0; i < 4; ++i)
      store_vector(out + i * stride, float4{sum.f[i][0], sum.f[i][1], sum.f[i][2], sum.f[i][3]});
  }
}

}  // namespace stw::kernels::cuda
