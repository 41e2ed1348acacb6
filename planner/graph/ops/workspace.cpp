#include "planner/graph/ops/workspace.h"

namespace stw::workspace {

namespace {

// Attention packs its operands in fp32 rows of an odd number of 16-float lines, blocks of 64 keys, 80 floats a turned row.
uint64_t row_floats(const Attributes& a) { return ((static_cast<uint64_t>(a.head_dim) + 15) / 16 | 1) * 16; }
uint64_t line(uint64_t floats) { return round_up(floats * sizeof(float), 64); }
constexpr uint64_t turned = 80, keys = 64, queries = 64, group = 24, chunk = 192;

uint64_t forward(const Attributes& a, int64_t rows, int threads) {
  const uint64_t row = row_floats(a), n = std::min<uint64_t>(static_cast<uint64_t>(rows), chunk);
  const uint64_t bytes = 2 * line(n * row) + line(static_cast<uint64_t>(a.head_dim) * turned) + line(keys * row) +
                         line(group * turned) + line(keys + 64) + line(n + 32) + line(n * 16) + line(32);
  return bytes * static_cast<uint64_t>(threads);
}

}  // namespace

uint64_t attention(const Attributes& a, int64_t sequence, int threads) { return forward(a, sequence, threads); }

uint64_t attention_cached(const Attributes& a, int64_t rows, int64_t, int threads) { return forward(a, rows, threads); }

uint64_t attention_gradient(const Attributes& a, int64_t sequence, int threads) {
  const uint64_t row = row_floats(a), n = static_cast<uint64_t>(sequence);
  const uint64_t key_rows = a.query_heads == a.kv_heads ? keys : n;
  const uint64_t bytes = 2 * line(queries * row) + line(keys * row) + 2 * line(static_cast<uint64_t>(a.head_dim) * turned) +
                         2 * line(queries * turned) + line(keys + 64) + line(n) + line(n * row) + 2 * line(key_rows * row);
  return bytes * static_cast<uint64_t>(threads);
}

uint64_t muon(int64_t rows, int64_t columns, int threads) {
  const auto shorter = static_cast<uint64_t>(std::min(rows, columns)), longer = static_cast<uint64_t>(std::max(rows, columns));
  const uint64_t side = std::min<uint64_t>(round_up(longer, 96), 384), depth = std::min<uint64_t>(round_up(longer, 16), 256);
  return line(shorter * longer) + 2 * line(shorter * shorter) + line(ceil_div(shorter * longer, 4096)) +
         (line((side + 32) * depth) + line(shorter * side)) * static_cast<uint64_t>(threads);
}

uint64_t adafactor(int64_t count, int64_t columns) {
  const auto n = static_cast<uint64_t>(count), width = static_cast<uint64_t>(columns);
  if (columns == 0) return ceil_div(n, 4096) * sizeof(float);
  return (n / width + ceil_div(n / width, 64) * width) * sizeof(float);
}

}  // namespace stw::workspace
