// AdamW with 32-bit moments: one pass over parameter, gradient and both moments. Bound by memory traffic: 28
// bytes an element with a split master and fp32 gradients, compared with about 70 instructions. All data of
// two groups are requested before any of them is used (ahead.h): 128 bytes a thread, where one load at a time
// would be 16.
#include "kernels/common/adamw_step.h"
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/update/update_batch.h"

namespace stw::kernels::cuda {

template <Storage storage, DType gradient>
static __global__ void __launch_bounds__(block_threads) adamw_kernel(STW_CONSTANT UpdateBatch batch) {
  if (batch.common.state->skip != 0) return;
  struct Scalars {
    AdamWScalars adamw;
    F16 coefficient;
  };
  const Scalars scalars = once_a_block<Scalars>([&] {
    return Scalars{adamw_scalars(batch.common), coefficient_of(batch.common)};
  });
  struct Operands {
    Gradients g;
    F16 p, m, v;
  };
  for_chunks_of<storage, gradient>(batch, [&](const UpdateArgs& args, int64_t begin, int64_t end) {
    for_groups_of_block_ahead(
        begin, end, batch.vectors,
        [&](int64_t at, auto n) {
          return Operands{load_gradients(args, at, n), load_parameter<storage>(args, at, n),
                          load_group(args.first, DType::f32, at, n),
                          load_group(args.second, DType::f32, at, n)};
        },
        [&](const Operands& o, int64_t at, auto n) {
          const F16 g = scaled_sum(args, scalars.coefficient, o.g), m = next_first(scalars.adamw, o.m, g),
                    v = next_second(scalars.adamw, o.v, g);
          store_group(args.first, DType::f32, at, m, n);
          store_group(args.second, DType::f32, at, v, n);
          store_parameter<storage>(args, at, next_parameter(scalars.adamw, o.p, m, sqrt(v)), n);
        });
  });
}

void adamw(const Launch& l, const List<UpdateArgs>& list) {
  launch_batches<false>(list, [&](auto stored, auto gradient, const UpdateBatch& batch, int blocks) {
    launch(l, adamw_kernel<stored.storage, gradient.dtype>, blocks, block_threads, 0, batch);
  });
}

}  // namespace stw::kernels::cuda
