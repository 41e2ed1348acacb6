// chain_product: the order in which tiles are computed. gemm.h describes the blocking.
#include "kernels/cpu/product/gemm.h"

#include <assert.h>

#include "kernels/cpu/product/gemm_few_rows.h"
#include "kernels/cpu/product/gemm_panel.h"
#include "kernels/cpu/product/gemm_tile.h"
#include "kernels/cpu/product/gemm_zeros.h"

namespace stw::kernels::STW_ISA {

static void add_bias(int64_t m, int64_t n, float* c, int64_t ldc, const void* bias, DType dtype) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) c[i * ldc + j] = c[i * ldc + j] + load1(bias, dtype, j);
}

// The prefetches of a panel of b, spread over `intervals` intervals.
static Ahead ahead_of(const View& b, int64_t k0, int64_t j, int64_t columns, int64_t depth,
                      int64_t intervals) {
  const bool along = b.row_stride == 1;  // k is contiguous in memory.
  const int64_t bytes = element_bytes(b.dtype), vectors = along ? columns : depth;
  Ahead ahead;
  ahead.vector = (const char*)element(b, k0, j);
  ahead.length = round_up((along ? depth : columns) * bytes, Ahead::line_bytes);
  ahead.stride = (along ? b.column_stride : b.row_stride) * bytes;
  const int64_t in_interval = ceil_div(vectors * ahead.length, max(1, intervals));
  ahead.fetches = ceil_div(in_interval, Ahead::line_bytes);
  ahead.step = ceil_div(in_interval, ahead.fetches);
  return ahead;
}

// Rows that are a multiple of this number of bytes apart fall into the same set of L1.
static constexpr int64_t way_bytes = 4096;
static bool rows_share_cache_set(const View& v) {
  return v.row_stride * (int64_t)sizeof(float) % way_bytes == 0;
}

// fp32 rows of a that are contiguous along k need no packing, with two exceptions: if many panels of b read
// them, or if more rows fall into one set of L1 than it may hold. On a Zen 5, whose sets hold twelve lines,
// this was measured to be as fast or faster for 64 to 1,024 rows.
static bool is_read_in_place(const View& a, int64_t n) {
  constexpr int64_t most_columns = 512, fewest_ways = 8;
  if (a.dtype != DType::f32 || a.column_stride != 1 || n > most_columns) return false;
  return tile_rows <= fewest_ways || !rows_share_cache_set(a);
}

// fp32 rows of b that only few tiles read need no packing either. On the same machine, this was measured to
// be 6 % faster for 64 rows of a, 4 % for 128.
static bool are_columns_read_in_place(const View& b, int64_t rows) {
  constexpr int64_t most_rows = 192;
  return b.dtype == DType::f32 && b.column_stride == 1 && rows <= most_rows && !rows_share_cache_set(b);
}

// Rows of the next tile that is read in place. Two tiles of eight rows cost less than tiles of twelve and
// four: a tile of four loads as much of b as one of twelve, for a third of the work.
static int64_t rows_in_place(int64_t left) {
  return tile_rows == 12 && left == 16 ? 8 : min(tile_rows, left);
}

// Cuts k into blocks of whole chains. A block has block_depth terms if every chain is full. If samples are
// shorter than a chain, it has the chains of several samples. Otherwise, it has one chain.
class BlocksOfK {
 public:
  BlocksOfK(int64_t k, const Chains& chains) : k_(k) {
    if (chains.restart <= 0 || chains.restart % chain_terms == 0) return;  // Every chain is full.
    if (chains.restart < chain_terms) {
      chain_ = chains.restart;
      depth_ = block_depth / chain_ * chain_;
      return;
    }
    sample_ = chains.restart;
    first_ = chains.first;
  }
  int64_t count() const {
    if (sample_ == 0) return ceil_div(k_, depth_);
    return (first_ + k_) / sample_ * blocks_a_sample() + ceil_div((first_ + k_) % sample_, chain_terms) -
           first_ / chain_terms;
  }
  struct Block {
    int64_t k0, depth;
  };
  Block at(int64_t index) const {
    if (sample_ == 0) return {index * depth_, min(depth_, k_ - index * depth_)};
    const int64_t block = index + first_ / chain_terms,
                  sample_at = block / blocks_a_sample() * sample_ - first_;
    const int64_t k0 = sample_at + block % blocks_a_sample() * chain_terms;
    return {k0, min(k_, min(sample_at + sample_, k0 + chain_terms)) - k0};
  }
  int64_t chain() const { return chain_; }  // Terms of a chain in a block; the last chain may have fewer.

 private:
  int64_t blocks_a_sample() const { return ceil_div(sample_, chain_terms); }
  int64_t k_, chain_ = chain_terms, depth_ = block_depth;
  // For samples whose length is no multiple of chain_terms: their length, and the place of k = 0.
  int64_t sample_ = 0, first_ = 0;
};
static_assert(block_depth % chain_terms == 0);

