// db += Σ_rows dy, in tiles of token_tile rows that start anew in every sample: a quad sums 16 columns of a tile from +0,
// and the tiles are folded in order, group after group, onto the buffer (token_tiles.h). Floor: dy read once; the sums are 1/32 of
// that and written and read again. All biases of a call, parts side by side and further ops, are two launches.
//
// Workspace: for one bias after the other the sums of its tiles (tiles, features).
#include "kernels/cuda/linear_products.h"
#include "kernels/cuda/token_tiles.h"

namespace stw::kernels::cuda {

static constexpr int most_biases = 2 * max_parts;   // of a launch
struct Bias {
  const void* y;          // its first column
  int64_t stride, features, first_task;
  float *sums, *gradient;
  bool vectors;
};
struct Biases {
  int count;
  bool accumulate;
  TokenTiles tiles;
  int64_t tasks, widest;
  Bias bias[most_biases];
};

// Eight to sixteen rows are under way, 128 bytes of bf16 a thread, in small blocks, so that the tiles of few rows reach all SMs.
static constexpr int bias_tile_threads = 64;
template <DType dtype>
static __global__ void __launch_bounds__(bias_tile_threads) bias_tiles_kernel(STW_CONSTANT Biases all) {
  for_tasks_of_grid(all.tasks, [&](int64_t task) {
    int k = 0;
    while (k + 1 < all.count && task >= all.bias[k + 1].first_task) ++k;
    const Bias& bias = all.bias[k];
    const int64_t own = task - bias.first_task, groups = ceil_div(bias.features, 16);
    const int64_t tile = own / groups, i = own % groups * 16, n = min(static_cast<int64_t>(16), bias.features - i);
    const int64_t row = all.tiles.first_row(tile), stride = bias.stride;
    const int rows = static_cast<int>(all.tiles.end_row(tile) - row);
    const void* const begin = element(bias.y, dtype, row * stride + i);
    F16 sum = zero();
    const auto add_row = [&](const F16& x) { sum = add(sum, x); };
    if (bias.vectors && n == 16) in_order<8>(rows, [&](int at) { return load_group(begin, dtype, at * stride, Whole{}); }, add_row);
    else in_order<1>(rows, [&](int at) { return load_group(begin, dtype, at * stride, n); }, add_row);
    store_group(bias.sums, DType::f32, tile * bias.features + i, sum, n);
  });
}

// A row of blocks for each.
static __global__ void __launch_bounds__(fold_threads_a_block) bias_fold_kernel(STW_CONSTANT Biases all) {
  const Bias& bias = all.bias[blockIdx.y];
  fold_tiles(bias.sums, all.tiles.count(), all.tiles.groups(), bias.features, all.accumulate, bias.gradient);
}

void linear_bias_gradient(const Launch& l, const LinearArgs& args) {
  STW_ASSERT_WORKSPACE(linear_bias_gradient);
  Biases all = {0, args.accumulate, {args.rows, args.rows_per_sample}, 0, 0, {}};
  const int64_t tiles = all.tiles.count();
  float* sums = static_cast<float*>(l.workspace);
  const auto run = [&] {
    if (all.count == 0) return;
    for_dtype(args.y.dtype, [&](auto stored) {
      launch(l, bias_tiles_kernel<stored.dtype>, blocks_for(all.tasks, bias_tile_threads / quad), bias_tile_threads, 0, all);
    });
    launch(l, bias_fold_kernel, dim3(static_cast<unsigned>(blocks_for_fold(all.widest)), static_cast<unsigned>(all.count)), fold_threads_a_block, 0, all);
    all.count = 0, all.tasks = all.widest = 0;
  };
  for (const LinearArgs* one = &args; one != nullptr; one = one->further) {
    assert(one->rows == args.rows && one->rows_per_sample == args.rows_per_sample && one->y.dtype == args.y.dtype && one->accumulate == args.accumulate);
    for_parts(*one, [&](const LinearPart& p, int64_t column) {
      if (p.bias_gradient == nullptr) return;
      const bool vectors = vectors_at(one->y.data, one->y.dtype, one->y_stride) && column % 4 == 0;
      all.bias[all.count++] = {element_at(one->y.data, one->y.dtype, column), one->y_stride, p.features, all.tasks, sums, static_cast<float*>(p.bias_gradient), vectors};
      all.tasks += tiles * ceil_div(p.features, 16);
      all.widest = p.features > all.widest ? p.features : all.widest;
      sums += tiles * p.features;
      if (all.count == most_biases) run();
    });
  }
  run();
}

}  // namespace stw::kernels::cuda
