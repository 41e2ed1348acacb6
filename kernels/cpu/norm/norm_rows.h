// One row of a norm and of its gradient, and a strip of columns of the weight's gradient. A row is a token's
// row (norm.cpp, norm_gradient.cpp) or one of its heads (qk_norm.cpp, qk_norm_gradient.cpp).
#pragma once
#include "kernels/common/norm_row.h"
#include "kernels/cpu/kernels_isa.h"
#include "kernels/lanes/split.h"

namespace stw::kernels::STW_ISA {

STW_INLINE void normalize_row(const NormArgs& args, int64_t row) {
  RowStatistics statistics = row_statistics(args, row);
  F16 mean = splat(statistics.mean), rstd = splat(statistics.rstd), offset = splat(args.weight_offset);
  for_groups(0, args.features, [&](int64_t i, int64_t n) {
    F16 x = load_group(args.x.data, args.x.dtype, row * args.features + i, n);
    F16 normalized = mul(sub(x, mean), rstd),
        w = add(load_group(args.weight, args.weight_dtype, i, n), offset);
    F16 y = args.bias == nullptr ? mul(normalized, w)
                                 : fma(normalized, w, load_group(args.bias, args.weight_dtype, i, n));
    store_group(args.y.data, args.y.dtype, row * args.features + i, y, n);
  });
}

// dx of a row. It may overwrite dy.
STW_INLINE void row_input_gradient(const NormArgs& args, int64_t row, RowStatistics statistics) {
  const int64_t base = row * args.features;
  const F16 mean = splat(statistics.mean), rstd = splat(statistics.rstd), offset = splat(args.weight_offset);
  auto g_at = [&](int64_t i, int64_t n) {
    return mul(load_group(args.y.data, args.y.dtype, base + i, n),
               add(load_group(args.weight, args.weight_dtype, i, n), offset));
  };
  auto h_at = [&](int64_t i, int64_t n) {
    return mul(sub(load_group(args.x.data, args.x.dtype, base + i, n), mean), rstd);
  };
  F16 sum = zero(), product = zero();  // Lanes after the end of the row add nothing: g is 0 there.
  for_groups(0, args.features, [&](int64_t i, int64_t n) {
    F16 g = g_at(i, n);
    sum = add(sum, g);
    product = fma(g, h_at(i, n), product);
  });
  const F16 mean_g = splat(args.rms ? 0.0f : fold(sum) / (float)args.features);
  const F16 mean_gh = splat(fold(product) / (float)args.features);
  for_groups(0, args.features, [&](int64_t i, int64_t n) {
    F16 inner = sub(sub(g_at(i, n), mean_g), mul(h_at(i, n), mean_gh));
    F16 dx = args.addend.data == nullptr
                 ? mul(inner, rstd)
                 : fma(inner, rstd, load_group(args.addend.data, args.addend.dtype, base + i, n));
    store_group(args.dx.data, args.dx.dtype, base + i, dx, n);
  });
}

// The sums of columns [column, column + width) over rows; width <= norm_strip. They fit the registers of
// every instruction set.
constexpr int norm_groups = 2;
constexpr int64_t norm_strip = 16 * norm_groups;
struct NormStrip {
  F16 sums[norm_groups];
};
STW_INLINE int64_t strip_lanes(int64_t width, int k) { return min(16, max(0, width - 16 * k)); }

// With `accumulate`, the contents of the gradient buffer. Zeros without it, and if the buffer is null.
STW_INLINE NormStrip load_strip(const float* buffer, bool accumulate, int64_t column, int64_t width) {
  NormStrip strip;
  for (int k = 0; k < norm_groups; ++k) {
    const int64_t n = strip_lanes(width, k);
    strip.sums[k] =
        buffer != nullptr && accumulate && n > 0 ? load_some(buffer + column + 16 * k, n) : zero();
  }
  return strip;
}
STW_INLINE void store_strip(float* buffer, const NormStrip& strip, int64_t column, int64_t width) {
  for (int k = 0; buffer != nullptr && k < norm_groups && width > 16 * k; ++k)
    store_some(buffer + column + 16 * k, strip.sums[k], strip_lanes(width, k));
}

// The first row after the tile of tokens that begins at `row`.
STW_INLINE int64_t tile_end(int64_t row, int64_t rows, int64_t rows_per_sample) {
  return min(rows, min(row + token_tile, round_up(row + 1, rows_per_sample)));
}

// Whether a group of tiles ends before `row`: after chain_terms rows of a sample, and at the end of the
// sample. The tiles of a group are added up before they are added to a gradient.
STW_INLINE bool group_ends(int64_t row, int64_t rows, int64_t rows_per_sample) {
  return row == rows || row % rows_per_sample % chain_terms == 0;
}
// Adds the group to the sums and clears it.
STW_INLINE void add_group(NormStrip& sums, NormStrip& group) {
  for (int k = 0; k < norm_groups; ++k) {
    sums.sums[k] = add(sums.sums[k], group.sums[k]);
    group.sums[k] = zero();
  }
}
STW_INLINE NormStrip empty_strip() { return load_strip(nullptr, false, 0, 0); }

// dw += Σ dy·h, db += Σ dy, each sum from +0, over `count` rows: first, first + step, …, whose statistics are
// statistics[0], statistics[statistics_step], …
STW_INLINE void add_tile(const NormArgs& args, int64_t first, int64_t step, int64_t count,
                         const RowStatistics* statistics, int64_t statistics_step, int64_t column,
                         int64_t width, NormStrip& dw, NormStrip& db) {
  F16 tile_w[norm_groups], tile_b[norm_groups];
  for (int k = 0; k < norm_groups; ++k) tile_w[k] = tile_b[k] = zero();
  for (int64_t i = 0; i < count; ++i, statistics += statistics_step) {
    const F16 mean = splat(statistics->mean), rstd = splat(statistics->rstd);
    for (int k = 0; k < norm_groups; ++k) {
      const int64_t at = (first + i * step) * args.features + column + 16 * k, n = strip_lanes(width, k);
      if (n == 0) continue;
      F16 dy = load_group(args.y.data, args.y.dtype, at, n), x = load_group(args.x.data, args.x.dtype, at, n);
      tile_w[k] = fma(dy, mul(sub(x, mean), rstd), tile_w[k]);
      tile_b[k] = add(tile_b[k], dy);
    }
  }
  for (int k = 0; k < norm_groups; ++k) {
    dw.sums[k] = add(dw.sums[k], tile_w[k]);
    db.sums[k] = add(db.sums[k], tile_b[k]);
  }
}

// Calls body(column, width) for all strips of `features` columns. All strips together read `elements`
// elements.
template <class Body>
STW_INLINE void for_strips(const Launch& launch, int64_t features, int64_t elements, const Body& body) {
  auto strip = [&](int64_t task, int) {
    body(task * norm_strip, min(norm_strip, features - task * norm_strip));
  };
  const int64_t strips = ceil_div(features, norm_strip);
  if (elements > serial_elements) return parallel_for(launch, strips, strip);
  for (int64_t task = 0; task < strips; ++task) strip(task, 0);
}

}  // namespace stw::kernels::STW_ISA
