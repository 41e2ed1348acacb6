// *sum = Σ g², the part of one tensor in the norm of all gradients, in the order that kernels.h defines: chunks of 4096
// elements in fp32 by 16 lanes, a block a chunk, then the chunks' sums one after the other in double, by one block. Floor:
// the gradient read once, and one double addition's latency a chunk, which nothing hides: 1/4096 of the elements, but still
// more time than the reading where memory gives some TB/s. A NaN or an infinity in the gradient reaches the sum.
#include "kernels/common/sum_check.h"
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/serial_sum.h"

namespace stw::kernels::cuda {

static_assert(staged_floats == 4096);

template <DType dtype>
static __global__ void __launch_bounds__(block_threads) chunk_sums_kernel(SquareSumArgs args, float* sums) {
  for (int64_t chunk = blockIdx.x; chunk * 4096 < args.count; chunk += gridDim.x) {
    const int64_t begin = chunk * 4096;
    const float sum = sum_squares(min(static_cast<int64_t>(4096), args.count - begin), [&](int64_t i, int64_t n) {
      const F16 g = load_group(args.gradient[0], dtype, begin + i, n);
      return args.gradient[1] == nullptr ? g : add(g, load_group(args.gradient[1], dtype, begin + i, n));
    });
    if (threadIdx.x == 0) sums[chunk] = sum;
  }
}

static __global__ void __launch_bounds__(block_threads) add_chunks_kernel(SquareSumArgs args, const float* sums) {
  const double total = serial_sum(0.0, sums, ceil_div(args.count, 4096));
  if (threadIdx.x != 0) return;
  *args.sum = total;
  check_sum(args, total);
}

void square_sum(const Launch& l, const SquareSumArgs& args) {
  STW_ASSERT_WORKSPACE(square_sum);
  auto* sums = static_cast<float*>(l.workspace);
  for_dtype(args.dtype, [&](auto stored) {
    launch(l, chunk_sums_kernel<stored.dtype>, blocks_for(args.count, 4096), block_threads, 0, args, sums);
  });
  launch(l, add_chunks_kernel, 1, block_threads, 0, args, sums);
}

}  // namespace stw::kernels::cuda
