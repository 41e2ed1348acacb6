// The number of rows whose logits are all on the right side of 0. As in hit_count, a warp looks at 32 rows at
// once and goes over the logits of those with values. There is one block, so that it alone adds to the state.
// The kernel is used only in evaluations.
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

static __global__ void __launch_bounds__(block_threads) value_hits_kernel(ValueHitsArgs args) {
  constexpr int64_t warp = 32;
  STW_SHARED(uint32_t, hits_of_warps, block_threads / 32);
  const int64_t lane = threadIdx.x % 32;
  uint32_t hits = 0;
  for (int64_t first = threadIdx.x / 32 * warp; first < args.rows; first += block_threads) {
    const bool counts = first + lane < args.rows && args.targets[first + lane] != ignored_target;
    const unsigned have_values = __ballot_sync(all_lanes, counts);
    for (int holder = 0; holder < 32 && have_values >> holder != 0; ++holder) {
      if ((have_values >> holder & 1u) == 0) continue;
      const int64_t row = first + holder;
      bool is_wrong = false;
      for (int64_t j = lane; j < args.count; j += warp) {
        const float x = load1(args.logits.data, args.logits.dtype, row * args.stride + j);
        const bool is_there = args.values[row * args.count + j] > 0.5f;
        is_wrong = is_wrong || !(is_there ? x > 0 : x <= 0);
      }
      hits += __ballot_sync(all_lanes, is_wrong) == 0;
    }
  }
  if (lane == 0) hits_of_warps[threadIdx.x / 32] = hits;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 0; i < block_threads / 32; ++i) args.state->hits += hits_of_warps[i];
}

void value_hits(const Launch& l, const ValueHitsArgs& args) {
  launch(l, value_hits_kernel, 1, block_threads, 0, args);
}

}  // namespace stw::kernels::cuda
