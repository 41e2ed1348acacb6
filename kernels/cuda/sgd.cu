// SGD with momentum, in the order of torch.optim.SGD without dampening. Weight decay is coupled: part of the gradient.
// All in fp32, each line one rounding, one pass that is bound by memory traffic:
//   g = fma(decay, p, g)
//   m = fma(momentum, m, g)
//   p = fma(-lr, m, p), with nesterov p = fma(-lr, fma(momentum, m, g), p)
// A parameter without a state (`first` is null) has no momentum.
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/parameter.h"

namespace stw::kernels::cuda {

template <Storage storage, DType gradient>
static __global__ void __launch_bounds__(block_threads) sgd_kernel(UpdateArgs args) {
  args.gradient_dtype = gradient;
  if (args.state->skip != 0) return;
  const F16 coefficient = coefficient_of(args), decay = splat(static_cast<float>(args.decay));
  const F16 momentum = splat(static_cast<float>(args.state->momentum)), step = splat(static_cast<float>(-rate_of(args)));
  const bool nesterov = args.state->nesterov != 0;
  for_groups_of_grid(args.count, [&](int64_t at, int64_t n) {
    const F16 p = load_parameter<storage>(args, at, n);
    F16 g = fma(decay, p, scaled_gradient(args, coefficient, at, n));
    if (args.first != nullptr) {
      const F16 m = fma(momentum, load_group(args.first, DType::f32, at, n), g);
      store_group(args.first, DType::f32, at, m, n);
      g = nesterov ? fma(momentum, m, g) : m;
    }
    store_parameter<storage>(args, at, fma(step, g, p), n);
  });
}

void sgd(const Launch& l, const UpdateArgs& args) {
  for_update(args, [&](auto stored, auto gradient) {
    launch(l, sgd_kernel<stored.storage, gradient.dtype>, blocks_for_update(args.count), block_threads, 0, args);
  });
}

}  // namespace stw::kernels::cuda
