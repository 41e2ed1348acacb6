// chain_product: blocks, register tiles and a streaming form for a few rows. See gemm.h for the blocking.
#include "kernels/cpu/gemm.h"

#include "kernels/cpu/gemm_panel.h"

namespace stw::kernels::STW_ISA {

// The register tile: tile_rows × tile_vectors vectors of 16 columns, chosen so that accumulators, one row of b and one
// element of a fill the registers.
#if defined(STW_ISA_AVX512)
static constexpr int tile_rows = 12, tile_vectors = 2;
#elif defined(STW_ISA_AVX2) || defined(STW_ISA_NEON)
static constexpr int tile_rows = 6, tile_vectors = 1;
#else
static constexpr int tile_rows = 4, tile_vectors = 1;
#endif
static constexpr int tile_columns = 16 * tile_vectors;
static_assert(panel_rows % tile_rows == 0 && panel_columns % tile_columns == 0 && block_rows % panel_rows == 0);

static const void* element(const View& view, int64_t row, int64_t column) {
  const int64_t at = row * view.row_stride + column * view.column_stride;
  return (const char*)view.data + at * element_bytes(view.dtype);
}

// Lines of memory that the next tile or panel will want are fetched while this one is computed; a tile of c and a panel of b
// come from too many places for the processor to foresee. Addresses past the end are harmless.
static constexpr int64_t line_bytes = 64;

STW_INLINE void fetch_tile(const float* c, int64_t ldc) {
  for (int r = 0; r < tile_rows; ++r) {
    __builtin_prefetch(c + r * ldc, 1);
    __builtin_prefetch(c + r * ldc + tile_columns - 1, 1);
  }
}

// Share `share` of `shares` of a panel of b: `columns` columns, `depth` along k.
static void fetch_panel(const View& b, const void* from, int64_t columns, int64_t depth, int64_t share, int64_t shares) {
  const bool along = b.row_stride == 1;   // k lies along memory
  const int64_t bytes = element_bytes(b.dtype), stride = (along ? b.column_stride : b.row_stride) * bytes;
  const int64_t vectors = along ? columns : depth, length = (along ? depth : columns) * bytes;
  for (int64_t i = vectors * share / shares; i < vectors * (share + 1) / shares; ++i)
    for (int64_t at = 0; at < length; at += line_bytes) __builtin_prefetch((const char*)from + i * stride + at);
}

alignas(64) static const float zeros[tile_columns] = {};

// rows × tile_columns of c from one panel of each. `zero_start`: the chains start at +0 instead of at c.
template <int rows>
static void tile_product(int64_t depth, const float* a, const float* b, float* c, int64_t ldc, bool zero_start,
                         const float* bias) {
  const float* const start = zero_start ? zeros : c;
  const int64_t start_stride = zero_start ? 0 : ldc;
  F16 sum[rows][tile_vectors];
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < tile_vectors; ++v) sum[r][v] = load(start + r * start_stride + 16 * v);
#pragma GCC unroll 4
  for (int64_t k = 0; k < depth; ++k, a += tile_rows, b += tile_columns) {
    F16 row[tile_vectors];
    for (int v = 0; v < tile_vectors; ++v) row[v] = load(b + 16 * v);
    for (int r = 0; r < rows; ++r) {
      const F16 x = splat(a[r]);
      for (int v = 0; v < tile_vectors; ++v) sum[r][v] = fma(x, row[v], sum[r][v]);
    }
  }
  if (bias != nullptr)
    for (int v = 0; v < tile_vectors; ++v) {
      const F16 last = load(bias + 16 * v);
      for (int r = 0; r < rows; ++r) sum[r][v] = add(sum[r][v], last);
    }
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < tile_vectors; ++v) store(c + r * ldc + 16 * v, sum[r][v]);
}

using TileProduct = void (*)(int64_t, const float*, const float*, float*, int64_t, bool, const float*);
struct RowsOfTile { TileProduct product; int rows; };
// The smallest tile with at least `rows` rows.
static RowsOfTile tile_for(int64_t rows) {
  if (rows <= 1) return {tile_product<1>, 1};
  if (rows <= 2) return {tile_product<2>, 2};
  if (rows <= 4) return {tile_product<4>, 4};
  if constexpr (tile_rows > 6) {
    if (rows <= 8) return {tile_product<8>, 8};
  }
  return {tile_product<tile_rows>, tile_rows};
}

