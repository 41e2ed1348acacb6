// The matrix product for a few rows, as in generation: b is read once, and that is all there is to do.
#pragma once
#include "kernels/cpu/gemm_panel.h"
#include "kernels/cpu/gemm_tile.h"

namespace stw::kernels::STW_ISA {

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

static void turned_rows_product(int64_t m, int64_t n, int64_t k, View a, View b, float* c, int64_t ldc, bool accumulate) {
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

// One of the strides of b is 1.
static void few_rows_product(int64_t m, int64_t n, int64_t k, View a, View b, float* c, int64_t ldc, bool accumulate) {
  if (b.column_stride == 1)
    with_dtype(b.dtype, [&](auto stored) { streamed_product<stored.dtype>(m, n, k, a, b, c, ldc, accumulate); });
  else
    turned_rows_product(m, n, k, a, b, c, ldc, accumulate);
}

}  // namespace stw::kernels::STW_ISA
