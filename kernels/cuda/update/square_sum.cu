// *sum = Σ g², the part of each tensor in the norm of all gradients, in the order that kernels.h defines. A
// block sums a chunk of 4096 elements in fp32 by 16 lanes. Then a block sums the chunks of a tensor in order
// in double; it may use another order if no sum is rounded (serial_sum.h). The lower bound is the time to
// read the gradients once. A block requests its whole chunk at once, 16 KB, and sixteen of its threads add
// for about 1,300 cycles while seven other blocks of its SM read. All tensors whose gradients are stored
// alike take two launches, or one if each has one chunk. A sum that continues is always serial. A NaN or an
// infinity in a gradient reaches its sum.
#include "kernels/common/sum_check.h"
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/product/tensor_chunks.h"
#include "kernels/cuda/serial_sum.h"

namespace stw::kernels::cuda {

static_assert(staged_floats == square_chunk);

// An argument of the kernels: the tensors of a list that one launch takes.
struct SquareSumTensor {
  SquareSumArgs args;
  int32_t first_chunk;  // Its number in the launch.
};
struct SquareSumBatch {
  int32_t tensors, chunks;
  bool vectors, has_long;  // has_long: some tensors have several chunks.
  SquareSumTensor tensor[most_together];
};
static_assert(sizeof(SquareSumBatch) <= 4096, "the arguments of a kernel");

// The sum of the slices before this one; 0 if there are none.
STW_DEVICE double sum_before(const SquareSumArgs& args) { return args.continues ? *args.sum : 0.0; }
STW_DEVICE void finish_sum(const SquareSumArgs& args, double total) {
  *args.sum = total;
  check_sum(args, total);
}

template <DType dtype>
static __global__ void __launch_bounds__(block_threads, 5)
    chunk_sums_kernel(STW_CONSTANT SquareSumBatch batch, float* sums) {
  for_chunks(batch, [&](int tensor, int chunk) {
    const SquareSumArgs& args = batch.tensor[tensor].args;
    const void *const gradient = args.gradient[0], *const tied = args.gradient[1];
    const int64_t count = args.count, begin = (chunk - batch.tensor[tensor].first_chunk) * staged_floats;
    const float sum = sum_squares(
        min(staged_floats, count - begin),
        [&](int64_t i, auto n) {
          const F16 g = load_group(gradient, dtype, begin + i, n);
          return tied != nullptr ? add(g, load_group(tied, dtype, begin + i, n)) : g;
        },
        batch.vectors);
    if (threadIdx.x != 0) return;
    if (count <= staged_floats) finish_sum(args, sum_before(args) + static_cast<double>(sum));
    else sums[chunk] = sum;
  });
}

static __global__ void __launch_bounds__(block_threads)
    add_chunks_kernel(STW_CONSTANT SquareSumBatch batch, const float* sums) {
  const SquareSumArgs& args = batch.tensor[blockIdx.x].args;
  if (args.count <= staged_floats) return;
  const float* const chunks = sums + batch.tensor[blockIdx.x].first_chunk;
  const int64_t count = ceil_div(args.count, staged_floats);
  const double total =
      args.continues ? serial_sum(*args.sum, chunks, count) : serial_sum_of_floats(chunks, count);
  if (threadIdx.x == 0) finish_sum(args, total);
}

static bool has_vectors(const SquareSumArgs& args) {
  return vectors_at(args.gradient[0], args.dtype) && vectors_at(args.gradient[1], args.dtype);
}

void square_sum(const Launch& l, const List<SquareSumArgs>& args) {
  STW_ASSERT_WORKSPACE(square_sum);
  assert(args.count <= most_together);
  auto* const sums = static_cast<float*>(l.workspace);
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const bool vectors : {true, false}) {
      SquareSumBatch batch = {};
      batch.vectors = vectors;
      for (int i = 0; i < args.count; ++i) {
        const SquareSumArgs& one = args.first[i];
        if (one.dtype != dtype || has_vectors(one) != vectors) continue;
        batch.tensor[batch.tensors++] = {one, batch.chunks};
        batch.chunks += static_cast<int32_t>(ceil_div(one.count, staged_floats));
        batch.has_long |= one.count > staged_floats;
      }
      if (batch.tensors == 0) continue;
      for_dtype(dtype, [&](auto stored) {
        launch(l, chunk_sums_kernel<stored.dtype>, blocks_for(batch.chunks, 1), block_threads, 0, batch,
               sums);
      });
      if (batch.has_long)
        launch(l, add_chunks_kernel, batch.tensors, block_threads, 0, batch, static_cast<const float*>(sums));
    }
}

}  // namespace stw::kernels::cuda
