// The number of rows whose largest logit is the target's. Few rows of a classifier have a target, and labels
// are few: a warp looks at the targets of 32 rows at once and goes over the logits of those with a target, 32
// at a time. There is one block, so that it alone adds to the state. The kernel is used only in evaluations.
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

static __global__ void __launch_bounds__(block_threads) hit_count_kernel(HitCountArgs args) {
  constexpr int64_t warp = 32;
  STW_SHARED(uint32_t, hits_of_warps, block_threads / 32);
  const int64_t lane = threadIdx.x % 32;
  uint32_t hits = 0;
  for (int64_t first = threadIdx.x / 32 * warp; first < args.rows; first += block_threads) {
    const int32_t target_of_lane = first + lane < args.rows ? args.targets[first + lane] : ignored_target;
    const unsigned lanes_with_target = __ballot_sync(all_lanes, target_of_lane != ignored_target);
    for (int target_lane = 0; target_lane < 32 && lanes_with_target >> target_lane != 0; ++target_lane) {
      if ((lanes_with_target >> target_lane & 1u) == 0) continue;
      const int64_t target = __shfl_sync(all_lanes, target_of_lane, target_lane),
                    at = (first + target_lane) * args.stride;
      const float wanted = load1(args.logits.data, args.logits.dtype, at + target);
      bool is_exceeded = false;
      for (int64_t j = lane; j < args.classes; j += warp) {
        const float x = load1(args.logits.data, args.logits.dtype, at + j);
        is_exceeded = is_exceeded || !(x < wanted || (x == wanted && j >= target));
      }
      hits += __ballot_sync(all_lanes, is_exceeded) == 0;
    }
  }
  if (lane == 0) hits_of_warps[threadIdx.x / 32] = hits;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 0; i < block_threads / 32; ++i) args.state->hits += hits_of_warps[i];
}

void hit_count(const Launch& l, const HitCountArgs& args) {
  launch(l, hit_count_kernel, 1, block_threads, 0, args);
}

}  // namespace stw::kernels::cuda
