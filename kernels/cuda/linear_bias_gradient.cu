// db += Σ_rows dy, in tiles of token_tile rows that start anew in every sample: a quad sums 16 columns of a tile from +0,
// and the tiles are folded one after the other onto the buffer (token_tiles.h). Floor: dy read once; the sums are 1/32 of
// that and written and read again.
//
// Workspace: sums of the tiles of one part (tiles, features); parts follow one another and share it.
#include "kernels/cuda/linear_products.h"
#include "kernels/cuda/token_tiles.h"

namespace stw::kernels::cuda {

// Columns [first, first + features) of y (rows, …), of this stride. Eight to sixteen rows are under way, 128 bytes of bf16 a thread, in
// small blocks, so that the tiles of few rows reach all SMs.
static constexpr int bias_tile_threads = 64;
template <DType dtype>
static __global__ void __launch_bounds__(bias_tile_threads)
bias_tiles_kernel(const void* y, int64_t stride, int64_t first, int64_t features, TokenTiles tiles, bool vectors, float* sums) {
  const int64_t groups = ceil_div(features, 16);
  for_tasks_of_grid(tiles.count() * groups, [&](int64_t task) {
    const int64_t tile = task / groups, i = task % groups * 16, n = min(static_cast<int64_t>(16), features - i);
    const int64_t row = tiles.first_row(tile);
    const int rows = static_cast<int>(tiles.end_row(tile) - row);
    const void* const begin = element(y, dtype, row * stride + first + i);
    F16 sum = zero();
    const auto add_row = [&](const F16& x) { sum = add(sum, x); };
    if (vectors && n == 16) in_order<8>(rows, [&](int k) { return load_group(begin, dtype, k * stride, Whole{}); }, add_row);
    else in_order<1>(rows, [&](int k) { return load_group(begin, dtype, k * stride, n); }, add_row);
    store_group(sums, DType::f32, tile * features + i, sum, n);
  });
}

static __global__ void __launch_bounds__(fold_threads_a_block)
bias_fold_kernel(const float* sums, int64_t tiles, int64_t features, bool accumulate, float* gradient) {
  fold_tiles(sums, tiles, features, accumulate, gradient);
}

void linear_bias_gradient(const Launch& l, const LinearArgs& args) {
  STW_ASSERT_WORKSPACE(linear_bias_gradient);
  const TokenTiles tiles{args.rows, args.rows_per_sample};
  float* const sums = static_cast<float*>(l.workspace);
  for_parts(args, [&](const LinearPart& p, int64_t column) {
    if (p.bias_gradient == nullptr) return;
    const bool vectors = vectors_at(args.y.data, args.y.dtype, args.y_stride) && column % 4 == 0;
    for_dtype(args.y.dtype, [&](auto stored) {
      launch(l, bias_tiles_kernel<stored.dtype>, blocks_for(tiles.count() * ceil_div(p.features, 16), bias_tile_threads / quad), bias_tile_threads, 0,
             args.y.data, args.y_stride, column, p.features, tiles, vectors, sums);
    });
    launch(l, bias_fold_kernel, blocks_for_fold(p.features), fold_threads_a_block, 0, sums, tiles.count(), p.features,
           args.accumulate, static_cast<float*>(p.bias_gradient));
  });
}

}  // namespace stw::kernels::cuda
