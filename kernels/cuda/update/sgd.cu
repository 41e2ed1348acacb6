// SGD with momentum, in the order of torch.optim.SGD without dampening. Weight decay is coupled: it is part
// of the gradient. One pass in fp32, bound by memory traffic; each line is one rounding:
//   g = fma(decay, p, g)
//   m = fma(momentum, m, g)
//   p = fma(-lr, m, p), with nesterov p = fma(-lr, fma(momentum, m, g), p)
// A parameter without a state (`first` is null) has no momentum.
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/update/update_batch.h"

namespace stw::kernels::cuda {

template <Storage storage, DType gradient>
static __global__ void __launch_bounds__(block_threads) sgd_kernel(STW_CONSTANT UpdateBatch batch) {
  const StepState& state = *batch.common.state;
  if (state.skip != 0) return;
  const F16 coefficient = coefficient_of(batch.common), decay = splat(static_cast<float>(batch.common.decay));
  const F16 momentum = splat(static_cast<float>(state.momentum)),
            step = splat(static_cast<float>(-rate_of(batch.common)));
  const bool nesterov = state.nesterov != 0;
  for_chunks_of<storage, gradient>(batch, [&](const UpdateArgs& args, int64_t begin, int64_t end) {
    for_groups_of_block(begin, end, [&](int64_t at, int64_t n) {
      const F16 p = load_parameter<storage>(args, at, n);
      F16 g = fma(decay, p, scaled_gradient(args, coefficient, at, n));
      if (args.first != nullptr) {
        const F16 m = fma(momentum, load_group(args.first, DType::f32, at, n), g);
        store_group(args.first, DType::f32, at, m, n);
        g = nesterov ? fma(momentum, m, g) : m;
      }
      store_parameter<storage>(args, at, fma(step, g, p), n);
    });
  });
}

void sgd(const Launch& l, const List<UpdateArgs>& list) {
  launch_batches<false>(list, [&](auto stored, auto gradient, const UpdateBatch& batch, int blocks) {
    launch(l, sgd_kernel<stored.storage, gradient.dtype>, blocks, block_threads, 0, batch);
  });
}

}  // namespace stw::kernels::cuda
