// AdamW with 8-bit block-wise moments: 2.03 bytes of state an element instead of 8. A warp decodes a block of
// 256 elements, updates it in fp32 as in adamw.cu, and encodes it again with the new absolute maximum of the
// block. The parameter's update uses the new moments before they are rounded. The second moment is kept as √v
// (kernels/cpu/update/adamw8.cpp says why). The lower bound is 16 bytes an element with a split master and
// fp32 gradients. A thread requests all its data of a block at once: 80 bytes, 40 KB for an SM.
#include "kernels/common/adamw_step.h"
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/update/state8.h"

namespace stw::kernels::cuda {

template <Storage storage, DType gradient>
static __global__ void __launch_bounds__(block_threads, 2) adamw8_kernel(STW_CONSTANT UpdateBatch batch) {
  // Random numbers are drawn when few other numbers are held in registers.
  constexpr bool is_late = storage == Storage::stochastic;
  STW_SHARED(QuantileMap, maps, 2);
  if (batch.common.state->skip != 0) return;
  fetch_map(signed_quantiles_of_device, &maps[0]);
  fetch_map(unsigned_quantiles_of_device, &maps[1]);
  struct Scalars {
    AdamWScalars adamw;
    F16 coefficient;
  };
  // once_a_block is also a barrier: after it, the maps have arrived.
  const Scalars scalars = once_a_block<Scalars>([&] {
    return Scalars{adamw_scalars(batch.common), coefficient_of(batch.common)};
  });
  for_state_blocks_of<storage, gradient>(batch, [&](const UpdateArgs& args, int64_t block, int64_t begin,
                                                    int64_t count) {
    // part(i): the number of elements of the block from element i on, or FullGroup.
    const auto update = [&](const auto& part) {
      struct Operands {
        Gradients g;
        F16 p;
        Bytes first, second;
      } all[groups_a_quad];
      const F16 old_first = splat(args.first_absmax[block]), old_second = splat(args.second_absmax[block]);
      STW_UNROLL
      for (int k = 0; k < groups_a_quad; ++k) {
        const int64_t at = begin + group_of_quad(k);
        const auto n = part(group_of_quad(k));
        all[k] = {load_gradients(args, at, n), load_parameter<storage>(args, at, n),
                  load_some_bytes(args.first_code + at, n), load_some_bytes(args.second_code + at, n)};
      }
      fence_loads();
      F16 first[groups_a_quad], second[groups_a_quad], most_first = zero(), most_second = zero();
      STW_UNROLL
      for (int k = 0; k < groups_a_quad; ++k) {
        const int64_t at = begin + group_of_quad(k);
        const auto n = part(group_of_quad(k));
        if (n <= 0) break;
        const F16 g = scaled_sum(args, scalars.coefficient, all[k].g);
        const F16 m = next_first(scalars.adamw, mul(decode(maps[0], all[k].first, n), old_first), g);
        F16 root = mul(decode(maps[1], all[k].second, n), old_second);
        root = sqrt(next_second(scalars.adamw, mul(root, root), g));
        first[k] = m;
        second[k] = root;
        most_first = maximum(most_first, maximum(m, sub(zero(), m)));
        most_second = maximum(most_second, root);
        all[k].p = next_parameter(scalars.adamw, all[k].p, m, root);
        if (!is_late) store_parameter<storage>(args, at, all[k].p, n);
      }
      const float first_absmax = fold_warp_maximum(most_first),
                  second_absmax = fold_warp_maximum(most_second);
      STW_UNROLL
      for (int k = 0; k < groups_a_quad; ++k) {
        const int64_t at = begin + group_of_quad(k);
        const auto n = part(group_of_quad(k));
        if (n <= 0) break;
        encode(maps[0], first[k], first_absmax, args.first_code + at, n);
        encode(maps[1], second[k], second_absmax, args.second_code + at, n);
        if (is_late) store_parameter<storage>(args, at, all[k].p, n);
      }
      __syncwarp();  // All lanes have read the old values.
      if (threadIdx.x % warp_threads != 0) return;
      args.first_absmax[block] = first_absmax;
      args.second_absmax[block] = second_absmax;
    };
    if (batch.vectors && count == quantile_block) update([](int64_t) { return FullGroup{}; });
    else update([&](int64_t from) { return count - from; });
  });
}

void adamw8(const Launch& l, const List<UpdateArgs>& list) {
  launch_batches<true>(list, [&](auto stored, auto gradient, const UpdateBatch& batch, int blocks) {
    launch(l, adamw8_kernel<stored.storage, gradient.dtype>, blocks, block_threads, 0, batch);
  });
}

}  // namespace stw::kernels::cuda