// A tile that is cut by the right or lower edge of c: computed in a tile of its own.
static void edge_product(const RowsOfTile& tile, int64_t rows, int64_t columns, int64_t depth, const float* a,
                         const float* b, float* c, int64_t ldc, bool zero_start, const float* bias) {
  float whole[tile_rows * tile_columns] = {0};
  const size_t bytes = (size_t)columns * sizeof(float);
  if (!zero_start)
    for (int64_t r = 0; r < rows; ++r) memcpy(whole + r * tile_columns, c + r * ldc, bytes);
  tile.product(depth, a, b, whole, tile_columns, zero_start, bias);
  for (int64_t r = 0; r < rows; ++r) memcpy(c + r * ldc, whole + r * tile_columns, bytes);
}

static constexpr int64_t few_rows = 4, streamed_depth = 8, turned_depth = 1024;

// Few rows and a row-major b, which is far larger than c: b is read once, in the order of memory, and never packed; c
// stays in L1 meanwhile. Each pass continues the chains by streamed_depth elements.
template <DType dtype>
static void streamed_product(int64_t m, int64_t n, int64_t k, View a, View b, float* c, int64_t ldc, bool accumulate) {
  for (int64_t k0 = 0; k0 < k; k0 += streamed_depth) {
    const int64_t depth = min(streamed_depth, k - k0);
    const bool zero_start = k0 == 0 && !accumulate;
    float x[few_rows][streamed_depth];
    for (int64_t r = 0; r < m; ++r)
      for (int64_t i = 0; i < depth; ++i) x[r][i] = load1(element(a, r, k0 + i), a.dtype, 0);
    int64_t j = 0;
    for (; j + 16 <= n; j += 16) {
      for (int64_t r = 0; r < m; ++r) {
        F16 sum = zero_start ? zero() : load(c + r * ldc + j);
        for (int64_t i = 0; i < depth; ++i)
          sum = fma(splat(x[r][i]), load16(b.data, dtype, (k0 + i) * b.row_stride + j), sum);
        store(c + r * ldc + j, sum);
      }
    }
    for (; j < n; ++j)
      for (int64_t r = 0; r < m; ++r) {
        float sum = zero_start ? 0.0f : c[r * ldc + j];
        for (int64_t i = 0; i < depth; ++i)
          sum = fma1(x[r][i], load1(b.data, dtype, (k0 + i) * b.row_stride + j), sum);
        c[r * ldc + j] = sum;
      }
  }
}

// Few rows and a b whose columns lie along memory (a weight of (features, inputs) in generation): b is read once,
// turned over in registers and used at once; what limits this is the memory.
template <DType dtype, int rows>
static void turned_product(int64_t n, int64_t depth, const float (*x)[turned_depth], const void* from, int64_t stride,
                           float* c, int64_t ldc, bool zero_start) {
  for (int64_t j = 0; j < n; j += 16) {
    const int64_t columns = min(16, n - j);
    int64_t column_at[16];
    for (int q = 0; q < 16; ++q) column_at[q] = (j + min(q, columns - 1)) * stride;
    F16 sum[rows];
    for (int r = 0; r < rows; ++r) sum[r] = zero_start ? zero() : load16_some(c, DType::f32, r * ldc + j, columns);
    int64_t k = 0;
    for (; k + 8 <= depth; k += 8) {
      alignas(64) float block[8 * 16];
      transpose_block<dtype, 16, 8>(from, column_at, k, block);
      transpose_block<dtype, 16, 8>(from, column_at + 8, k, block + 8);
      for (int i = 0; i < 8; ++i) {
        const F16 row = load(block + 16 * i);
        for (int r = 0; r < rows; ++r) sum[r] = fma(splat(x[r][k + i]), row, sum[r]);
      }
    }
    for (; k < depth; ++k) {
      float row[16];
      for (int q = 0; q < 16; ++q) row[q] = load1(from, dtype, column_at[q] + k);
      for (int r = 0; r < rows; ++r) sum[r] = fma(splat(x[r][k]), load(row), sum[r]);
    }
    for (int r = 0; r < rows; ++r) store_some(c + r * ldc + j, sum[r], columns);
  }
}

