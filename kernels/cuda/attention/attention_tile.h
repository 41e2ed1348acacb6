// The building blocks of the attention kernels on the CUDA cores. A block of 128 threads owns a tile of 32
// rows (queries, or keys in the gradient of keys) of one head and processes 64 columns at a time. There are
// two products. Both consist of fp32 chains in the CPU's order (kernels/cpu/attention/attention_tile.h), so
// the bits of an element depend neither on the tile nor on other elements:
//
//   scores (32, 64) = rows · columnsᵀ            a chain over head_dim from +0, in slices of 32 elements
//   outputs (32, head_dim) += weights · columns  a chain over the columns that continues from block to block
//
// A thread computes 4 × 4 elements at a time: rows 4·(thread / 16) + i, columns 4·(thread % 16) + j, from two
// reads of 16 bytes a step. Outputs stay in shared memory and are touched once a block, so the same code
// serves every head_dim. The limit is the fp32 units; a slice that is read again comes from the second-level
// cache.
#pragma once
#include "kernels/common/math.h"
#include "kernels/common/philox.h"
#include "kernels/common/score_rule.h"
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

inline constexpr int tile_threads = 128, tile_rows = 32, key_block = 64, tile_slice = 32;
inline constexpr int score_stride = key_block + 16;  // Two adjacent rows cover all banks.
inline constexpr int transposed_score_stride = tile_rows + 4;
inline constexpr int row_slice_floats = tile_slice * (tile_rows + 4),
                     column_slice_floats = tile_slice * (key_block + 4);
inline constexpr int slices_floats = row_slice_floats + column_slice_floats;
inline constexpr int output_columns = 64;  // Columns of outputs that are computed at a time.
inline int64_t outputs_floats(int head_dim) { return tile_rows * round_up(head_dim, output_columns); }

// A head's rows in a larger row-major matrix: row r of the head starts at element `at` + r·stride.
struct HeadRows {
  const void* data;
  DType dtype;
  int64_t at, stride;
};
// Rows [first, first + count) times `factor`. Later rows count as 0 in a product.
struct SomeRows {
  HeadRows head;
  int64_t first;
  int count;
  float factor;
};
// The columns of a block that one row sees. Empty if begin >= end.
struct Range {
  int begin, end;
};
struct Micro {
  float f[4][4];
};

STW_DEVICE int micro_row() { return static_cast<int>(threadIdx.x) / 16 * 4; }
STW_DEVICE int micro_column() { return static_cast<int>(threadIdx.x) % 16 * 4; }
STW_DEVICE int clamp_to(int64_t x, int highest) {
  return x < 0 ? 0 : x > highest ? highest : static_cast<int>(x);
}

// Loads elements [d, d + tile_slice) of `rows` rows and transposes them: element (row, d + e) goes to
// to[e·(rows + 4) + row].
template <int rows>
STW_DEVICE void load_slice_transposed(const SomeRows& from, int head_dim, int d, float* to) {
  constexpr int tasks = rows * (tile_slice / 16), quads = tile_threads / quad;
  for (int task = static_cast<int>(threadIdx.x) / quad; task < tasks; task += quads) {
    const int row = task % rows, element = task / rows * 16;
    if (d + element >= head_dim) continue;
    F16 x = zero();
    if (row < from.count)
      x = mul(load_group(from.head.data, from.head.dtype,
                         from.head.at + (from.first + row) * from.head.stride + d + element,
                         head_dim - d - element),
              splat(from.factor));
    for (int i = 0; i < 4; ++i) to[(element + first_lane() + i) * (rows + 4) + row] = x.f[i];
  }
}
// Loads elements [d, d + output_columns) of rows [row, row + tile_slice): element (row + r, d + e) goes to
// to[r·(output_columns + 4) + e].
STW_DEVICE void load_slice(const SomeRows& from, int row, int head_dim, int d, float* to) {
  constexpr int tasks = tile_slice * (output_columns / 16), quads = tile_threads / quad;
  for (int task = static_cast<int>(threadIdx.x) / quad; task < tasks; task += quads) {
    const int r = task / (output_columns / 16), element = task % (output_columns / 16) * 16;
    F16 x = zero();
    if (row + r < from.count && d + element < head_dim)
      x = mul(load_group(from.head.data, from.head.dtype,
                         from.head.at + (from.first + row + r) * from.head.stride + d + element,
                         head_dim - d - element),
              splat(from.factor));
    store(to + r * (output_columns + 4) + element, x);
  }
}

STW_DEVICE float4 load_four(const float* p) { return load_vector<float4>(p); }
STW_DEVICE void multiply_outer(const float4& a, const float4& b, Micro& sum) {
  const float x[4] = {a.x, a.y, a.z, a.w}, y[4] = {b.x, b.y, b.z, b.w};
  STW_UNROLL
  for (int i = 0; i < 4; ++i) STW_UNROLL
  for (int j = 0; j < 4; ++j) sum.f[i][j] = fma1(x[i], y[j], sum.f[i][j]);
}

