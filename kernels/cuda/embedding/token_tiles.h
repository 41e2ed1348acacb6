// Tiles of a reduction over tokens: token_tile rows, restarting in every sample. A tile is summed from +0.
// The tiles of each chain_terms rows of a sample are a group, which is summed from +0 too. Groups are added
// in order to the accumulator.
#pragma once
#include "kernels/cuda/ahead.h"

namespace stw::kernels::cuda {

// Tiles of a group; tiles of a sample. The last group of a sample may have fewer.
struct TileGroups {
  int tiles, in_sample;
};

struct TokenTiles {
  int64_t rows, rows_per_sample;
  __host__ __device__ int64_t per_sample() const { return ceil_div(rows_per_sample, token_tile); }
  __host__ __device__ int64_t count() const {
    return rows / rows_per_sample * per_sample() + ceil_div(rows % rows_per_sample, token_tile);
  }
  __host__ __device__ int64_t first_row(int64_t tile) const {
    return tile / per_sample() * rows_per_sample + tile % per_sample() * token_tile;
  }
  __host__ __device__ int64_t end_row(int64_t tile) const {
    const int64_t first = first_row(tile), sample_end = (tile / per_sample() + 1) * rows_per_sample;
    const int64_t end = first + token_tile < sample_end ? first + token_tile : sample_end;
    return end < rows ? end : rows;
  }
  // `each`: number of sums of every tile.
  __host__ __device__ TileGroups groups(int64_t each = 1) const {
    return {static_cast<int>(chain_terms / token_tile * each), static_cast<int>(per_sample() * each)};
  }
};

// gradient (features) = (accumulate ? gradient : +0) + the groups of sums (tiles, features). Does nothing if
// gradient is null. A block has 32 columns, so that even a few hundred columns reach many SMs. Its eight
// warps fetch 128 tiles to shared memory, and the next ones to registers while one warp adds: 512 tiles take
// four times the latency of the second-level cache and 512 additions of 4 cycles, about 3 µs.
inline constexpr int fold_columns = 32, fold_threads_a_block = 256, tiles_together = 128;
inline int blocks_for_fold(int64_t features) { return blocks_for(features, fold_columns); }
STW_DEVICE void fold_tiles(const float* sums, int64_t tiles, TileGroups groups, int64_t features,
                           bool accumulate, float* gradient) {
  constexpr int loads = tiles_together * fold_columns / fold_threads_a_block;
  STW_SHARED(float, staged, tiles_together* fold_columns);
  if (gradient == nullptr) return;
  const int column = static_cast<int>(threadIdx.x) % fold_columns,
            first_tile = static_cast<int>(threadIdx.x) / fold_columns * loads;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * fold_columns; first < features;
       first += static_cast<int64_t>(gridDim.x) * fold_columns) {
    const int64_t i = first + column;
    float next[loads];
    const auto fetch = [&](int64_t tile) {
      STW_UNROLL
      for (int k = 0; k < loads; ++k)
        next[k] = i < features && tile + k < tiles ? sums[(tile + k) * features + i] : 0.0f;
    };
    fetch(first_tile);
    const bool adds = first_tile == 0 && i < features;
    float total = accumulate && adds ? gradient[i] : 0.0f, group = 0.0f;
    // Tiles left in the group and in the sample.
    int left = min(groups.tiles, groups.in_sample), left_in_sample = groups.in_sample;
    for (int64_t begin = 0; begin < tiles; begin += tiles_together) {
      STW_UNROLL
      for (int k = 0; k < loads; ++k) staged[(first_tile + k) * fold_columns + column] = next[k];
      __syncthreads();
      fetch(begin + tiles_together + first_tile);
      const int count = static_cast<int>(min(static_cast<int64_t>(tiles_together), tiles - begin));
      if (adds)
        for_each_ahead<8>(
            count, [&](int tile) { return staged[tile * fold_columns + column]; },
            [&](float sum) {
              group = group + sum;
              --left_in_sample;
              if (--left > 0) return;
              total = total + group;
              group = 0.0f;
              if (left_in_sample == 0) left_in_sample = groups.in_sample;
              left = min(groups.tiles, left_in_sample);
            });
      __syncthreads();
    }
    if (adds) gradient[i] = total + group;
  }
}

}  // namespace stw::kernels::cuda
