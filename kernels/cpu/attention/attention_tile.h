// The small matrix product of attention, its blocks and its packed layouts.
//
// Blocks are fixed: 64 keys, counted from the first key of the sequence. So the arithmetic of a row depends
// neither on other rows nor on the grouping of queries, and a step with a cache repeats the bits of the whole
// sequence. Operands are packed in fp32. Their rows have an odd number of cache lines, which spreads a column
// over all sets of the cache:
//
//   rows        (rows, row_stride(head_dim))     queries, keys, values, output gradients
//   transposed  (head_dim, transposed_stride)    keys or values of one block, one key a lane
//   scores      (rows, transposed_stride)        as wide as one block of keys
#pragma once
#include "kernels/contract/cpu_blocks.h"
#include "kernels/cpu/product/gemm_panel.h"

namespace stw::kernels {

STW_INLINE int64_t panels_of(int64_t columns) { return (columns + 15) / 16; }
// An odd number of lines of 16 floats that holds head_dim.
STW_INLINE int64_t row_stride(int64_t head_dim) { return (panels_of(head_dim) | 1) * 16; }

// Hands out consecutive pieces of a workspace. With null memory, it only counts their bytes.
struct Carver {
  char* memory;
  int64_t bytes;
  float* take(int64_t floats) {
    char* piece = memory == nullptr ? nullptr : memory + bytes;
    bytes += (floats * 4 + 63) / 64 * 64;
    return (float*)piece;
  }
};

namespace STW_ISA {

#if defined(STW_ISA_AVX512)
inline constexpr int tile_panels = 2;
#else
inline constexpr int tile_panels = 1;
#endif
inline constexpr int attention_tile_rows = 6;

// c (R, 16·P) = (accumulate ? c : +0) + a·b, one chain an element. Element (row, k) of a is at a[k·lda + row]
// if `transposed`, else at a[row·lda + k].
template <int R, int P, bool transposed>
STW_INLINE void attention_tile(int64_t depth, const float* a, int64_t lda, const float* b, int64_t ldb,
                               float* c, int64_t ldc, bool accumulate) {
  F16 sum[R][P];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int p = 0; p < P; ++p) sum[r][p] = accumulate ? load(c + r * ldc + 16 * p) : zero();
  for (int64_t k = 0; k < depth; ++k) {
    F16 y[P];
#pragma GCC unroll 2
    for (int p = 0; p < P; ++p) y[p] = load(b + k * ldb + 16 * p);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      F16 x = splat(transposed ? a[k * lda + r] : a[r * lda + k]);
#pragma GCC unroll 2
      for (int p = 0; p < P; ++p) sum[r][p] = fma(x, y[p], sum[r][p]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int p = 0; p < P; ++p) store(c + r * ldc + 16 * p, sum[r][p]);
}

template <int P, bool transposed>
static inline void attention_columns(int64_t rows, int64_t depth, const float* a, int64_t lda, const float* b,
                                     int64_t ldb, float* c, int64_t ldc, bool accumulate) {
  const int64_t step = transposed ? 1 : lda;
  int64_t r = 0;
  for (; r + attention_tile_rows <= rows; r += attention_tile_rows)
    attention_tile<attention_tile_rows, P, transposed>(depth, a + r * step, lda, b, ldb, c + r * ldc, ldc,
                                                       accumulate);
  const float* x = a + r * step;
  float* y = c + r * ldc;
  switch (rows - r) {
    case 1: return attention_tile<1, P, transposed>(depth, x, lda, b, ldb, y, ldc, accumulate);
    case 2: return attention_tile<2, P, transposed>(depth, x, lda, b, ldb, y, ldc, accumulate);
    case 3: return attention_tile<3, P, transposed>(depth, x, lda, b, ldb, y, ldc, accumulate);
    case 4: return attention_tile<4, P, transposed>(depth, x, lda, b, ldb, y, ldc, accumulate);
    case 5: return attention_tile<5, P, transposed>(depth, x, lda, b, ldb, y, ldc, accumulate);
    default: return;
  }
}

// c (rows, 16·panels) = (accumulate ? c : +0) + a·b.
template <bool transposed>
static inline void attention_product(int64_t rows, int64_t panels, int64_t depth, const float* a, int64_t lda,
                                     const float* b, int64_t ldb, float* c, int64_t ldc, bool accumulate) {
  int64_t p = 0;
  for (; p + tile_panels <= panels; p += tile_panels)
    attention_columns<tile_panels, transposed>(rows, depth, a, lda, b + 16 * p, ldb, c + 16 * p, ldc,
                                               accumulate);
  for (; p < panels; ++p)
    attention_columns<1, transposed>(rows, depth, a, lda, b + 16 * p, ldb, c + 16 * p, ldc, accumulate);
}

// A head's rows in a larger row-major matrix: row r of the head starts at element `at` + r·stride.
struct HeadRows {
  const void* data;
  DType dtype;
  int64_t at, stride;
};

// Packs rows [first, first + count) times `factor`. Lanes from head_dim on become 0.
STW_INLINE void pack_rows(const HeadRows& from, int64_t first, int64_t count, int64_t head_dim, float factor,
                          float* to) {
  const int64_t ld = row_stride(head_dim);
  for (int64_t r = 0; r < count; ++r) {
    const int64_t at = from.at + (first + r) * from.stride;
    for (int64_t d = 0; d < head_dim; d += 16) {
      F16 x = head_dim - d >= 16 ? load16(from.data, from.dtype, at + d)
                                 : load16_some(from.data, from.dtype, at + d, head_dim - d);
      store(to + r * ld + d, mul(x, splat(factor)));
    }
  }
}
STW_INLINE void unpack_row(const float* from, float factor, int64_t head_dim, Matrix to, int64_t at) {
  for (int64_t d = 0; d < head_dim; d += 16) {
    F16 x = mul(load(from + d), splat(factor));
    if (head_dim - d >= 16) store16(to.data, to.dtype, at + d, x);
    else store16_some(to.data, to.dtype, at + d, x, head_dim - d);
  }
}
// Packs rows [first, first + count) as lanes. The other lanes hold arbitrary values.
STW_INLINE void pack_transposed(const HeadRows& from, int64_t first, int64_t count, int64_t head_dim,
                                float* to) {
  const void* data = (const char*)from.data + (from.at + first * from.stride) * element_bytes(from.dtype);
  with_dtype(from.dtype, [&](auto stored) {
    pack_along<stored.dtype, transposed_stride>(data, from.stride, count, head_dim, to);
  });
}

}  // namespace STW_ISA
}  // namespace stw::kernels
