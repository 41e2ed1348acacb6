// Lion with an 8-bit block-wise momentum: 1.016 bytes of state an element instead of 4. A warp decodes a
// block of 256 elements, updates it in fp32 as in lion.cu, and encodes it again with the new absolute maximum
// of the block. Bound by memory traffic.
#include "kernels/common/lion_step.h"
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/update/state8.h"

namespace stw::kernels::cuda {

template <Storage storage, DType gradient>
static __global__ void __launch_bounds__(block_threads) lion8_kernel(STW_CONSTANT UpdateBatch batch) {
  STW_SHARED(QuantileMap, map, 1);
  if (batch.common.state->skip != 0) return;
  fetch_map(signed_quantiles_of_device, map);
  const LionScalars scalars = lion_scalars(batch.common);
  const F16 coefficient = coefficient_of(batch.common);
  __syncthreads();
  for_state_blocks_of<storage, gradient>(
      batch, [&](const UpdateArgs& args, int64_t block, int64_t begin, int64_t count) {
        const F16 old = splat(args.first_absmax[block]);
        F16 momentum[groups_a_quad], most = zero();
        STW_UNROLL
        for (int k = 0; k < groups_a_quad; ++k) {
          const int64_t at = begin + group_of_quad(k), n = count - group_of_quad(k);
          if (n <= 0) break;
          const F16 g = scaled_gradient(args, coefficient, at, n), p = load_parameter<storage>(args, at, n);
          const F16 m = mul(decode(*map, load_some_bytes(args.first_code + at, n), n), old),
                    next = next_momentum(scalars, m, g);
          momentum[k] = next;
          most = maximum(most, maximum(next, sub(zero(), next)));
          store_parameter<storage>(args, at, next_parameter(scalars, p, m, g), n);
        }
        const float absmax = fold_warp_maximum(most);
        STW_UNROLL
        for (int k = 0; k < groups_a_quad; ++k) {
          const int64_t at = begin + group_of_quad(k), n = count - group_of_quad(k);
          if (n <= 0) break;
          encode(*map, momentum[k], absmax, args.first_code + at, n);
        }
        __syncwarp();  // All lanes have read the old absmax.
        if (threadIdx.x % warp_threads == 0) args.first_absmax[block] = absmax;
      });
}

void lion8(const Launch& l, const List<UpdateArgs>& list) {
  launch_batches<true>(list, [&](auto stored, auto gradient, const UpdateBatch& batch, int blocks) {
    launch(l, lion8_kernel<stored.storage, gradient.dtype>, blocks, block_threads, 0, batch);
  });
}

}  // namespace stw::kernels::cuda
