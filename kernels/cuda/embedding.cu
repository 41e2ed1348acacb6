// y = table[token], plus positions[position] where the model learns positions. Bound by memory: rows of the table are read
// in pieces of 64 bytes and more.
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

static __global__ void __launch_bounds__(block_threads) embedding_kernel(EmbeddingArgs args) {
  const int64_t features = args.features, groups = ceil_div(features, 16);
  const int64_t start = args.state == nullptr ? 0 : static_cast<int64_t>(args.state->position);
  for_tasks_of_grid(args.rows * groups, [&](int64_t task) {
    const int64_t row = task / groups, i = task % groups * 16, n = min(static_cast<int64_t>(16), features - i);
    F16 y = load_group(args.table, args.weight_dtype, args.tokens[row] * features + i, n);
    if (args.positions != nullptr) {
      const int64_t position = args.position_ids != nullptr ? args.position_ids[row] : start + row % args.rows_per_sample;
      y = add(y, load_group(args.positions, args.weight_dtype, position * features + i, n));
    }
    store_group(args.y.data, args.y.dtype, row * features + i, y, n);
  });
}

void embedding(const Launch& l, const EmbeddingArgs& args) {
  launch(l, embedding_kernel, blocks_for_elements(args.rows * round_up(args.features, 16)), block_threads, 0, args);
}

}  // namespace stw::kernels::cuda
