// AdamW with 32-bit moments: one pass over parameter, gradient and both moments, bound by memory traffic.
#include "kernels/common/adamw_step.h"
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/parameter.h"

namespace stw::kernels::cuda {

template <Storage storage, DType gradient>
static __global__ void __launch_bounds__(block_threads) adamw_kernel(UpdateArgs args) {
  args.gradient_dtype = gradient;
  if (args.state->skip != 0) return;
  const AdamWScalars scalars = adamw_scalars(args);
  const F16 coefficient = coefficient_of(args);
  for_groups_of_grid(args.count, [&](int64_t at, int64_t n) {
    const F16 g = scaled_gradient(args, coefficient, at, n), p = load_parameter<storage>(args, at, n);
    const F16 m = next_first(scalars, load_group(args.first, DType::f32, at, n), g);
    const F16 v = next_second(scalars, load_group(args.second, DType::f32, at, n), g);
    store_group(args.first, DType::f32, at, m, n);
    store_group(args.second, DType::f32, at, v, n);
    store_parameter<storage>(args, at, next_parameter(scalars, p, m, sqrt(v)), n);
  });
}

void adamw(const Launch& l, const UpdateArgs& args) {
  for_update(args, [&](auto stored, auto gradient) {
    launch(l, adamw_kernel<stored.storage, gradient.dtype>, blocks_for_update(args.count), block_threads, 0, args);
  });
}

}  // namespace stw::kernels::cuda