// This thread's part of rows (tile_rows) · columnsᵀ (key_block). Called by all threads of the block.
STW_DEVICE Micro multiply_rows(const SomeRows& rows, const SomeRows& columns, int head_dim, float* slices) {
  Micro sum = {};
  float* row_slice = slices;
  float* column_slice = slices + row_slice_floats;
  for (int d = 0; d < head_dim; d += tile_slice) {
    __syncthreads();
    load_slice_transposed<tile_rows>(rows, head_dim, d, row_slice);
    load_slice_transposed<key_block>(columns, head_dim, d, column_slice);
    __syncthreads();
    const int depth = head_dim - d < tile_slice ? head_dim - d : tile_slice;
    for (int e = 0; e < depth; ++e)
      multiply_outer(load_four(row_slice + e * (tile_rows + 4) + micro_row()),
                     load_four(column_slice + e * (key_block + 4) + micro_column()), sum);
  }
  return sum;
}
STW_DEVICE void store_scores(const Micro& s, float* scores) {  // (tile_rows, score_stride)
  STW_UNROLL
  for (int i = 0; i < 4; ++i)
    store_vector(scores + (micro_row() + i) * score_stride + micro_column(),
                 float4{s.f[i][0], s.f[i][1], s.f[i][2], s.f[i][3]});
}
// (key_block, transposed_score_stride): each row becomes a column.
STW_DEVICE void store_scores_transposed(const Micro& s, float* scores) {
  STW_UNROLL
  for (int j = 0; j < 4; ++j)
    store_vector(scores + (micro_column() + j) * transposed_score_stride + micro_row(),
                 float4{s.f[0][j], s.f[1][j], s.f[2][j], s.f[3][j]});
}

// outputs (tile_rows, round_up(head_dim, 64)) = outputs·rescale + weights · columns. Row r multiplies only
// the columns in its range, because the others may hold NaN. `rescale`: (tile_rows) or null; a factor of 1 is
// skipped. `all`: every range is [0, key_block). Called by all threads of the block.
template <bool transposed>
STW_DEVICE void multiply_columns(const float* weights, const Range* ranges, bool all, const float* rescale,
                                 const SomeRows& columns, int head_dim, float* slices, float* outputs) {
  const int stride = static_cast<int>(round_up(head_dim, output_columns));
  Range range[4];
  float factor[4];
  STW_UNROLL
  for (int i = 0; i < 4; ++i) {
    range[i] = ranges[micro_row() + i];
    factor[i] = rescale == nullptr ? 1.0f : rescale[micro_row() + i];
  }
  for (int d = 0; d < head_dim; d += output_columns) {
    float* out = outputs + micro_row() * stride + d + micro_column();
    Micro sum;
    STW_UNROLL
    for (int i = 0; i < 4; ++i) {
      const float4 o = load_four(out + i * stride);
      const float before[4] = {o.x, o.y, o.z, o.w};
      STW_UNROLL
      for (int j = 0; j < 4; ++j) sum.f[i][j] = factor[i] != 1.0f ? before[j] * factor[i] : before[j];
    }
    for (int half = 0; half < columns.count; half += tile_slice) {
      __syncthreads();
      load_slice(columns, half, head_dim, d, slices);
      __syncthreads();
      if (d + micro_column() >= head_dim) continue;
      for (int c = 0; c < tile_slice; c += 4) {
        float w[4][4];  // (column, row)
        STW_UNROLL
        for (int i = 0; i < 4; ++i) {
          if constexpr (transposed) {
            const float4 x = load_four(weights + (half + c + i) * transposed_score_stride + micro_row());
            w[i][0] = x.x, w[i][1] = x.y, w[i][2] = x.z, w[i][3] = x.w;
          } else {
            const float4 x = load_four(weights + (micro_row() + i) * score_stride + half + c);
            w[0][i] = x.x, w[1][i] = x.y, w[2][i] = x.z, w[3][i] = x.w;
          }
        }
        STW_UNROLL
        for (int e = 0; e < 4; ++e) {
          const float4 y = load_four(slices + (c + e) * (output_columns + 4) + micro_column());
          if (all) {
            multiply_outer(float4{w[e][0], w[e][1], w[e][2], w[e][3]}, y, sum);
            continue;
          }
          Micro next = sum;
          multiply_outer(float4{w[e][0], w[e][1], w[e][2], w[e][3]}, y, next);
          const int column = half + c + e;
          STW_UNROLL
          for (int i = 0; i < 4; ++i)
            if (column >= range[i].begin && column < range[i].end) STW_UNROLL
          for (int j = 0; j < 4; ++j) sum.f[i][j] = next.f[i][j];
        }
      }
    }
    STW_UNROLL
    for (int i = 0; i < 4; ++i)
      store_vector(out + i * stride, float4{sum.f[i][0], sum.f[i][1], sum.f[i][2], sum.f[i][3]});
  }
}

// The factors of this thread's lanes of elements [first, first + 16), for any `first`.
STW_DEVICE F16 dropout_factors16(const Dropout& d, int64_t first) {
  const int64_t element = first + first_lane(), block = element / 4;
  const int skipped = static_cast<int>(element % 4);
  const Philox4 low = dropout_words(d, block);
  Philox4 high = low;
  if (skipped != 0) high = dropout_words(d, block + 1);
  const uint32_t words[7] = {low.w[0], low.w[1], low.w[2], low.w[3], high.w[0], high.w[1], high.w[2]};
  F16 factors;
  STW_UNROLL
  for (int i = 0; i < 4; ++i) {
    const uint32_t even = skipped >= 2 ? words[i + 2] : words[i],
                   odd = skipped >= 2 ? words[i + 3 < 7 ? i + 3 : 6] : words[i + 1];
    factors.f[i] = (skipped % 2 == 0 ? even : odd) >= d.threshold ? d.kept_scale : 0.0f;
  }
  return factors;
}

STW_DEVICE void clear_outputs(float* outputs, int64_t floats) {
  for (int64_t i = 4 * static_cast<int64_t>(threadIdx.x); i < floats; i += 4 * tile_threads)
    store_vector(outputs + i, float4{0, 0, 0, 0});
}
// A row of outputs times `factor`, by a quad.
STW_DEVICE void store_output_row(const float* row, float factor, int head_dim, Matrix to, int64_t at) {
  for_groups(0, head_dim, [&](int64_t d, int64_t n) {
    store_group(to.data, to.dtype, at + d, mul(load(row + d), splat(factor)), n);
  });
}

}  // namespace stw::kernels::cuda
