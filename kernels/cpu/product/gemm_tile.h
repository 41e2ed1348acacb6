// The register tile of the matrix product, and tiles that an edge cuts.
#pragma once
#include "kernels/cpu/product/gemm.h"

namespace stw::kernels::STW_ISA {

// A tile has tile_rows × tile_vectors vectors of 16 columns. The registers are filled by its accumulators,
// one row of b and one element of a.
#if defined(STW_ISA_AVX512)
static constexpr int tile_rows = 12, tile_vectors = 2;
#elif defined(STW_ISA_AVX2) || defined(STW_ISA_NEON)
static constexpr int tile_rows = 6, tile_vectors = 1;
#else
static constexpr int tile_rows = 4, tile_vectors = 1;
#endif
static constexpr int tile_columns = 16 * tile_vectors;
static_assert(panel_rows % tile_rows == 0 && panel_columns % tile_columns == 0 &&
              block_rows % panel_rows == 0);

STW_INLINE const void* element(const View& view, int64_t row, int64_t column) {
  const int64_t at = row * view.row_stride + column * view.column_stride;
  return (const char*)view.data + at * element_bytes(view.dtype);
}

alignas(64) static const float zeros[tile_columns] = {};

// Cache lines that later tiles need, fetched one by one while a tile is computed. They come from too many
// places for the processor's own prefetcher. Fetched all at once, they would delay the loads of the
// processor. Addresses after the end are harmless.
struct Ahead {
  // Elements of k between two fetches.
  static constexpr int64_t line_bytes = 64, interval = tile_vectors > 1 ? 4 : 16;
  const float* c = nullptr;  // The next tile, with rows ldc apart.
  int64_t ldc = 0;
  // The next part of b: vectors of `length` bytes, `stride` bytes apart; `offset` bytes of the current one
  // are fetched. Every interval has the same number of fetches, `fetches`, each `step` bytes (at most a
  // line) after the one before, so that no branch depends on the progress.
  const char* vector = nullptr;
  int64_t length = 0, stride = 0, offset = 0, step = 0, fetches = 0;
};

STW_INLINE void fetch_b(Ahead& ahead) {
  for (int64_t i = 0; i < ahead.fetches; ++i) {
    __builtin_prefetch(ahead.vector + ahead.offset);
    ahead.offset += ahead.step;
    const int64_t ends = ahead.offset >= ahead.length;
    ahead.vector += ends * ahead.stride;
    ahead.offset -= ends * ahead.length;
  }
}

// Computes rows × tile_columns of `c`. `b` is a panel with rows `ldb` apart. If `in_place`, `a` is rows that
// are contiguous along k and `lda` apart; otherwise, `a` is a panel too. Chains of `chain` terms (the last
// one may have fewer) are added in order to `c`, or to +0 if `zero_start`.
template <int rows, bool in_place>
static void tile_product(int64_t depth, int64_t chain, const float* a, int64_t lda, const float* b,
                         int64_t ldb, float* c, int64_t ldc, bool zero_start, const float* bias,
                         Ahead& ahead) {
  // Prefetches into L2, because a set of L1 cannot hold this tile and the next if rows are a multiple of 4
  // KiB apart.
  for (int r = 0; r < tile_rows; ++r) {
    __builtin_prefetch(ahead.c + r * ahead.ldc, 0, 2);
    __builtin_prefetch(ahead.c + r * ahead.ldc + tile_columns - 1, 0, 2);
  }
  const float* total = zero_start ? zeros : c;  // The next chain is added to it.
  int64_t total_stride = zero_start ? 0 : ldc;
  F16 sum[rows][tile_vectors];
  const auto step = [&] {
    F16 row[tile_vectors];
    for (int v = 0; v < tile_vectors; ++v) row[v] = load(b + 16 * v);
    for (int r = 0; r < rows; ++r) {
      const F16 factor = splat(in_place ? a[r * lda] : a[r]);
      for (int v = 0; v < tile_vectors; ++v) sum[r][v] = fma(factor, row[v], sum[r][v]);
    }
    a += in_place ? 1 : tile_rows;
    b += ldb;
  };
  for (int64_t k = 0; k < depth;) {
    const int64_t end = min(depth, k + chain);
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < tile_vectors; ++v) sum[r][v] = zero();
    for (; k + Ahead::interval <= end; k += Ahead::interval) {
      fetch_b(ahead);
#pragma GCC unroll 4
      for (int64_t i = 0; i < Ahead::interval; ++i) step();
    }
    for (; k < end; ++k) step();
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < tile_vectors; ++v)
        sum[r][v] = add(load(total + r * total_stride + 16 * v), sum[r][v]);
    if (bias != nullptr && end == depth)
      for (int v = 0; v < tile_vectors; ++v) {
        const F16 last = load(bias + 16 * v);
        for (int r = 0; r < rows; ++r) sum[r][v] = add(sum[r][v], last);
      }
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < tile_vectors; ++v) store(c + r * ldc + 16 * v, sum[r][v]);
    total = c;
    total_stride = ldc;
  }
}

using TileProduct = void (*)(int64_t, int64_t, const float*, int64_t, const float*, int64_t, float*, int64_t,
                             bool, const float*, Ahead&);
struct RowsOfTile {
  TileProduct product[2];  // Index: in_place.
  int rows;
};
template <int rows>
static RowsOfTile tile_of() {
  return {{tile_product<rows, false>, tile_product<rows, true>}, rows};
}
// The smallest tile with at least `rows` rows.
static RowsOfTile tile_for(int64_t rows) {
  if (rows <= 1) return tile_of<1>();
  if (rows <= 2) return tile_of<2>();
  if (rows <= 4) return tile_of<4>();
  if constexpr (tile_rows > 6) {
    if (rows <= 8) return tile_of<8>();
  }
  return tile_of<tile_rows>();
}

// Computes a tile that the right or lower edge of c cuts, in a separate buffer.
static void edge_product(TileProduct product, int64_t rows, int64_t columns, int64_t depth, int64_t chain,
                         const float* a, int64_t lda, const float* b, int64_t ldb, float* c, int64_t ldc,
                         bool zero_start, const float* bias, Ahead& ahead) {
  float whole[tile_rows * tile_columns] = {0};
  const size_t bytes = (size_t)columns * sizeof(float);
  if (!zero_start)
    for (int64_t r = 0; r < rows; ++r) memcpy(whole + r * tile_columns, c + r * ldc, bytes);
  product(depth, chain, a, lda, b, ldb, whole, tile_columns, zero_start, bias, ahead);
  for (int64_t r = 0; r < rows; ++r) memcpy(c + r * ldc, whole + r * tile_columns, bytes);
}

}  // namespace stw::kernels::STW_ISA
