// Scratch memory of the CUDA kernels (kernels/cuda): pure functions of shapes. A test holds them against the kernels' own.
#pragma once
#include <algorithm>
#include <cstdint>

#include "planner/base/sizes.h"

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
// Those of every head of queries and keys by themselves.
inline uint64_t qk_norm_gradient(int64_t rows, int64_t rows_per_sample, int query_heads, int kv_heads, int head_dim) {
  return tile_sums(rows, rows_per_sample, (int64_t{query_heads} + kv_heads) * head_dim);
}
// Every row and head has two floats: the product of its output and that one's gradient, and its scaled log of the sum of exponentials.
inline uint64_t attention_gradient(int64_t rows, int heads) {
  return size_mul(size_mul(static_cast<uint64_t>(rows), static_cast<uint64_t>(heads)), 2 * sizeof(float));
}
// By the vendor's library, in parts of some samples or, of one, some heads that share keys: of a part the products above, two bytes for
// every score of whole tiles of 128 by 128, 64 KiB, and where heads share keys gradients of their own in 16 bits.
inline constexpr uint64_t library_attention = 1 << 16;
inline uint64_t library_attention_gradient(int64_t samples, int64_t sequence, int query_heads, int kv_heads, int head_dim) {
  constexpr uint64_t blocks = 256;
  const auto t = static_cast<uint64_t>(sequence), kv = static_cast<uint64_t>(kv_heads), group = static_cast<uint64_t>(query_heads / kv_heads);
  const uint64_t tiles = ceil_div(t, 128), of_head = size_mul(group, tiles), part_kv = std::min(ceil_div(blocks, of_head), kv);
  const uint64_t part_samples = part_kv < kv ? 1 : std::min(ceil_div(blocks, size_mul(kv, of_head)), static_cast<uint64_t>(samples));
  const uint64_t heads = size_mul(size_mul(part_samples, part_kv), group), edge = size_mul(tiles, 128);
  const uint64_t shared = group == 1 ? 0 : round_up(size_mul(size_mul(heads, t), 2 * static_cast<uint64_t>(head_dim)), 256);
  return size_add(size_add(round_up(size_mul(size_mul(heads, t), sizeof(float)), 256), 2 * shared), size_add(size_mul(2 * heads, size_mul(edge, edge)), library_attention));
}
// Of every sample its sum and counts, what its pairs lose, and where its documents begin.
inline uint64_t preference(int64_t samples, int64_t rows_per_sample) {
  const auto rows = static_cast<uint64_t>(rows_per_sample);
  return size_mul(static_cast<uint64_t>(samples), 24 + size_mul(ceil_div(rows, 2), 8) + size_mul(rows + 2, 4));
}
inline uint64_t loss_sum(int64_t samples) { return size_mul(static_cast<uint64_t>(samples), 16); }
// Rows sorted by token: (token, row) twice.
inline uint64_t embedding_gradient(int64_t rows) { return size_mul(static_cast<uint64_t>(rows), 16); }
// Of the update of a matrix: two as large as it, two squares of its shorter side, sums of 4096 elements, a scale. In fp32; on tensor
// cores in bf16 in rows of multiples of 8, and one more as large as it.
inline uint64_t muon(int64_t rows, int64_t columns, bool tensor) {
  const uint64_t element = tensor ? 2 : 4, side = static_cast<uint64_t>(std::min(rows, columns));
  const auto matrix = [&](uint64_t r, uint64_t c) { return round_up(size_mul(size_mul(r, tensor ? round_up(c, 8) : c), element), 64); };
  const auto h = static_cast<uint64_t>(rows), w = static_cast<uint64_t>(columns);
  const uint64_t sums = round_up(size_mul(ceil_div(size_mul(h, w), 4096), sizeof(float)), 64);
  return size_add(size_add(size_mul(tensor ? 3 : 2, matrix(h, w)), size_mul(2, matrix(side, side))), size_add(sums, sizeof(float)));
}

}  // namespace stw::cuda_workspace
