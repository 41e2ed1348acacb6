// *sum = Σ g², the part of one tensor in the norm of all gradients, in the order that kernels.h defines: chunks of 4096
// elements in fp32 by 16 lanes, a block a chunk, then the chunks' sums one after the other in double, by one block, which need not
// keep to that order where no sum is rounded (serial_sum.h). Floor: the gradient read once. A block asks for all of its chunk at once,
// 16 KB, and adds for some 1,300 cycles while seven others of its SM read. A tensor of one chunk, as most are, is one launch. A NaN or an
// infinity in the gradient reaches the sum.
#include "kernels/common/sum_check.h"
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/serial_sum.h"

namespace stw::kernels::cuda {

static_assert(staged_floats == 4096);

STW_DEVICE void finish_sum(const SquareSumArgs& args, double total) {
  *args.sum = total;
  check_sum(args, total);
}

// `sums` is null where there is one chunk.
template <DType dtype>
static __global__ void __launch_bounds__(block_threads) chunk_sums_kernel(SquareSumArgs args, bool vectors, float* sums) {
  const bool tied = args.gradient[1] != nullptr;
  for (int64_t chunk = blockIdx.x; chunk * 4096 < args.count; chunk += gridDim.x) {
    const int64_t begin = chunk * 4096;
    const float sum = sum_squares(min(static_cast<int64_t>(4096), args.count - begin), [&](int64_t i, auto n) {
      const F16 g = load_group(args.gradient[0], dtype, begin + i, n);
      return tied ? add(g, load_group(args.gradient[1], dtype, begin + i, n)) : g;
    }, vectors);
    if (threadIdx.x != 0) continue;
    if (sums == nullptr) finish_sum(args, static_cast<double>(sum));
    else sums[chunk] = sum;
  }
}

static __global__ void __launch_bounds__(block_threads) add_chunks_kernel(SquareSumArgs args, const float* sums) {
  const double total = serial_sum_of_floats(sums, ceil_div(args.count, 4096));
  if (threadIdx.x == 0) finish_sum(args, total);
}

void square_sum(const Launch& l, const SquareSumArgs& args) {
  STW_ASSERT_WORKSPACE(square_sum);
  const bool vectors = vectors_at(args.gradient[0], args.dtype) && vectors_at(args.gradient[1], args.dtype), is_one = args.count <= 4096;
  auto* sums = static_cast<float*>(l.workspace);
  for_dtype(args.dtype, [&](auto stored) {
    launch(l, chunk_sums_kernel<stored.dtype>, blocks_for(args.count, 4096), block_threads, 0, args, vectors, is_one ? nullptr : sums);
  });
  if (!is_one) launch(l, add_chunks_kernel, 1, block_threads, 0, args, sums);
}

}  // namespace stw::kernels::cuda
