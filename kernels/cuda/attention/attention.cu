// Attention over whole samples on the CUDA cores, with the CPU's bits. A block of threads computes one tile
// of queries of one head of one sample. Blocks share nothing, so the batch cannot change a bit. In causal
// attention, late tiles see the most keys; they go first, so that no multiprocessor is left with a long tile
// at the end.
#include "kernels/cuda/attention/attention_forward.h"
#include "kernels/cuda/attention/library_attention.h"
#include "kernels/cuda/attention/relative_attention.h"
#include "kernels/cuda/attention/tensor_attention.h"
#include "kernels/cuda/attention/warpgroup_attention.h"

namespace stw::kernels::cuda {

static __global__ void __launch_bounds__(tile_threads) attention_kernel(AttentionArgs args) {
  STW_DYNAMIC_SHARED(float, memory);
  const HeadAttention h = head_of_tile(args);
  attend_tile(h, first_of_tile(args), memory, product_of_rows(h));
}

void attention(const Launch& l, const AttentionArgs& args) {
  STW_ASSERT_WORKSPACE(attention);
  assert(is_valid_score_rule(args));
  if (has_relative(args))
    return tensor_cores_take_relative(args) ? tensor_relative_attention(l, args)
                                            : relative_attention(l, args);
  if (library_takes(l, args, false)) return library_attention(l, args);
  if (warpgroups_take(args)) return warpgroup_attention(l, args);
  if (tensor_cores_take(args)) return tensor_attention(l, args);
  const int64_t blocks = args.samples * args.query_heads * ceil_div(args.rows_per_sample, tile_rows);
  launch(l, attention_kernel, static_cast<unsigned>(blocks), tile_threads,
         forward_shared_bytes(args.head_dim), args);
}

}  // namespace stw::kernels::cuda
