// Attention of new tokens over a cache. The chunks are those of `attention`, shifted by the position, so a
// row gets the bits that it would get in the whole sequence.
#include "kernels/cpu/attention/attention_forward.h"
#include "kernels/cpu/kernels_isa.h"

namespace stw::kernels::STW_ISA {

static void append(const AttentionCachedArgs& args, int64_t position, int64_t from, Matrix cache) {
  const int64_t columns = args.kv_heads * args.head_dim;
  const int64_t width = (args.query_heads + 2 * args.kv_heads) * args.head_dim;
  for (int64_t r = 0; r < args.rows; ++r)
    for (int64_t c = 0; c < columns; c += 16) {
      const int64_t lanes = min(16, columns - c);
      const F16 x = load16_some(args.qkv.data, args.qkv.dtype, r * width + from + c, lanes);
      store16_some(cache.data, cache.dtype, (position + r) * columns + c, x, lanes);
    }
}

void attention_cached(const Launch& launch, const AttentionCachedArgs& args) {
  STW_ASSERT_WORKSPACE(attention_cached);
  const int64_t rows = args.rows, head_dim = args.head_dim, position = (int64_t)args.state->position;
  const int64_t columns = args.kv_heads * head_dim, width = args.query_heads * head_dim + 2 * columns;
  append(args, position, args.query_heads * head_dim, args.key_cache);
  append(args, position, args.query_heads * head_dim + columns, args.value_cache);
  const int64_t chunks = ceil_div(rows, query_chunk), group = args.query_heads / args.kv_heads;
  ForwardWorkspace counted;
  const int64_t thread_bytes = carve_forward(rows, head_dim, false, nullptr, &counted);
  STW_ASSERT_THREADS_FIT(thread_bytes);
  parallel_for(launch, args.query_heads * chunks, [&](int64_t index, int thread) {
    const int64_t chunk = chunks - 1 - index / args.query_heads, head = index % args.query_heads;
    ForwardWorkspace w;
    carve_forward(rows, head_dim, false, (char*)launch.workspace + thread * thread_bytes, &w);
    HeadAttention h;
    h.queries = {args.qkv.data, args.qkv.dtype, head * head_dim, width};
    h.keys = {args.key_cache.data, args.key_cache.dtype, head / group * head_dim, columns};
    h.values = {args.value_cache.data, args.value_cache.dtype, head / group * head_dim, columns};
    h.query_rows = rows;
    h.head_dim = head_dim;
    h.scale = args.scale;
    h.rule = score_rule(args, position, head);
    h.dropout = nullptr;
    h.dropout_first = 0;
    h.out = args.out;
    h.out_at = head * head_dim;
    h.out_stride = args.query_heads * head_dim;
    h.lse = nullptr;
    attend_chunk(h, w, chunk * query_chunk);
  });
}

}  // namespace stw::kernels::STW_ISA