template <DType dtype>
static void turned_rows(int64_t m, int64_t n, int64_t depth, const float (*x)[turned_depth], const void* from,
                        int64_t stride, float* c, int64_t ldc, bool zero_start) {
  switch (m) {
    case 1: return turned_product<dtype, 1>(n, depth, x, from, stride, c, ldc, zero_start);
    case 2: return turned_product<dtype, 2>(n, depth, x, from, stride, c, ldc, zero_start);
    case 3: return turned_product<dtype, 3>(n, depth, x, from, stride, c, ldc, zero_start);
    default: return turned_product<dtype, 4>(n, depth, x, from, stride, c, ldc, zero_start);
  }
}

static void few_rows_product(int64_t m, int64_t n, int64_t k, View a, View b, float* c, int64_t ldc, bool accumulate) {
  float x[few_rows][turned_depth];
  for (int64_t k0 = 0; k0 < k; k0 += turned_depth) {
    const int64_t depth = min(turned_depth, k - k0);
    for (int64_t r = 0; r < m; ++r)
      for (int64_t i = 0; i < depth; ++i) x[r][i] = load1(element(a, r, k0 + i), a.dtype, 0);
    with_dtype(b.dtype, [&](auto stored) {
      turned_rows<stored.dtype>(m, n, depth, x, element(b, k0, 0), b.column_stride, c, ldc, k0 == 0 && !accumulate);
    });
  }
}

static void add_bias(int64_t m, int64_t n, float* c, int64_t ldc, const void* bias, DType dtype) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) c[i * ldc + j] = c[i * ldc + j] + load1(bias, dtype, j);
}

void chain_product(int64_t m, int64_t n, int64_t k, View a, View b, float* c, int64_t ldc, bool accumulate,
                   void* workspace, const void* bias, DType bias_dtype) {
  if (k <= 0 && !accumulate)
    for (int64_t i = 0; i < m; ++i) memset(c + i * ldc, 0, (size_t)n * sizeof(float));
  if (k <= 0 || (m <= few_rows && (b.column_stride == 1 || b.row_stride == 1))) {
    if (b.column_stride == 1)
      with_dtype(b.dtype, [&](auto stored) { streamed_product<stored.dtype>(m, n, k, a, b, c, ldc, accumulate); });
    else
      few_rows_product(m, n, k, a, b, c, ldc, accumulate);
    if (bias != nullptr) add_bias(m, n, c, ldc, bias, bias_dtype);
    return;
  }
  float* const panel = (float*)workspace;
  float* const block = panel + panel_columns * min(block_depth, round_up(k, 16));
  for (int64_t i0 = 0; i0 < m; i0 += block_rows) {
    const int64_t rows = min(block_rows, m - i0);
    for (int64_t k0 = 0; k0 < k; k0 += block_depth) {
      const int64_t depth = min(block_depth, k - k0);
      const bool zero_start = k0 == 0 && !accumulate, last = k0 + depth == k;
      for (int64_t i = 0; i < rows; i += tile_rows)
        pack_panel<tile_rows>(element(a, i0 + i, k0), a.dtype, a.row_stride, a.column_stride,
                              min(tile_rows, rows - i), depth, block + i * depth);
      for (int64_t j = 0; j < n; j += tile_columns) {
        const int64_t columns = min(tile_columns, n - j);
        pack_panel<tile_columns>(element(b, k0, j), b.dtype, b.column_stride, b.row_stride, columns, depth, panel);
        float wide_bias[tile_columns] = {0};
        const bool biased = last && bias != nullptr;
        if (biased)
          for (int64_t q = 0; q < columns; ++q) wide_bias[q] = load1(bias, bias_dtype, j + q);
        for (int64_t i = 0; i < rows; i += tile_rows) {
          const int64_t high = min(tile_rows, rows - i);
          const RowsOfTile tile = tile_for(high);
          float* const to = c + (i0 + i) * ldc + j;
          const float* const from = block + i * depth;
          fetch_tile(i + tile_rows < rows ? to + tile_rows * ldc : c + i0 * ldc + j + tile_columns, ldc);
          if (j + tile_columns < n)
            fetch_panel(b, element(b, k0, j + tile_columns), min(tile_columns, n - j - tile_columns), depth, i / tile_rows,
                        ceil_div(rows, tile_rows));
          if (high == tile.rows && columns == tile_columns)
            tile.product(depth, from, panel, to, ldc, zero_start, biased ? wide_bias : nullptr);
          else
            edge_product(tile, high, columns, depth, from, panel, to, ldc, zero_start, biased ? wide_bias : nullptr);
        }
      }
    }
  }
}

}  // namespace stw::kernels::STW_ISA
