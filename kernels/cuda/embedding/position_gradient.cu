// The gradient of a position table by itself. embedding_gradient can also compute it (position_sums.h).
#include "kernels/cuda/embedding/position_sums.h"
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

template <DType dtype>
static __global__ void __launch_bounds__(block_threads)
    position_gradient_kernel(EmbeddingArgs args, bool vectors) {
  for_tasks_of_grid(args.position_rows * ceil_div(args.features, 16),
                    [&](int64_t task) { sum_position<dtype>(args, vectors, task); });
}

void position_gradient(const Launch& l, const EmbeddingArgs& args) {
  for_dtype(args.y.dtype, [&](auto stored) {
    launch(l, position_gradient_kernel<stored.dtype>,
           blocks_for_elements(args.position_rows * round_up(args.features, 16)), block_threads, 0, args,
           position_vectors(args));
  });
}

}  // namespace stw::kernels::cuda
