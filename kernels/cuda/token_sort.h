// How embedding_gradient's sort divides its workspace: two arrays of (token, row), the numbers of rows with each digit in
// each tile of rows, and where the sort's output begins for them.
#pragma once
#include <cstdint>

namespace stw::kernels::cuda {

struct TokenEntry { int32_t token, row; };

inline constexpr int64_t sort_tile = 512;   // rows, by a warp: not so many that few warps are busy, nor so few that counters are most of the memory
inline constexpr int sort_digits = 256;

struct TokenSortLayout {
  int64_t tiles;
  int64_t second_at, counts_at, bytes;   // offsets in bytes
};
inline TokenSortLayout token_sort_layout(int64_t rows) {
  TokenSortLayout a = {};
  a.tiles = (rows + sort_tile - 1) / sort_tile;
  a.second_at = rows * static_cast<int64_t>(sizeof(TokenEntry));
  a.counts_at = 2 * a.second_at;
  a.bytes = a.counts_at + a.tiles * sort_digits * static_cast<int64_t>(sizeof(int32_t));
  return a;
}

}  // namespace stw::kernels::cuda
