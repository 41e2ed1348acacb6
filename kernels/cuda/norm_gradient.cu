// Gradient of LayerNorm and RMSNorm, with the residual's gradient added. With h = (x - mean)·rstd and g = dy·w:
//   dx = addend + rstd·(g - mean(g) - h·mean(g·h))   (RMSNorm: without mean(g))
//   dw = Σ_rows dy·h,  db = Σ_rows dy
// Three kernels: rows (a quad each: statistics, kept in the workspace, and dx); tiles of token_tile rows that start anew in
// every sample, for dw and db, summed from +0 by a quad for 16 columns; and the fold of the tiles, one after the other onto
// the buffer. So a cut of the rows between samples falls between tiles and changes nothing. Floor: x and dy read once, dx
// written; the tiles read x and dy a second time, the sums are 1/32 of that.
//
// Workspace: statistics (rows), then sums of the tiles: dw (tiles, features), db (tiles, features).
#include "kernels/common/norm_row.h"
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/token_tiles.h"

namespace stw::kernels::cuda {

template <DType dtype>
static __global__ void __launch_bounds__(block_threads) norm_rows_kernel(NormArgs args, RowStatistics* kept) {
  args.x.dtype = dtype;
  for_tasks_of_grid(args.rows, [&](int64_t row) {
    const RowStatistics statistics = row_statistics(args, row);
    if (first_lane() == 0) kept[row] = statistics;
    if (args.dx.data == nullptr) return;
    const int64_t base = row * args.features;
    const F16 mean = splat(statistics.mean), rstd = splat(statistics.rstd);
    const auto g_at = [&](int64_t i, int64_t n) {
      return mul(load_group(args.y.data, args.y.dtype, base + i, n), load_group(args.weight, args.weight_dtype, i, n));
    };
    const auto h_at = [&](int64_t i, int64_t n) { return mul(sub(load_group(args.x.data, dtype, base + i, n), mean), rstd); };
    F16 sum = zero(), product = zero();   // lanes past the end of the row add nothing: g is 0 there
    for_groups(0, args.features, [&](int64_t i, int64_t n) {
      const F16 g = g_at(i, n);
      sum = add(sum, g);
      product = fma(g, h_at(i, n), product);
    });
    const F16 mean_g = splat(args.rms ? 0.0f : fold(sum) / static_cast<float>(args.features));
    const F16 mean_gh = splat(fold(product) / static_cast<float>(args.features));
    for_groups(0, args.features, [&](int64_t i, int64_t n) {
      const F16 inner = sub(sub(g_at(i, n), mean_g), mul(h_at(i, n), mean_gh));
      const F16 dx = args.addend.data == nullptr ? mul(inner, rstd)
                                                 : fma(inner, rstd, load_group(args.addend.data, args.addend.dtype, base + i, n));
      store_group(args.dx.data, args.dx.dtype, base + i, dx, n);
    });
  });
}

template <DType dtype>
static __global__ void __launch_bounds__(block_threads) norm_tiles_kernel(NormArgs args, TokenTiles tiles, const RowStatistics* kept, float* sums) {
  const int64_t features = args.features, groups = ceil_div(features, 16);
  for_tasks_of_grid(tiles.count() * groups, [&](int64_t task) {
    const int64_t tile = task / groups, i = task % groups * 16, n = min(static_cast<int64_t>(16), features - i);
    F16 dw = zero(), db = zero();
    for (int64_t row = tiles.first_row(tile), end = tiles.end_row(tile); row < end; ++row) {
      const F16 mean = splat(kept[row].mean), rstd = splat(kept[row].rstd);
      const F16 dy = load_group(args.y.data, args.y.dtype, row * features + i, n), x = load_group(args.x.data, dtype, row * features + i, n);
      dw = fma(dy, mul(sub(x, mean), rstd), dw);
      db = add(db, dy);
    }
    store_group(sums, DType::f32, tile * features + i, dw, n);
    store_group(sums, DType::f32, (tiles.count() + tile) * features + i, db, n);
  });
}

static __global__ void __launch_bounds__(block_threads) norm_fold_kernel(NormArgs args, int64_t tiles, const float* sums) {
  fold_tiles(sums, tiles, args.features, args.accumulate, args.weight_gradient);
  fold_tiles(sums + tiles * args.features, tiles, args.features, args.accumulate, args.bias_gradient);
}

void norm_gradient(const Launch& l, const NormArgs& args) {
  STW_ASSERT_WORKSPACE(norm_gradient);
  const TokenTiles tiles{args.rows, args.rows_per_sample};
  auto* kept = static_cast<RowStatistics*>(l.workspace);
  float* sums = reinterpret_cast<float*>(static_cast<char*>(l.workspace) + round_up(args.rows * static_cast<int64_t>(sizeof(RowStatistics)), 16));
  for_dtype(args.x.dtype, [&](auto stored) {
    launch(l, norm_rows_kernel<stored.dtype>, blocks_for_rows(args.rows), block_threads, 0, args, kept);
    if (args.weight_gradient == nullptr && args.bias_gradient == nullptr) return;
    launch(l, norm_tiles_kernel<stored.dtype>, blocks_for_elements(tiles.count() * round_up(args.features, 16)), block_threads, 0, args,
           tiles, kept, sums);
    launch(l, norm_fold_kernel, blocks_for_elements(args.features), block_threads, 0, args, tiles.count(), sums);
  });
}

}  // namespace stw::kernels::cuda
