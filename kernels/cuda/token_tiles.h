// Tiles of a reduction over tokens: token_tile rows, starting anew in every sample. A tile's sum starts from +0; tiles are
// folded one after the other onto the accumulator.
#pragma once
#include "kernels/cuda/lanes.h"

namespace stw::kernels::cuda {

struct TokenTiles {
  int64_t rows, rows_per_sample;
  __host__ __device__ int64_t per_sample() const { return ceil_div(rows_per_sample, token_tile); }
  __host__ __device__ int64_t count() const {
    return rows / rows_per_sample * per_sample() + ceil_div(rows % rows_per_sample, token_tile);
  }
  __host__ __device__ int64_t first_row(int64_t tile) const { return tile / per_sample() * rows_per_sample + tile % per_sample() * token_tile; }
  __host__ __device__ int64_t end_row(int64_t tile) const {
    const int64_t first = first_row(tile), sample_end = (tile / per_sample() + 1) * rows_per_sample;
    const int64_t end = first + token_tile < sample_end ? first + token_tile : sample_end;
    return end < rows ? end : rows;
  }
};

// gradient (features) = (accumulate ? gradient : +0) + sums[0] + sums[1] + … of sums (tiles, features), a quad for 16
// columns; nothing where gradient is null.
STW_DEVICE void fold_tiles(const float* sums, int64_t tiles, int64_t features, bool accumulate, float* gradient) {
  if (gradient == nullptr) return;
  for_groups_of_grid(features, [&](int64_t i, int64_t n) {
    F16 total = accumulate ? load_group(gradient, DType::f32, i, n) : zero();
    for (int64_t tile = 0; tile < tiles; ++tile) total = add(total, load_group(sums, DType::f32, tile * features + i, n));
    store_group(gradient, DType::f32, i, total, n);
  });
}

}  // namespace stw::kernels::cuda
