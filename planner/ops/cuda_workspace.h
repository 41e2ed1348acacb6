// Scratch memory of the CUDA kernels (kernels/cuda): pure functions of shapes. A test holds them against the kernels' own.
#pragma once
#include <cstdint>

#include "planner/sizes.h"

namespace stw::cuda_workspace {

// Tiles of 64 rows that start anew in every sample.
inline uint64_t token_tiles(int64_t rows, int64_t rows_per_sample) {
  const auto tiles = [](int64_t n) { return ceil_div(static_cast<uint64_t>(n), 64); };
  return size_add(size_mul(static_cast<uint64_t>(rows / rows_per_sample), tiles(rows_per_sample)), tiles(rows % rows_per_sample));
}
// One fp32 sum a tile and column.
inline uint64_t tile_sums(int64_t rows, int64_t rows_per_sample, int64_t features) {
  return size_mul(size_mul(token_tiles(rows, rows_per_sample), static_cast<uint64_t>(features)), sizeof(float));
}
inline uint64_t norm_gradient(int64_t rows, int64_t rows_per_sample, int64_t features) {
  return size_add(round_up(size_mul(static_cast<uint64_t>(rows), 8), 16), size_mul(2, tile_sums(rows, rows_per_sample, features)));
}
// Of every row and head the product of its output and that one's gradient.
inline uint64_t attention_gradient(int64_t rows, int heads) {
  return size_mul(size_mul(static_cast<uint64_t>(rows), static_cast<uint64_t>(heads)), sizeof(float));
}
inline uint64_t loss_sum(int64_t samples) { return size_mul(static_cast<uint64_t>(samples), 16); }
// Rows sorted by token: (token, row) twice, and how often each digit stands in 512 rows.
inline uint64_t embedding_gradient(int64_t rows) {
  const auto n = static_cast<uint64_t>(rows);
  return size_add(size_mul(n, 16), size_mul(ceil_div(n, 512), 1024));
}
// Of the update of a matrix: two as large as it, two squares of its shorter side, sums of 4096 elements, a scale.
inline uint64_t muon(int64_t rows, int64_t columns) {
  const auto line = [](uint64_t floats) { return round_up(size_mul(floats, sizeof(float)), 64); };
  const auto n = size_mul(static_cast<uint64_t>(rows), static_cast<uint64_t>(columns)), side = static_cast<uint64_t>(rows < columns ? rows : columns);
  return size_add(size_add(size_mul(2, line(n)), size_mul(2, line(size_mul(side, side)))), size_add(line(ceil_div(n, 4096)), sizeof(float)));
}

}  // namespace stw::cuda_workspace
