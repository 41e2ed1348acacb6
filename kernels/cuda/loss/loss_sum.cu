// Adds a micro-batch's token losses to the step's sum, sample after sample, so that the split of a global
// batch into micro-batches does not affect it. One block: a warp for each sample, then one thread for the
// samples' sums.
//
// Workspace: the samples' sums (double), then their numbers of targets (64 bits).
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/serial_sum.h"

namespace stw::kernels::cuda {

static constexpr int sum_threads = 1024;

static __global__ void __launch_bounds__(sum_threads)
    loss_sum_kernel(LossSumArgs args, double* sums, uint64_t* counts) {
  constexpr int warp = 32;
  const int lane = static_cast<int>(threadIdx.x) % warp;
  for (int64_t sample = threadIdx.x / warp; sample < args.samples; sample += sum_threads / warp) {
    const int64_t first = sample * args.rows_per_sample;
    const double sum = serial_sum_of_floats_by_warp(args.token_loss + first, args.rows_per_sample);
    unsigned count = 0;
    for_each_ahead<8>(
        lane < args.rows_per_sample ? ceil_div(args.rows_per_sample - lane, warp) : 0,
        [&](int64_t i) { return args.targets[first + lane + i * warp]; },
        [&](int32_t target) { count += target != ignored_target; });
    STW_UNROLL
    for (int lanes = 1; lanes < warp; lanes *= 2) count += __shfl_xor_sync(all_lanes, count, lanes);
    if (lane != 0) continue;
    sums[sample] = sum;
    counts[sample] = count;
  }
  __syncthreads();
  const double sum = serial_sum(args.state->loss_sum, sums, args.samples);
  const uint64_t count = serial_sum(args.state->target_count, counts, args.samples);
  if (threadIdx.x != 0) return;
  args.state->loss_sum = sum;
  args.state->target_count = count;
}

void loss_sum(const Launch& l, const LossSumArgs& args) {
  STW_ASSERT_WORKSPACE(loss_sum);
  auto* sums = static_cast<double*>(l.workspace);
  auto* counts = reinterpret_cast<uint64_t*>(sums + args.samples);
  launch(l, loss_sum_kernel, 1, sum_threads, 0, args, sums, counts);
}

}  // namespace stw::kernels::cuda
