// Lion with a 32-bit momentum: one pass over parameter, gradient and momentum, bound by memory traffic.
#include "kernels/common/lion_step.h"
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/parameter.h"

namespace stw::kernels::cuda {

template <Storage storage, DType gradient>
static __global__ void __launch_bounds__(block_threads) lion_kernel(UpdateArgs args) {
  args.gradient_dtype = gradient;
  if (args.state->skip != 0) return;
  const LionScalars scalars = lion_scalars(args);
  const F16 coefficient = coefficient_of(args);
  for_groups_of_grid(args.count, [&](int64_t at, int64_t n) {
    const F16 g = scaled_gradient(args, coefficient, at, n), p = load_parameter<storage>(args, at, n);
    const F16 m = load_group(args.first, DType::f32, at, n);
    store_group(args.first, DType::f32, at, next_momentum(scalars, m, g), n);
    store_parameter<storage>(args, at, next_parameter(scalars, p, m, g), n);
  });
}

void lion(const Launch& l, const UpdateArgs& args) {
  for_update(args, [&](auto stored, auto gradient) {
    launch(l, lion_kernel<stored.storage, gradient.dtype>, blocks_for_update(args.count), block_threads, 0, args);
  });
}

}  // namespace stw::kernels::cuda
