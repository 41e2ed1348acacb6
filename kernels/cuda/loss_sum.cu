// Adds a micro-batch's token losses to the step's sum, sample after sample, so that the split of a global batch into
// micro-batches leaves no trace. A block a sample, then one block for the samples.
//
// Workspace: the samples' sums (double), then their numbers of targets (64 bits).
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/serial_sum.h"

namespace stw::kernels::cuda {

static __global__ void __launch_bounds__(block_threads) sample_sums_kernel(LossSumArgs args, double* sums, uint64_t* counts) {
  for (int64_t sample = blockIdx.x; sample < args.samples; sample += gridDim.x) {
    const int64_t first = sample * args.rows_per_sample;
    const double sum = serial_sum_of_floats(args.token_loss + first, args.rows_per_sample);
    uint64_t count = 0;
    for (int64_t begin = 0; begin < args.rows_per_sample; begin += blockDim.x) {
      const int64_t row = begin + threadIdx.x;
      count += static_cast<uint64_t>(__syncthreads_count(row < args.rows_per_sample && args.targets[first + row] != ignored_target));
    }
    if (threadIdx.x != 0) continue;
    sums[sample] = sum;
    counts[sample] = count;
  }
}

static __global__ void __launch_bounds__(block_threads) add_samples_kernel(LossSumArgs args, const double* sums, const uint64_t* counts) {
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
  launch(l, sample_sums_kernel, blocks_for(args.samples, 1), block_threads, 0, args, sums, counts);
  launch(l, add_samples_kernel, 1, block_threads, 0, args, sums, counts);
}

}  // namespace stw::kernels::cuda
