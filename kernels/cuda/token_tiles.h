// Tiles of a reduction over tokens: token_tile rows, starting anew in every sample. A tile's sum starts from +0; tiles are
// folded one after the other onto the accumulator.
#pragma once
#include "kernels/cuda/ahead.h"

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

// gradient (features) = (accumulate ? gradient : +0) + sums[0] + sums[1] + … of sums (tiles, features); nothing where gradient
// is null. A thread a column, in blocks of a warp, so that even a few hundred columns reach many SMs; the chain of tiles is
// serial, its loads run 32 to 64 tiles ahead of it: 512 tiles take 16 times the latency of the second-level cache, some 5 µs.
inline constexpr int fold_threads_a_block = 32;
inline int blocks_for_fold(int64_t features) { return blocks_for(features, fold_threads_a_block); }
STW_DEVICE void fold_tiles(const float* sums, int64_t tiles, int64_t features, bool accumulate, float* gradient) {
  if (gradient == nullptr) return;
  for (int64_t i = thread_of_grid(); i < features; i += static_cast<int64_t>(gridDim.x) * blockDim.x) {
    float total = accumulate ? gradient[i] : 0.0f;
    in_order<32>(tiles, [&](int64_t tile) { return sums[tile * features + i]; }, [&](float sum) { total = total + sum; });
    gradient[i] = total;
  }
}

}  // namespace stw::kernels::cuda
