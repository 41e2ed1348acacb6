// Inverted dropout, forward and backward in one: the mask is drawn again from the counters of philox.h. A thread draws one
// block of four numbers for its four elements where the group begins at a multiple of four, else one for each. Bound by
// memory: ten rounds of Philox are about 15 operations an element.
#include "kernels/common/philox.h"
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

static __global__ void __launch_bounds__(block_threads) dropout_kernel(DropoutArgs args) {
  const int64_t groups = ceil_div(args.per_sample, 16);
  for_tasks_of_grid(args.samples * groups, [&](int64_t task) {
    const int64_t sample = task / groups, first = task % groups * 16;   // groups begin at multiples of 16 in their sample
    const int64_t at = sample * args.per_sample + first, n = min(static_cast<int64_t>(16), args.per_sample - first);
    const Dropout d = dropout_of(args.p, args.stream, *args.state, sample);
    const int64_t block = (first + first_lane()) / 4;
    const Philox4 words = philox(static_cast<uint32_t>(block), d.sample, d.stream, d.step, d.seed);
    const F16 x = load_group(args.x.data, args.x.dtype, at, n);
    F16 y;
    // A dropped element is dropped also where it is not finite.
    for (int i = 0; i < 4; ++i) y.f[i] = words.w[i] >= d.threshold ? x.f[i] * d.kept_scale : 0.0f;
    store_group(args.y.data, args.y.dtype, at, y, n);
  });
}

static __global__ void __launch_bounds__(block_threads) convert_kernel(DropoutArgs args) {
  for_groups_of_grid(args.samples * args.per_sample, [&](int64_t at, int64_t n) {
    store_group(args.y.data, args.y.dtype, at, load_group(args.x.data, args.x.dtype, at, n), n);
  });
}

void dropout(const Launch& l, const DropoutArgs& args) {
  const int blocks = blocks_for_elements(args.samples * round_up(args.per_sample, 16));
  if (args.p > 0) launch(l, dropout_kernel, blocks, block_threads, 0, args);
  else if (args.x.data != args.y.data) launch(l, convert_kernel, blocks, block_threads, 0, args);
}

}  // namespace stw::kernels::cuda
