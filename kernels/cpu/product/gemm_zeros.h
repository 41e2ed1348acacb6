// Multiplies a block of the matrix product without the tokens whose gradient is zero (View::has_zero_tokens).
// These tokens are rows of the block, or terms of its sums. They would add +0 to every sum.
#pragma once
#include "kernels/cpu/product/gemm_panel.h"
#include "kernels/cpu/product/gemm_tile.h"
#include "kernels/cpu/zeros.h"

namespace stw::kernels::STW_ISA {

class NonzeroPart {
 public:
  // a's rows or columns are tokens, or else b's rows are, or there are none. `chain`: the terms of a chain.
  NonzeroPart(const View& a, const View& b, int64_t n, int64_t chain) : a_(a), b_(b), n_(n), chain_(chain) {}
  // Finds the rows of a, from `i0` on, and the terms, from `k0` on, that are not zero.
  void find(int64_t i0, int64_t rows, int64_t k0, int64_t depth) {
    i0_ = i0, k0_ = k0, all_rows_ = rows, all_terms_ = depth;
    row_count_ = term_count_ = 0;
    for (int64_t r = 0; r < rows; ++r)
      if (!tokens_are_rows() || !are_zero(element(a_, i0 + r, k0), a_.dtype, depth))
        rows_[row_count_++] = (int16_t)r;
    for (int64_t t = 0; t < depth; ++t)
      if (tokens_are_rows() || !is_zero_term(t)) terms_[term_count_++] = (int16_t)t;
  }
  // Whether leaving out the others saves time.
  bool is_small() const {
    constexpr int64_t least_share = 8;
    return row_count_ < all_rows_ - all_rows_ / least_share ||
           term_count_ < all_terms_ - all_terms_ / least_share;
  }
  // Packs these rows and terms of a into `block`.
  void pack(float* block) const {
    with_dtype(a_.dtype, [&](auto stored) {
      for (int64_t i = 0; i < row_count_; i += tile_rows)
        pack_rows<stored.dtype>(i, min(tile_rows, row_count_ - i), block + i * term_count_);
    });
  }
  // Numbers of prefetches of a product (Ahead).
  int64_t intervals() const { return ceil_div(row_count_, tile_rows) * (term_count_ / Ahead::interval); }
  // c: at (i0, j). Computes `columns` columns from the packed `block`. `panel`: for the columns of b.
  void multiply(int64_t j, int64_t columns, const float* block, float* panel, float* c, int64_t ldc,
                bool zero_start, Ahead ahead) const {
    with_dtype(b_.dtype, [&](auto stored) { pack_columns<stored.dtype>(j, columns, panel); });
    const size_t bytes = (size_t)columns * sizeof(float);
    int64_t done = 0;  // Rows of c.
    for (int64_t i = 0; i < row_count_; i += tile_rows) {
      const int64_t lanes = min(tile_rows, row_count_ - i);
      float tile[tile_rows * tile_columns] = {0};
      for (int64_t r = 0; r < lanes && !zero_start; ++r)
        memcpy(tile + r * tile_columns, c + rows_[i + r] * ldc, bytes);
      ahead.c = i + lanes < row_count_ ? c + rows_[i + lanes] * ldc : c + columns;
      multiply_tile(lanes, block + i * term_count_, panel, tile, zero_start, ahead);
      for (int64_t r = 0; r < lanes; ++r) {
        for (; done < rows_[i + r]; ++done) add_zero(c + done * ldc, columns, zero_start);
        memcpy(c + done++ * ldc, tile + r * tile_columns, bytes);
      }
    }
    for (; done < all_rows_; ++done) add_zero(c + done * ldc, columns, zero_start);
  }

 private:
  // Otherwise they are terms.
  bool tokens_are_rows() const { return a_.has_zero_tokens && a_.column_stride == 1; }
  bool is_zero_term(int64_t t) const {
    return (a_.has_zero_tokens && are_zero(element(a_, i0_, k0_ + t), a_.dtype, all_rows_)) ||
           (b_.has_zero_tokens && are_zero(element(b_, k0_ + t, 0), b_.dtype, n_));
  }

  template <DType dtype>
  void pack_rows(int64_t first, int64_t lanes, float* to) const {
    if (tokens_are_rows()) {
      int64_t lane_at[places<tile_rows>];
      for (int64_t lane = 0; lane < places<tile_rows>; ++lane)
        lane_at[lane] = rows_[first + min(lane, lanes - 1)] * a_.row_stride;
      return pack_from<dtype, tile_rows>(element(a_, i0_, k0_), lane_at, lanes, term_count_, to);
    }
    for (int64_t t = 0; t < term_count_; ++t)
      pack_typed<dtype, tile_rows>(element(a_, i0_ + first, k0_ + terms_[t]), a_.row_stride, a_.column_stride,
                                   lanes, 1, to + t * tile_rows);
  }
  template <DType dtype>
  void pack_columns(int64_t j, int64_t columns, float* to) const {
    if (term_count_ == all_terms_)
      return pack_typed<dtype, tile_columns>(element(b_, k0_, j), b_.column_stride, b_.row_stride, columns,
                                             term_count_, to);
    for (int64_t t = 0; t < term_count_; ++t)
      pack_typed<dtype, tile_columns>(element(b_, k0_ + terms_[t], j), b_.column_stride, b_.row_stride,
                                      columns, 1, to + t * tile_columns);
  }

  // Chains of all terms, one call; or chains that have lost some of their terms, one call each.
  void multiply_tile(int64_t lanes, const float* a, const float* b, float* tile, bool zero_start,
                     Ahead& ahead) const {
    const TileProduct product = tile_for(lanes).product[false];
    if (term_count_ == all_terms_)
      return product(all_terms_, chain_, a, 0, b, tile_columns, tile, tile_columns, zero_start, nullptr,
                     ahead);
    for (int64_t k = 0, begin = 0, end = 0; k < all_terms_; k += chain_, begin = end, zero_start = false) {
      while (end < term_count_ && terms_[end] < k + chain_) ++end;
      const int64_t terms = end - begin;
      if (terms > 0)
        product(terms, terms, a + begin * tile_rows, 0, b + begin * tile_columns, tile_columns, tile,
                tile_columns, zero_start, nullptr, ahead);
      else add_zero(tile, tile_rows * tile_columns, zero_start);
    }
  }
  // Adds the terms that were left out. This changes only a -0.
  static void add_zero(float* c, int64_t count, bool zero_start) {
    for (int64_t i = 0; i < count; ++i) c[i] = (zero_start ? 0.0f : c[i]) + 0.0f;
  }

  const View &a_, &b_;
  const int64_t n_, chain_;
  int64_t i0_ = 0, k0_ = 0, all_rows_ = 0, all_terms_ = 0, row_count_ = 0, term_count_ = 0;
  int16_t rows_[block_rows], terms_[block_depth];
};

}  // namespace stw::kernels::STW_ISA
