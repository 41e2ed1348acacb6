// Bytes of scratch memory of the CPU's kernels: functions of shapes and of the number of threads. The planner
// allocates this much. A kernel may use less, because the division of its work depends on the threads; it
// asserts that its scratch memory fits. Kernels without a function here need none. The formulas of products
// do not decrease as shapes grow, so a part of a product needs no more than the whole.
#pragma once
#include "kernels/contract/cpu_blocks.h"
#include "kernels/contract/formats.h"
#include "kernels/contract/limits.h"
#include "kernels/contract/sizes.h"

namespace stw::kernels::cpu_workspace {

inline uint64_t up_to(uint64_t n, uint64_t most) { return n < most ? n : most; }
// Floats in whole cache lines.
inline uint64_t lines(uint64_t floats) { return round_up(floats * sizeof(float), 64); }

// Packed blocks of both operands of a product (m, k) · (k, n), and a tile in fp32 if the output has another
// type.
inline uint64_t product(int64_t m, int64_t n, int64_t k, DType output) {
  const uint64_t rows = up_to(round_up(static_cast<uint64_t>(m), panel_rows), block_rows);
  const uint64_t depth = up_to(round_up(static_cast<uint64_t>(k), 16), block_depth);
  const uint64_t columns =
      output == DType::f32 ? 0 : up_to(round_up(static_cast<uint64_t>(n), panel_columns), converted_columns);
  return ((rows + panel_columns) * depth + rows * columns) * sizeof(float);
}

// features: the sum over all parts.
inline uint64_t linear(int64_t rows, int64_t inputs, int64_t features, DType output, int threads) {
  return product(rows, features, inputs, output) * static_cast<uint64_t>(threads);
}
inline uint64_t linear_input_gradient(int64_t rows, int64_t inputs, int64_t features, DType output,
                                      int threads) {
  return product(rows, inputs, features, output) * static_cast<uint64_t>(threads);
}
// For one weight, stored as (height, width). A call computes its weights one after the other.
inline uint64_t linear_weight_gradient(int64_t rows, int64_t height, int64_t width, DType gradient,
                                       int threads) {
  return product(height, width, rows, gradient) * static_cast<uint64_t>(threads);
}

// widest: the features of the widest part.
inline uint64_t adapter(int64_t rows, int64_t rank, int64_t widest, DType output, int threads) {
  return product(rows, widest, rank, output) * static_cast<uint64_t>(threads);
}
inline uint64_t adapter_input_gradient(int64_t rows, int64_t rank, int64_t widest, DType output,
                                       int threads) {
  return product(rows, rank, widest, output) * static_cast<uint64_t>(threads);
}
inline uint64_t adapter_weight_gradient(int64_t rows, int64_t rank, int64_t widest, int threads) {
  return product(widest, rank, rows, DType::f32) * static_cast<uint64_t>(threads);
}

// The mean and the reciprocal standard deviation of every row, or of every head of queries and keys in every
// row.
inline uint64_t norm_gradient(int64_t rows) { return static_cast<uint64_t>(rows) * 8; }
inline uint64_t qk_norm_gradient(int64_t rows, int query_heads, int kv_heads) {
  return static_cast<uint64_t>(rows) *
         (static_cast<uint64_t>(query_heads) + static_cast<uint64_t>(kv_heads)) * 8;
}

// Rows sorted by token: (token, row) twice.
inline uint64_t embedding_gradient(int64_t rows) { return static_cast<uint64_t>(rows) * 16; }

// A double for each sample. The present kernel does not use it, because it adds in order.
inline uint64_t loss_sum(int64_t samples) { return static_cast<uint64_t>(samples) * sizeof(double); }

// Attention packs its operands in fp32, in rows of an odd number of lines of 16 floats (attention_tile.h).
inline uint64_t row_floats(int head_dim) { return ((static_cast<uint64_t>(head_dim) + 15) / 16 | 1) * 16; }
// Relative positions of blocks of `queries` rows. The gradient needs keys as rows too.
inline uint64_t relative(uint64_t query_rows, int64_t queries, int head_dim, bool needs_key_rows) {
  const auto stride = static_cast<uint64_t>(relative_stride(queries)),
             rows = static_cast<uint64_t>(queries + key_block);
  return lines(static_cast<uint64_t>(head_dim) * stride) +
         (needs_key_rows ? 2 : 1) * lines(rows * row_floats(head_dim)) + lines(query_rows * stride) +
         lines(rows * transposed_stride);
}
// table_rows: of relative positions; 0: none.
inline uint64_t attention(int64_t rows, int head_dim, int threads, int64_t table_rows = 0) {
  const uint64_t row = row_floats(head_dim), n = up_to(static_cast<uint64_t>(rows), query_chunk);
  const uint64_t bytes = 2 * lines(n * row) + lines(static_cast<uint64_t>(head_dim) * transposed_stride) +
                         lines(key_block * row) + lines(query_group * transposed_stride) +
                         lines(key_block + 64) + lines(n + 32) + lines(n * 16) + lines(32) +
                         (table_rows > 0 ? relative(query_group, query_chunk, head_dim, false) : 0);
  return bytes * static_cast<uint64_t>(threads);
}
// rows: of one sample. If query heads share keys, a thread holds the gradients of all keys.
inline uint64_t attention_gradient(int64_t rows, int query_heads, int kv_heads, int head_dim, int threads,
                                   int64_t table_rows = 0) {
  const uint64_t row = row_floats(head_dim), n = static_cast<uint64_t>(rows),
                 key_rows = query_heads == kv_heads ? key_block : n;
  const uint64_t bytes = 2 * lines(query_block * row) + lines(key_block * row) +
                         2 * lines(static_cast<uint64_t>(head_dim) * transposed_stride) +
                         2 * lines(query_block * transposed_stride) + lines(key_block + 64) + lines(n) +
                         lines(n * row) + 2 * lines(key_rows * row) +
                         (table_rows > 0 ? relative(query_block, query_block, head_dim, true) +
                                               2 * lines(static_cast<uint64_t>(table_rows) * row)
                                         : 0);
  return bytes * static_cast<uint64_t>(threads);
}

// One fp32 sum for each chunk.
inline uint64_t square_sum(uint64_t elements) { return ceil_div(elements, square_chunk) * sizeof(float); }

// A matrix of the parameter's size, two square matrices of its shorter side, and sums of chunks. For each
// thread, a strip and the blocks of a product.
inline uint64_t muon(int64_t rows, int64_t columns, int threads) {
  const auto shorter = static_cast<uint64_t>(rows < columns ? rows : columns),
             longer = static_cast<uint64_t>(rows < columns ? columns : rows);
  const uint64_t side = up_to(round_up(longer, muon_unit), muon_tile),
                 depth = up_to(round_up(longer, 16), block_depth);
  return lines(shorter * longer) + 2 * lines(shorter * shorter) +
         lines(ceil_div(shorter * longer, square_chunk)) +
         (lines((side + panel_columns) * depth) + lines(shorter * side)) * static_cast<uint64_t>(threads);
}
// A float for each line; for a matrix also a row for each block of rows. columns = 0: not a matrix.
inline uint64_t adafactor(int64_t count, int64_t columns) {
  const auto n = static_cast<uint64_t>(count), width = static_cast<uint64_t>(columns);
  if (columns == 0) return ceil_div(n, adafactor_line) * sizeof(float);
  return (n / width + ceil_div(n / width, adafactor_block) * width) * sizeof(float);
}

}  // namespace stw::kernels::cpu_workspace
