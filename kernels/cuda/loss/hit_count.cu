// The number of rows whose largest logit is the target's. Few rows of a classifier have a target, and labels
// are few: a warp looks at the targets of 32 rows at once and goes over the logits of those with a target, 32
// at a time. One block, so that it alone adds to the state. Used only in evaluations.
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

static __global__ void __launch_bounds__(block_threads) hit_count_kernel(HitCountArgs args) {
  constexpr int64_t warp = 32;
  STW_SHARED(uint32_t, hits_of_warps, block_threads / 32);
  const int64_t lane = threadIdx.x % 32;
  uint32_t hits = 0;
  for (int64_t first = threadIdx.x / 32 * warp; first < args.rows; first += block_threads) {
    const int32_t own = first + lane < args.rows ? args.targets[first + lane] : ignored_target;
    const unsigned have_one = __ballot_sync(all_lanes, own != ignored_target);
    for (int holder = 0; holder < 32 && have_one >> holder != 0; ++holder) {
      if ((have_one >> holder & 1u) == 0) continue;
      const int64_t target = __shfl_sync(all_lanes, own, holder), at = (first + holder) * args.stride;
      const float wanted = load1(args.logits.data, args.logits.dtype, at + target);
      bool is_beaten = false;
      for (int64_t j = lane; j < args.classes; j += warp) {
        const float x = load1(args.logits.data, args.logits.dtype, at + j);
        is_beaten = is_beaten || !(x < wanted || (x == wanted && j >= target));
      }
      hits += __ballot_sync(all_lanes, is_beaten) == 0;
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
