// Lion with a 32-bit momentum: one pass over parameter, gradient and momentum, bound by memory traffic.
#include "kernels/common/lion_step.h"
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/update/update_batch.h"

namespace stw::kernels::cuda {

template <Storage storage, DType gradient>
static __global__ void __launch_bounds__(block_threads) lion_kernel(STW_CONSTANT UpdateBatch batch) {
  if (batch.common.state->skip != 0) return;
  const LionScalars scalars = lion_scalars(batch.common);
  const F16 coefficient = coefficient_of(batch.common);
  for_chunks_of<storage, gradient>(batch, [&](const UpdateArgs& args, int64_t begin, int64_t end) {
    for_groups_of_block(begin, end, [&](int64_t at, int64_t n) {
      const F16 g = scaled_gradient(args, coefficient, at, n), p = load_parameter<storage>(args, at, n);
      const F16 m = load_group(args.first, DType::f32, at, n);
      store_group(args.first, DType::f32, at, next_momentum(scalars, m, g), n);
      store_parameter<storage>(args, at, next_parameter(scalars, p, m, g), n);
    });
  });
}

void lion(const Launch& l, const List<UpdateArgs>& list) {
  launch_batches<false>(list, [&](auto stored, auto gradient, const UpdateBatch& batch, int blocks) {
    launch(l, lion_kernel<stored.storage, gradient.dtype>, blocks, block_threads, 0, batch);
  });
}

}  // namespace stw::kernels::cuda
