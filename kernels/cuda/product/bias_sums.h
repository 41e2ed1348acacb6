// Gradients of biases: sums of columns in tiles (token_tiles.h), for several kernels. A quad sums 16 columns
// of a tile from +0. Another launch adds up the tiles of several gradients (a fold for each).
#pragma once
#include <assert.h>

#include "kernels/cuda/embedding/token_tiles.h"
#include "kernels/cuda/product/linear_products.h"

namespace stw::kernels::cuda {

struct Bias {
  const void* y;  // The bias's first column.
  int64_t stride, features, first_task;
  float* sums;  // (tiles, features).
  bool vectors;
};
struct Biases {
  int count;
  DType dtype;  // Type of all y.
  TokenTiles tiles;
  int64_t tasks;
  Bias bias[most_biases];

  void add(const LinearArgs& args, int64_t column, int64_t features, float* sums) {
    assert(count < most_biases && args.rows == tiles.rows && args.rows_per_sample == tiles.rows_per_sample &&
           (count == 0 || args.y.dtype == dtype));
    dtype = args.y.dtype;
    const bool vectors = vectors_at(args.y.data, args.y.dtype, args.y_stride) && column % 4 == 0;
    bias[count++] = {
        element_at(args.y.data, args.y.dtype, column), args.y_stride, features, tasks, sums, vectors};
    tasks += tiles.count() * ceil_div(features, 16);
  }
};

// A quad computes tasks first, first + step, …. Eight to sixteen rows are in flight, 128 bytes of bf16 a
// thread.
STW_DEVICE void sum_bias_tiles(const Biases& all, DType dtype, int64_t first, int64_t step) {
  for (int64_t task = first; task < all.tasks; task += step) {
    int k = 0;
    while (k + 1 < all.count && task >= all.bias[k + 1].first_task) ++k;
    const Bias& bias = all.bias[k];
    const int64_t task_of_bias = task - bias.first_task, groups = ceil_div(bias.features, 16);
    const int64_t tile = task_of_bias / groups, i = task_of_bias % groups * 16,
                  n = min(static_cast<int64_t>(16), bias.features - i);
    const int64_t row = all.tiles.first_row(tile), stride = bias.stride;
    const int rows = static_cast<int>(all.tiles.end_row(tile) - row);
    const void* const begin = element(bias.y, dtype, row * stride + i);
    F16 sum = zero();
    const auto add_row = [&](const F16& x) { sum = add(sum, x); };
    if (bias.vectors && n == 16)
      for_each_ahead<8>(
          rows, [&](int at) { return load_group(begin, dtype, at * stride, FullGroup{}); }, add_row);
    else
      for_each_ahead<1>(
          rows, [&](int at) { return load_group(begin, dtype, at * stride, n); }, add_row);
    store_group(bias.sums, DType::f32, tile * bias.features + i, sum, n);
  }
}

// Small blocks, so that the tiles of few rows reach all SMs.
static constexpr int bias_tile_threads = 64;
template <DType dtype>
static __global__ void __launch_bounds__(bias_tile_threads) bias_tiles_kernel(STW_CONSTANT Biases all) {
  sum_bias_tiles(all, dtype, thread_of_grid() / quad,
                 static_cast<int64_t>(gridDim.x) * (bias_tile_threads / quad));
}
inline void launch_bias_tiles(const Launch& l, const Biases& all) {
  if (all.count == 0) return;
  for_dtype(all.dtype, [&](auto stored) {
    launch(l, bias_tiles_kernel<stored.dtype>, blocks_for(all.tasks, bias_tile_threads / quad),
           bias_tile_threads, 0, all);
  });
}

struct Fold {
  const float* sums;
  int64_t features;
  float* gradient;
};
struct Folds {
  bool accumulate;
  TokenTiles tiles;
  int count;
  Fold fold[2 + most_biases];  // In addition to the biases: a norm's weight and bias.
  void add(const float* sums, int64_t features, void* gradient) {
    if (gradient != nullptr) fold[count++] = {sums, features, static_cast<float*>(gradient)};
  }
};
// One row of blocks for each fold.
static __global__ void __launch_bounds__(fold_threads_a_block) tile_fold_kernel(STW_CONSTANT Folds all) {
  const Fold& fold = all.fold[blockIdx.y];
  fold_tiles(fold.sums, all.tiles.count(), all.tiles.groups(), fold.features, all.accumulate, fold.gradient);
}
inline void launch_folds(const Launch& l, const Folds& all) {
  if (all.count == 0) return;
  int64_t widest = 0;
  for (int i = 0; i < all.count; ++i) widest = all.fold[i].features > widest ? all.fold[i].features : widest;
  launch(l, tile_fold_kernel,
         dim3(static_cast<unsigned>(blocks_for_fold(widest)), static_cast<unsigned>(all.count)),
         fold_threads_a_block, 0, all);
}

}  // namespace stw::kernels::cuda
