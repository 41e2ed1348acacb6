// position_gradient[p] += Σ dy over the samples' rows at position p: a quad for 16 columns of a position, one serial chain
// over the samples that starts from the buffer. Positions that no row has get +0, or stay where the gradient accumulates.
// Floor: dy read once.
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

static __global__ void __launch_bounds__(block_threads) position_gradient_kernel(EmbeddingArgs args) {
  const int64_t features = args.features, groups = ceil_div(features, 16);
  const int64_t start = args.state == nullptr ? 0 : static_cast<int64_t>(args.state->position);
  for_tasks_of_grid(args.position_rows * groups, [&](int64_t task) {
    const int64_t position = task / groups, i = task % groups * 16, n = min(static_cast<int64_t>(16), features - i);
    const int64_t first = position - start;   // the row of the first sample
    float* buffer = args.position_gradient + position * features;
    F16 sum = args.accumulate ? load_group(buffer, DType::f32, i, n) : zero();
    if (first >= 0 && first < args.rows_per_sample)
      for (int64_t row = first; row < args.rows; row += args.rows_per_sample)
        sum = add(sum, load_group(args.y.data, args.y.dtype, row * features + i, n));
    store_group(buffer, DType::f32, i, sum, n);
  });
}

void position_gradient(const Launch& l, const EmbeddingArgs& args) {
  launch(l, position_gradient_kernel, blocks_for_elements(args.position_rows * round_up(args.features, 16)), block_threads, 0, args);
}

}  // namespace stw::kernels::cuda
