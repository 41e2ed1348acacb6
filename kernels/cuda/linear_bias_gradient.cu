// db += Σ_rows dy, in tiles of token_tile rows that start anew in every sample: a quad sums 16 columns of a tile from +0,
// and the tiles are folded one after the other onto the buffer (token_tiles.h). Floor: dy read once; the sums are 1/32 of
// that and written and read again.
//
// Workspace: sums of the tiles of one part (tiles, features); parts follow one another and share it.
#include "kernels/cuda/linear_products.h"
#include "kernels/cuda/token_tiles.h"

namespace stw::kernels::cuda {

// Columns [first, first + features) of y (rows, outputs).
static __global__ void __launch_bounds__(block_threads)
bias_tiles_kernel(ConstMatrix y, int64_t outputs, int64_t first, int64_t features, TokenTiles tiles, float* sums) {
  const int64_t groups = ceil_div(features, 16);
  for_tasks_of_grid(tiles.count() * groups, [&](int64_t task) {
    const int64_t tile = task / groups, i = task % groups * 16, n = min(static_cast<int64_t>(16), features - i);
    F16 sum = zero();
    for (int64_t row = tiles.first_row(tile), end = tiles.end_row(tile); row < end; ++row)
      sum = add(sum, load_group(y.data, y.dtype, row * outputs + first + i, n));
    store_group(sums, DType::f32, tile * features + i, sum, n);
  });
}

static __global__ void __launch_bounds__(block_threads)
bias_fold_kernel(const float* sums, int64_t tiles, int64_t features, bool accumulate, float* gradient) {
  fold_tiles(sums, tiles, features, accumulate, gradient);
}

void linear_bias_gradient(const Launch& l, const LinearArgs& args) {
  STW_ASSERT_WORKSPACE(linear_bias_gradient);
  const TokenTiles tiles{args.rows, args.rows_per_sample};
  float* const sums = static_cast<float*>(l.workspace);
  for_parts(args, [&](const LinearPart& p, int64_t column) {
    if (p.bias_gradient == nullptr) return;
    launch(l, bias_tiles_kernel, blocks_for_elements(tiles.count() * round_up(p.features, 16)), block_threads, 0,
           ConstMatrix{args.y.data, args.y.dtype}, sum_of_features(args), column, p.features, tiles, sums);
    launch(l, bias_fold_kernel, blocks_for_elements(p.features), block_threads, 0, sums, tiles.count(), p.features,
           args.accumulate, static_cast<float*>(p.bias_gradient));
  });
}

}  // namespace stw::kernels::cuda
