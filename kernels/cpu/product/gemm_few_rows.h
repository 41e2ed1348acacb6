// The matrix product for a few rows, as in generation. Its time is the time of reading b once.
#pragma once
#include "kernels/cpu/product/gemm_panel.h"
#include "kernels/cpu/product/gemm_tile.h"

namespace stw::kernels::STW_ISA {

static constexpr int64_t few_rows = 4, streamed_depth = 8, transposed_depth = 1024;

// Columns of c, and the chains that are added to them: `sums`, with rows sums_stride apart.
struct Streamed {
  float* c;
  int64_t ldc;
  float* sums;
  int64_t sums_stride;
};

// For few rows and a row-major b, which is far larger than c. b is read once, in memory order, and never
// packed; c and the chains stay in L1. Each pass continues the chains by streamed_depth terms.
template <DType dtype>
static void streamed_strip(int64_t m, int64_t n, int64_t k, View a, View b, const Streamed& to,
                           bool accumulate, const Chains& chains) {
  int64_t begin = 0, end = chain_end(chains, 0, k);  // The current chain.
  for (int64_t k0 = 0; k0 < k;) {
    const int64_t depth = min(streamed_depth, end - k0);
    const bool begins = k0 == begin, ends = k0 + depth == end, zero_start = begin == 0 && !accumulate;
    float x[few_rows][streamed_depth];
    for (int64_t r = 0; r < m; ++r)
      for (int64_t i = 0; i < depth; ++i) x[r][i] = load1(element(a, r, k0 + i), a.dtype, 0);
    int64_t j = 0;
    for (; j + 16 <= n; j += 16) {
      for (int64_t r = 0; r < m; ++r) {
        float* const chain = to.sums + r * to.sums_stride + j;
        F16 sum = begins ? zero() : load(chain);
        for (int64_t i = 0; i < depth; ++i)
          sum = fma(splat(x[r][i]), load16(b.data, dtype, (k0 + i) * b.row_stride + j), sum);
        if (!ends) store(chain, sum);
        else store(to.c + r * to.ldc + j, add(zero_start ? zero() : load(to.c + r * to.ldc + j), sum));
      }
    }
    for (; j < n; ++j)
      for (int64_t r = 0; r < m; ++r) {
        float* const chain = to.sums + r * to.sums_stride + j;
        float* const total = to.c + r * to.ldc + j;
        float sum = begins ? 0.0f : *chain;
        for (int64_t i = 0; i < depth; ++i)
          sum = fma1(x[r][i], load1(b.data, dtype, (k0 + i) * b.row_stride + j), sum);
        if (!ends) *chain = sum;
        else *total = (zero_start ? 0.0f : *total) + sum;
      }
    k0 += depth;
    if (ends && k0 < k) {
      begin = k0;
      end = chain_end(chains, k0, k);
    }
  }
}
// A single chain that starts from +0 needs no buffer: c holds it until it is complete.
template <DType dtype>
static void streamed_product(int64_t m, int64_t n, int64_t k, View a, View b, float* c, int64_t ldc,
                             bool accumulate, const Chains& chains, float* workspace) {
  const bool alone = !accumulate && chain_end(chains, 0, k) == k;
  const int64_t strip =
      alone ? n
            : min(n, (panel_rows + panel_columns) * round_up(min(k, block_depth), 16) / few_rows / 16 * 16);
  for (int64_t j = 0; j < n; j += strip) {
    const View columns = {element(b, 0, j), b.row_stride, b.column_stride, b.dtype};
    const Streamed to = {c + j, ldc, alone ? c + j : workspace, alone ? ldc : strip};
    streamed_strip<dtype>(m, min(strip, n - j), k, a, columns, to, accumulate, chains);
  }
}

// For few rows and a b with contiguous columns (a weight of (features, inputs) in generation). b is read
// once, transposed in registers and used at once; memory is the limit. Computes `depth` terms of k from k0
// on, in whole chains.
template <DType dtype, int rows>
static void transposed_product(int64_t n, int64_t k0, int64_t depth, const float (*x)[transposed_depth],
                               const void* from, int64_t stride, float* c, int64_t ldc, bool zero_start,
                               const Chains& chains) {
  for (int64_t j = 0; j < n; j += 16) {
    const int64_t columns = min(16, n - j);
    int64_t column_at[16];
    for (int q = 0; q < 16; ++q) column_at[q] = (j + min(q, columns - 1)) * stride;
    F16 total[rows], sum[rows];
    for (int r = 0; r < rows; ++r)
      total[r] = zero_start ? zero() : load16_some(c, DType::f32, r * ldc + j, columns);
    for (int64_t k = 0; k < depth;) {
      const int64_t end = chain_end(chains, k0 + k, k0 + depth) - k0;
      for (int r = 0; r < rows; ++r) sum[r] = zero();
      for (; k + 8 <= end; k += 8) {
        alignas(64) float block[8 * 16];
        transpose_block<dtype, 16, 8>(from, column_at, k, block);
        transpose_block<dtype, 16, 8>(from, column_at + 8, k, block + 8);
        for (int i = 0; i < 8; ++i) {
          const F16 row = load(block + 16 * i);
          for (int r = 0; r < rows; ++r) sum[r] = fma(splat(x[r][k + i]), row, sum[r]);
        }
      }
      for (; k < end; ++k) {
        float row[16];
        for (int q = 0; q < 16; ++q) row[q] = load1(from, dtype, column_at[q] + k);
        for (int r = 0; r < rows; ++r) sum[r] = fma(splat(x[r][k]), load(row), sum[r]);
      }
      for (int r = 0; r < rows; ++r) total[r] = add(total[r], sum[r]);
    }
    for (int r = 0; r < rows; ++r) store_some(c + r * ldc + j, total[r], columns);
  }
}

template <DType dtype>
static void transposed_rows(int64_t m, int64_t n, int64_t k0, int64_t depth,
                            const float (*x)[transposed_depth], const void* from, int64_t stride, float* c,
                            int64_t ldc, bool zero_start, const Chains& chains) {
  switch (m) {
    case 1: return transposed_product<dtype, 1>(n, k0, depth, x, from, stride, c, ldc, zero_start, chains);
    case 2: return transposed_product<dtype, 2>(n, k0, depth, x, from, stride, c, ldc, zero_start, chains);
    case 3: return transposed_product<dtype, 3>(n, k0, depth, x, from, stride, c, ldc, zero_start, chains);
    default: return transposed_product<dtype, 4>(n, k0, depth, x, from, stride, c, ldc, zero_start, chains);
  }
}

static void transposed_rows_product(int64_t m, int64_t n, int64_t k, View a, View b, float* c, int64_t ldc,
                                    bool accumulate, const Chains& chains) {
  float x[few_rows][transposed_depth];
  for (int64_t k0 = 0, end; k0 < k; k0 = end) {
    end = chain_end(chains, k0, k);
    for (int64_t next = end; next < k && (next = chain_end(chains, next, k)) - k0 <= transposed_depth;)
      end = next;
    const int64_t depth = end - k0;
    for (int64_t r = 0; r < m; ++r)
      for (int64_t i = 0; i < depth; ++i) x[r][i] = load1(element(a, r, k0 + i), a.dtype, 0);
    with_dtype(b.dtype, [&](auto stored) {
      transposed_rows<stored.dtype>(m, n, k0, depth, x, element(b, k0, 0), b.column_stride, c, ldc,
                                    k0 == 0 && !accumulate, chains);
    });
  }
}

// One of the strides of b is 1.
static void few_rows_product(int64_t m, int64_t n, int64_t k, View a, View b, float* c, int64_t ldc,
                             bool accumulate, const Chains& chains, float* workspace) {
  if (b.column_stride == 1)
    with_dtype(b.dtype, [&](auto stored) {
      streamed_product<stored.dtype>(m, n, k, a, b, c, ldc, accumulate, chains, workspace);
    });
  else transposed_rows_product(m, n, k, a, b, c, ldc, accumulate, chains);
}

}  // namespace stw::kernels::STW_ISA
