// Bytes of scratch memory of the CUDA kernels: functions of shapes, exact to the byte. Kernels without a
// function here need none.
#pragma once
#include "kernels/contract/attention_parts.h"
#include "kernels/contract/cpu_workspace.h"
#include "kernels/contract/limits.h"
#include "kernels/contract/sizes.h"

namespace stw::kernels::cuda_workspace {

// The number of tiles of token_tile rows. Tiles start anew in every sample.
inline uint64_t token_tiles(int64_t rows, int64_t rows_per_sample) {
  const auto tiles = [](int64_t n) { return ceil_div(static_cast<uint64_t>(n), token_tile); };
  return size_add(size_mul(static_cast<uint64_t>(rows / rows_per_sample), tiles(rows_per_sample)),
                  tiles(rows % rows_per_sample));
}
// One fp32 sum for each tile and column.
inline uint64_t tile_sums(int64_t rows, int64_t rows_per_sample, int64_t features) {
  return size_mul(size_mul(token_tiles(rows, rows_per_sample), static_cast<uint64_t>(features)),
                  sizeof(float));
}

// The mean and the reciprocal standard deviation of every row, and the sums of tiles for weight and bias.
inline uint64_t norm_gradient(int64_t rows, int64_t rows_per_sample, int64_t features) {
  return size_add(round_up(size_mul(static_cast<uint64_t>(rows), 8), 16),
                  size_mul(2, tile_sums(rows, rows_per_sample, features)));
}
// Sums of tiles for each head of queries and keys.
inline uint64_t qk_norm_gradient(int64_t rows, int64_t rows_per_sample, int query_heads, int kv_heads,
                                 int head_dim) {
  return tile_sums(rows, rows_per_sample, (int64_t{query_heads} + kv_heads) * head_dim);
}

// Our own kernels: two floats for each row and query head. One is the dot product of the output and its
// gradient, the other is log2(e) · lse.
inline uint64_t attention_gradient(int64_t rows, int query_heads) {
  return size_mul(size_mul(static_cast<uint64_t>(rows), static_cast<uint64_t>(query_heads)),
                  2 * sizeof(float));
}
// The largest head of attention with relative positions, whose tiles fit into 99 KB of shared memory.
inline constexpr int most_relative_head = 128;
// The number of blocks per head that sum the gradient of the table of relative positions on tensor cores.
// Each has its own sums. There is one block for every 256 rows, at most four: more would need more memory and
// traffic.
inline constexpr int relative_sum_parts(int64_t rows_per_sample) {
  return rows_per_sample > 768 ? 4 : static_cast<int>((rows_per_sample + 255) / 256);
}
// attention_gradient with relative positions. If their table is trained, each sample also has sums for the
// table's rows, whose heads have a multiple of 64 columns. parts: 2 if the table has keys and queries, else
// 1. copies: 1 on the CUDA cores, relative_sum_parts on tensor cores.
inline uint64_t relative_attention_gradient(int64_t rows, int64_t samples, int heads, int head_dim,
                                            int64_t table_rows, int parts, int copies) {
  const uint64_t of_head =
      size_mul(size_mul(static_cast<uint64_t>(table_rows), static_cast<uint64_t>(parts * copies)),
               round_up(static_cast<uint64_t>(head_dim), 64));
  const uint64_t sums = size_mul(size_mul(static_cast<uint64_t>(samples), static_cast<uint64_t>(heads)),
                                 size_mul(of_head, sizeof(float)));
  return size_add(round_up(attention_gradient(rows, heads), 64), sums);
}
// Used if a library may compute the attention. If the library declines, our own kernels use the memory.
inline uint64_t library_attention() { return attention_library_bytes; }
inline uint64_t library_attention_gradient(const AttentionShape& s) {
  const auto rows = size_mul(static_cast<uint64_t>(s.samples), static_cast<uint64_t>(s.rows_per_sample));
  const uint64_t for_our_kernels =
      attention_gradient(static_cast<int64_t>(rows), static_cast<int>(s.query_heads));
  const auto for_library = static_cast<uint64_t>(attention_scratch(s, largest_attention_part(s)).bytes);
  return for_library > for_our_kernels ? for_library : for_our_kernels;
}

// Rows sorted by token: (token, row) twice.
inline uint64_t embedding_gradient(int64_t rows) { return size_mul(static_cast<uint64_t>(rows), 16); }

// A sum and a count for each sample.
inline uint64_t loss_sum(int64_t samples) { return size_mul(static_cast<uint64_t>(samples), 16); }
// For each sample: a sum and two counts, the losses of its pairs, and the first rows of its documents.
inline uint64_t preference(int64_t samples, int64_t rows_per_sample) {
  const auto rows = static_cast<uint64_t>(rows_per_sample);
  return size_mul(static_cast<uint64_t>(samples),
                  24 + size_mul(ceil_div(rows, 2), 8) + size_mul(rows + 2, 4));
}

inline uint64_t square_sum(uint64_t elements) { return cpu_workspace::square_sum(elements); }

// Two matrices of the parameter's size, two square matrices of its shorter side, sums of chunks, and a scale,
// in fp32. tensor: the matrices are in bf16, with rows padded to multiples of tensor_chunk, and there is a
// third matrix of the parameter's size.
inline uint64_t muon(int64_t rows, int64_t columns, bool tensor) {
  const uint64_t element = tensor ? 2 : 4, side = static_cast<uint64_t>(rows < columns ? rows : columns);
  const auto matrix = [&](uint64_t r, uint64_t c) {
    return round_up(size_mul(size_mul(r, tensor ? round_up(c, tensor_chunk) : c), element), 64);
  };
  const auto h = static_cast<uint64_t>(rows), w = static_cast<uint64_t>(columns);
  const uint64_t sums = round_up(size_mul(ceil_div(size_mul(h, w), square_chunk), sizeof(float)), 64);
  return size_add(size_add(size_mul(tensor ? 3 : 2, matrix(h, w)), size_mul(2, matrix(side, side))),
                  size_add(sums, sizeof(float)));
}

// Two scalars in addition to the scratch memory of the CPU's kernel.
inline uint64_t adafactor(int64_t count, int64_t columns) {
  return 16 + cpu_workspace::adafactor(count, columns);
}

}  // namespace stw::kernels::cuda_workspace
