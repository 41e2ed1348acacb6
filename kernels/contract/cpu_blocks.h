// Sizes of the blocks that the CPU's kernels work in. Their scratch memory depends on them (cpu_workspace.h).
#pragma once
#include <cstdint>

namespace stw::kernels {

// Matrix products (cpu/product/gemm.h). A block of the left operand is (block_rows, block_depth). The
// register tile of every instruction set divides panel_rows and panel_columns. A 16-bit output is computed in
// fp32 tiles of at most converted_columns columns.
inline constexpr int64_t block_rows = 384, block_depth = 256;
inline constexpr int64_t panel_rows = 12, panel_columns = 32;
inline constexpr int64_t converted_columns = 256;

// Attention (cpu/attention/attention_tile.h).
inline constexpr int64_t key_block = 64;
inline constexpr int64_t query_block = 64;   // In the gradient.
inline constexpr int64_t query_group = 24;   // Forward: rows whose scores exist at a time.
inline constexpr int64_t query_chunk = 192;  // Forward: the rows of a task. They share packed keys.
inline constexpr int64_t transposed_stride = key_block + 16;
// Relative positions: a row for each distance of `queries` rows and one block of keys, in an odd number of
// lines of 16 floats.
constexpr int64_t relative_stride(int64_t queries) { return ((queries + key_block) / 16 | 1) * 16; }

// The sides of Muon's tiles (cpu/update/muon_layout.h): multiples of muon_unit, at most muon_tile.
inline constexpr int64_t muon_unit = 96, muon_tile = 384;

}  // namespace stw::kernels