// For each block of rows of a, visits all panels of b. Usually the outer loop goes over the blocks of k and
// the inner one over the columns. If the columns of b are contiguous in memory and a is read in place, it is
// the other way round.
static void product_by_panels(int64_t m, int64_t n, int64_t k, View a, View b, float* c, int64_t ldc,
                              bool accumulate, float* workspace, const void* bias, DType bias_dtype,
                              const Chains& chains) {
  const BlocksOfK blocks_of_k(k, chains);
  float* const panel = workspace;
  float* const block = panel + panel_columns * min(block_depth, round_up(k, 16));
  const bool packs = !is_read_in_place(a, n);
  const bool by_columns = !packs && b.row_stride == 1;
  const int64_t blocks = blocks_of_k.count(), chain = blocks_of_k.chain(), panels = ceil_div(n, tile_columns);
  struct Part {
    int64_t k0, depth, j, columns;
  };
  const auto part_at = [&](int64_t step) {
    const auto [k0, depth] = blocks_of_k.at(by_columns ? step % blocks : step / panels);
    const int64_t j = (by_columns ? step / blocks : step % panels) * tile_columns;
    return Part{k0, depth, j, min(tile_columns, n - j)};
  };
  const bool may_have_zeros = a.has_zero_tokens || b.has_zero_tokens;
  assert(!may_have_zeros || bias == nullptr);
  NonzeroPart nonzero(a, b, n, chain);
  for (int64_t i0 = 0; i0 < m; i0 += block_rows) {
    const int64_t rows = min(block_rows, m - i0), tiles = ceil_div(rows, tile_rows), steps = blocks * panels;
    for (int64_t step = 0; step < steps; ++step) {
      const auto [k0, depth, j, columns] = part_at(step);
      const bool zero_start = k0 == 0 && !accumulate, biased = bias != nullptr && k0 + depth == k;
      const Part next = step + 1 < steps ? part_at(step + 1) : Part{};
      const auto ahead_in = [&](int64_t intervals) {
        Ahead ahead =
            next.depth > 0 ? ahead_of(b, next.k0, next.j, next.columns, next.depth, intervals) : Ahead{};
        ahead.ldc = ldc;
        return ahead;
      };
      if (may_have_zeros && (j == 0 || by_columns)) {
        nonzero.find(i0, rows, k0, depth);
        if (nonzero.is_small()) nonzero.pack(block);
      }
      if (nonzero.is_small()) {
        nonzero.multiply(j, columns, block, panel, c + i0 * ldc + j, ldc, zero_start,
                         ahead_in(nonzero.intervals()));
        continue;
      }
      if (j == 0 || by_columns) {
        // If rows are read in place, only the remainder is packed, and only if no tile has its number of
        // rows.
        const int64_t cut = rows % tile_rows, first = packs                                   ? 0
                                                      : cut != 0 && cut != tile_for(cut).rows ? rows - cut
                                                                                              : rows;
        pack_panels<tile_rows>(element(a, i0 + first, k0), a.dtype, a.row_stride, a.column_stride,
                               rows - first, depth, block + first * depth);
      }
      const bool b_in_place = columns == tile_columns && are_columns_read_in_place(b, rows);
      const float* const right = b_in_place ? (const float*)element(b, k0, j) : panel;
      const int64_t ldb = b_in_place ? b.row_stride : tile_columns;
      if (!b_in_place)
        pack_panel<tile_columns>(element(b, k0, j), b.dtype, b.column_stride, b.row_stride, columns, depth,
                                 panel);
      float wide_bias[tile_columns] = {0};
      if (biased)
        for (int64_t q = 0; q < columns; ++q) wide_bias[q] = load1(bias, bias_dtype, j + q);
      Ahead ahead = ahead_in(tiles * (depth / Ahead::interval));
      for (int64_t i = 0, high; i < rows; i += high) {
        high = packs ? min(tile_rows, rows - i) : rows_in_place(rows - i);
        const RowsOfTile tile = tile_for(high);
        float* const to = c + (i0 + i) * ldc + j;
        const bool in_place = !packs && high == tile.rows;
        const float* const from = in_place ? (const float*)element(a, i0 + i, k0) : block + i * depth;
        ahead.c = i + high < rows ? to + high * ldc : c + i0 * ldc + next.j;
        const TileProduct product = tile.product[in_place];
        const float* const last = biased ? wide_bias : nullptr;
        if (high == tile.rows && columns == tile_columns)
          product(depth, chain, from, a.row_stride, right, ldb, to, ldc, zero_start, last, ahead);
        else
          edge_product(product, high, columns, depth, chain, from, a.row_stride, right, ldb, to, ldc,
                       zero_start, last, ahead);
      }
    }
  }
}

void chain_product(int64_t m, int64_t n, int64_t k, View a, View b, float* c, int64_t ldc, bool accumulate,
                   void* workspace, const void* bias, DType bias_dtype, const Chains& chains) {
  assert(chains.first >= 0 && chains.first % chain_terms == 0 &&
         (chains.restart <= 0 || chains.first < chains.restart));
  if (k <= 0 && !accumulate)
    for (int64_t i = 0; i < m; ++i) memset(c + i * ldc, 0, (size_t)n * sizeof(float));
  if (k <= 0 || (m <= few_rows && (b.column_stride == 1 || b.row_stride == 1))) {
    if (k > 0) few_rows_product(m, n, k, a, b, c, ldc, accumulate, chains, (float*)workspace);
    if (bias != nullptr) add_bias(m, n, c, ldc, bias, bias_dtype);
  } else {
    product_by_panels(m, n, k, a, b, c, ldc, accumulate, (float*)workspace, bias, bias_dtype, chains);
  }
}

}  // namespace stw::kernels::STW_ISA
