// Scratch memory of the kernels: pure functions of shapes and threads that bound what kernels/ uses. A test holds them
// against the kernels' own functions.
#pragma once
#include <algorithm>
#include <cstdint>

#include "planner/graph/op.h"
#include "planner/base/sizes.h"
#include "planner/graph/tensor.h"

namespace stw::workspace {

// Panels of a product with m rows and depth k, and a tile in fp32 for outputs of another type; see kernels/cpu/product/gemm.h. More
// rows never need less, though the kernels, which cut them evenly, may.
inline uint64_t product(int64_t m, int64_t n, int64_t k, Format output) {
  const uint64_t rows = std::min<uint64_t>(round_up(static_cast<uint64_t>(m), 12), 384);
  const uint64_t depth = std::min<uint64_t>(round_up(static_cast<uint64_t>(k), 16), 256);
  const uint64_t columns = output == Format::f32 ? 0 : std::min<uint64_t>(round_up(static_cast<uint64_t>(n), 32), 256);
  return ((rows + 32) * depth + rows * columns) * sizeof(float);
}
inline uint64_t linear(int64_t rows, int64_t inputs, int64_t features, Format output, int threads) {
  return product(rows, features, inputs, output) * static_cast<uint64_t>(threads);
}
inline uint64_t linear_input_gradient(int64_t rows, int64_t inputs, int64_t features, Format output, int threads) {
  return product(rows, inputs, features, output) * static_cast<uint64_t>(threads);
}
// Of one weight, (height, width) as it is stored.
inline uint64_t linear_weight_gradient(int64_t rows, int64_t height, int64_t width, Format gradient, int threads) {
  return product(height, width, rows, gradient) * static_cast<uint64_t>(threads);
}
inline uint64_t linear_bias_gradient(int64_t, int64_t, int) { return 0; }
// Of adapters side by side, of which the widest part has so many features.
inline uint64_t adapter(int64_t rows, int64_t rank, int64_t features, Format output, int threads) {
  return product(rows, features, rank, output) * static_cast<uint64_t>(threads);
}
inline uint64_t adapter_input_gradient(int64_t rows, int64_t rank, int64_t features, Format output, int threads) {
  return product(rows, rank, features, output) * static_cast<uint64_t>(threads);
}
inline uint64_t adapter_weight_gradient(int64_t rows, int64_t rank, int64_t features, int threads) {
  return product(features, rank, rows, Format::f32) * static_cast<uint64_t>(threads);
}
inline uint64_t norm_gradient(int64_t rows) { return static_cast<uint64_t>(rows) * 8; }
inline uint64_t qk_norm_gradient(int64_t rows, int query_heads, int kv_heads) {
  return static_cast<uint64_t>(rows) * (static_cast<uint64_t>(query_heads) + static_cast<uint64_t>(kv_heads)) * 8;
}
inline uint64_t embedding_gradient(int64_t rows, int64_t) { return static_cast<uint64_t>(rows) * 16; }
inline uint64_t square_sum(uint64_t elements) { return ceil_div(elements, 4096) * sizeof(float); }
// Of the update of a matrix: one as large as it, two squares of its shorter side, sums; a strip and panels a thread.
uint64_t muon(int64_t rows, int64_t columns, int threads);
uint64_t adafactor(int64_t count, int64_t columns);   // columns 0: not a matrix
uint64_t attention(const Attributes& a, int64_t sequence, int threads);
uint64_t attention_gradient(const Attributes& a, int64_t sequence, int threads);
uint64_t attention_cached(const Attributes& a, int64_t rows, int64_t capacity, int threads);
inline uint64_t cross_entropy(int64_t, int64_t, int) { return 0; }
inline uint64_t loss_sum(int64_t samples) { return static_cast<uint64_t>(samples) * sizeof(double); }

}  // namespace stw::workspace
