// Attention over whole samples on the CUDA cores, with the CPU's bits. A block of threads computes one tile
// of queries of one head of one sample. Blocks share nothing, so the batch cannot change a bit. In causal
// attention, late tiles see the most keys; they go first, so that no multiprocessor is left with a long tile
// at the end.
#include "kernels/cuda/attention/attention_forward.h"
#include "kernels/cuda/attention/library_attention.h"
#include "kernels/cuda/attention/tensor_attention.h"
#include "kernels/cuda/attention/warpgroup_attention.h"

namespace stw::kernels::cuda {

static __global__ void __launch_bounds__(tile_threads) attention_kernel(AttentionArgs args) {
  STW_DYNAMIC_SHARED(float, memory);
  const int64_t rows = args.rows_per_sample, head_dim = args.head_dim,
                group = args.query_heads / args.kv_heads;
  const int64_t width = (static_cast<int64_t>(args.query_heads) + 2 * args.kv_heads) * head_dim,
                out_width = args.query_heads * head_dim;
  const int64_t heads = args.samples * args.query_heads, tiles = ceil_div(rows, tile_rows);
  const int64_t tile = tiles - 1 - blockIdx.x / heads, sample = blockIdx.x % heads / args.query_heads;
  const int64_t head = blockIdx.x % args.query_heads, kv_head = head / group, top = sample * rows * width;
  HeadAttention h;
  h.queries = {args.qkv.data, args.qkv.dtype, top + head * head_dim, width};
  h.keys = {args.qkv.data, args.qkv.dtype, top + (args.query_heads + kv_head) * head_dim, width};
  h.values = {args.qkv.data, args.qkv.dtype, top + (args.query_heads + args.kv_heads + kv_head) * head_dim,
              width};
  h.query_rows = rows;
  h.head_dim = args.head_dim;
  h.scale = args.scale;
  h.rule = score_rule(args, sample, head);
  h.dropped = args.dropout > 0;
  h.dropout = {};
  if (h.dropped) h.dropout = dropout_of(args.dropout, args.stream, *args.state, sample);
  h.dropout_first = head * rows * rows;
  h.out = args.out;
  h.out_at = sample * rows * out_width + head * head_dim;
  h.out_stride = out_width;
  h.lse = args.lse + (sample * args.query_heads + head) * rows;
  attend_tile(h, tile * tile_rows, memory);
}

void attention(const Launch& l, const AttentionArgs& args) {
  STW_ASSERT_WORKSPACE(attention);
  assert(is_valid_score_rule(args));
  if (library_takes(l, args, false)) return library_attention(l, args);
  if (warpgroups_take(args)) return warpgroup_attention(l, args);
  if (tensor_cores_take(args)) return tensor_attention(l, args);
  const int64_t blocks = args.samples * args.query_heads * ceil_div(args.rows_per_sample, tile_rows);
  launch(l, attention_kernel, static_cast<unsigned>(blocks), tile_threads,
         forward_shared_bytes(args.head_dim), args);
}

}  // namespace stw::kernels::cuda
