// A product of two fp32 matrices on the CUDA cores, with the CPU's bits: chains of chain_terms fused
// multiply-adds in the order of k, whose results are added in order. A block of 64 threads computes 64 × 64
// elements, a thread 8 × 8 of them, in steps of 16 of k that lie in shared memory. Blocks are small because
// Muon's matrices are often small, and because the other blocks of a multiprocessor hide the loads.
#pragma once
#include "kernels/lanes/gpu_lanes.h"

namespace stw::kernels::cuda {

inline constexpr int64_t product_tile = 64;
inline constexpr int product_threads = 64;

// One side of a product: element (i, k), i < extent, is at data + i·stride + k·depth_stride. One of the
// strides should be 1.
struct ProductSide {
  const float* data;
  int64_t extent, stride, depth_stride;
};

// Floats of a row of a tile in shared memory, some of them unused.
inline constexpr int product_step = 16, product_row = 68;

// Copies elements (first + i, begin + k) to tile[k][i]; 0 after the end. Adjacent threads take adjacent
// memory.
STW_DEVICE void fetch_side(const ProductSide& side, int64_t first, int64_t begin, int64_t depth,
                           float* tile) {
  constexpr int elements = product_step * static_cast<int>(product_tile) / product_threads,
                along = product_threads / product_step;
  // Across the depth, a thread has one i.
  static_assert(elements == product_step && product_threads == product_tile);
  const int me = static_cast<int>(threadIdx.x);
  const bool along_depth = side.depth_stride == 1;
  const int i = along_depth ? me / product_step : me, next_i = along_depth ? along : 0;
  const int k = along_depth ? me % product_step : 0, next_k = along_depth ? 0 : 1;
  const int64_t at = (first + i) * side.stride + (begin + k) * side.depth_stride,
                next = along_depth ? along * side.stride : side.depth_stride;
  float x[elements];
  STW_UNROLL
  for (int e = 0; e < elements; ++e) {
    const bool inside = first + i + e * next_i < side.extent && begin + k + e * next_k < depth;
    x[e] = inside ? side.data[at + e * next] : 0.0f;
  }
  STW_UNROLL
  for (int e = 0; e < elements; ++e) tile[(k + e * next_k) * product_row + i + e * next_i] = x[e];
}

// Calls body(i, j, x) for the elements x = Σ_k a(i, k)·b(j, k) of the tile that begins at (row, column);
// called by all threads of a block.
template <class Body>
STW_DEVICE void product_tile_of(const ProductSide& a, const ProductSide& b, int64_t depth, int64_t row,
                                int64_t column, const Body& body) {
  STW_SHARED(float4, a_tile, product_step * product_row / 4);
  STW_SHARED(float4, b_tile, product_step * product_row / 4);
  float* const a_floats = &a_tile[0].x;
  float* const b_floats = &b_tile[0].x;
  // A thread's rows and columns: four from here and four that are 32 further, so that its quarter of a warp
  // reads without bank conflicts.
  const int my_row = 4 * static_cast<int>(threadIdx.x / 8), my_column = 4 * static_cast<int>(threadIdx.x % 8);
  static_assert(chain_terms % product_step == 0);
  float total[8][8], sum[8][8];  // `sum`: the chain in progress.
  STW_UNROLL
  for (int i = 0; i < 8; ++i) STW_UNROLL
  for (int j = 0; j < 8; ++j) total[i][j] = sum[i][j] = 0.0f;
  const auto multiply = [&](int k) {
    float x[8], y[8];
    STW_UNROLL
    for (int half = 0; half < 2; ++half) {
      const float4 u = load_vector<float4>(a_floats + k * product_row + my_row + 32 * half);
      const float4 v = load_vector<float4>(b_floats + k * product_row + my_column + 32 * half);
      x[4 * half] = u.x, x[4 * half + 1] = u.y, x[4 * half + 2] = u.z, x[4 * half + 3] = u.w;
      y[4 * half] = v.x, y[4 * half + 1] = v.y, y[4 * half + 2] = v.z, y[4 * half + 3] = v.w;
    }
    STW_UNROLL
    for (int i = 0; i < 8; ++i) STW_UNROLL
    for (int j = 0; j < 8; ++j) sum[i][j] = fma1(x[i], y[j], sum[i][j]);
  };
  for (int64_t begin = 0; begin < depth; begin += product_step) {
    fetch_side(a, row, begin, depth, a_floats);
    fetch_side(b, column, begin, depth, b_floats);
    __syncthreads();
    if (depth - begin >= product_step) {
      STW_UNROLL
      for (int k = 0; k < product_step; ++k) multiply(k);
    } else {  // A chain ends where the matrices end: adding another 0 might change the sign of a zero sum.
      for (int k = 0; k < static_cast<int>(depth - begin); ++k) multiply(k);
    }
    const int64_t end = begin + product_step;
    if (end % chain_terms == 0 || end >= depth) {
      STW_UNROLL
      for (int i = 0; i < 8; ++i) STW_UNROLL
      for (int j = 0; j < 8; ++j) total[i][j] = total[i][j] + sum[i][j], sum[i][j] = 0.0f;
    }
    __syncthreads();
  }
  STW_UNROLL
  for (int i = 0; i < 8; ++i) STW_UNROLL
  for (int j = 0; j < 8; ++j) {
    const int64_t r = row + my_row + i % 4 + i / 4 * 32, c = column + my_column + j % 4 + j / 4 * 32;
    if (r < a.extent && c < b.extent) body(r, c, total[i][j]);
  }
}

}  // namespace stw::kernels::cuda
