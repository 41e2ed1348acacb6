// Attention of new tokens over a cache. The tiles are those of `attention`, shifted by the position, so a row
// gets the bits that it would get in the whole sequence. The position is read on the device and the grid does
// not depend on it, so a captured graph can be replayed while the position grows. Two kernels: the first
// appends the new keys and values, the second reads them with the others.
#include "kernels/cuda/attention/attention_forward.h"

namespace stw::kernels::cuda {

// Groups of 16 columns of the new rows: first those of the keys, then those of the values.
static __global__ void __launch_bounds__(block_threads) append_kernel(AttentionCachedArgs args) {
  const int64_t columns = static_cast<int64_t>(args.kv_heads) * args.head_dim,
                queries = static_cast<int64_t>(args.query_heads) * args.head_dim;
  const int64_t groups = ceil_div(columns, 16);
  const auto position = static_cast<int64_t>(args.state->position);
  for_tasks_of_grid(2 * args.rows * groups, [&](int64_t task) {
    const bool value = task >= args.rows * groups;
    const int64_t row = task / groups % args.rows, c = task % groups * 16,
                  n = min(static_cast<int64_t>(16), columns - c);
    const Matrix cache = value ? args.value_cache : args.key_cache;
    const F16 x = load_group(args.qkv.data, args.qkv.dtype,
                             row * (queries + 2 * columns) + queries + (value ? columns : 0) + c, n);
    store_group(cache.data, cache.dtype, (position + row) * columns + c, x, n);
  });
}

static __global__ void __launch_bounds__(tile_threads) attention_cached_kernel(AttentionCachedArgs args) {
  STW_DYNAMIC_SHARED(float, memory);
  const int64_t head_dim = args.head_dim, columns = args.kv_heads * head_dim,
                width = args.query_heads * head_dim + 2 * columns;
  const int64_t tile = ceil_div(args.rows, tile_rows) - 1 - blockIdx.x / args.query_heads;
  const int64_t head = blockIdx.x % args.query_heads, kv_head = head / (args.query_heads / args.kv_heads);
  HeadAttention h;
  h.queries = {args.qkv.data, args.qkv.dtype, head * head_dim, width};
  h.keys = {args.key_cache.data, args.key_cache.dtype, kv_head * head_dim, columns};
  h.values = {args.value_cache.data, args.value_cache.dtype, kv_head * head_dim, columns};
  h.query_rows = args.rows;
  h.head_dim = args.head_dim;
  h.scale = args.scale;
  h.rule = score_rule(args, static_cast<int64_t>(args.state->position), head);
  h.dropped = false;
  h.dropout = {};
  h.dropout_first = 0;
  h.out = args.out;
  h.out_at = head * head_dim;
  h.out_stride = args.query_heads * head_dim;
  h.lse = nullptr;
  attend_tile(h, tile * tile_rows, memory, product_of_rows(h));
}

void attention_cached(const Launch& l, const AttentionCachedArgs& args) {
  STW_ASSERT_WORKSPACE(attention_cached);
  launch(
      l, append_kernel,
      blocks_for_elements(2 * args.rows * round_up(static_cast<int64_t>(args.kv_heads) * args.head_dim, 16)),
      block_threads, 0, args);
  const int64_t blocks = args.query_heads * ceil_div(args.rows, tile_rows);
  launch(l, attention_cached_kernel, static_cast<unsigned>(blocks), tile_threads,
         forward_shared_bytes(args.head_dim), args);
}

}  // namespace stw::kernels::cuda
