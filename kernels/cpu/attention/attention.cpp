// Attention over whole samples. A task is one chunk of queries of one head of one sample. Tasks share
// nothing, so neither threads nor the batch can change a bit.
#include "kernels/cpu/attention/attention_forward.h"
#include "kernels/cpu/kernels_isa.h"

namespace stw::kernels::STW_ISA {

void attention(const Launch& launch, const AttentionArgs& args) {
  STW_ASSERT_WORKSPACE(attention);
  assert(is_valid_score_rule(args));
  const int64_t rows = args.rows_per_sample, head_dim = args.head_dim;
  const int64_t width = (args.query_heads + 2 * args.kv_heads) * head_dim,
                out_width = args.query_heads * head_dim;
  const int64_t chunks = ceil_div(rows, query_chunk), group = args.query_heads / args.kv_heads;
  ForwardWorkspace counted;
  const bool has_relative = args.relative.table.data != nullptr;
  const int64_t thread_bytes = carve_forward(rows, head_dim, has_relative, nullptr, &counted);
  STW_ASSERT_THREADS_FIT(thread_bytes);
  // In causal attention, late chunks see the most keys. They go first, so that no thread is left with a long
  // chunk at the end.
  parallel_for(launch, args.samples * args.query_heads * chunks, [&](int64_t index, int thread) {
    const int64_t chunk = chunks - 1 - index / (args.samples * args.query_heads);
    const int64_t sample = index % (args.samples * args.query_heads) / args.query_heads;
    const int64_t head = index % args.query_heads, kv_head = head / group;
    ForwardWorkspace w;
    carve_forward(rows, head_dim, has_relative, (char*)launch.workspace + thread * thread_bytes, &w);
    Dropout dropout = {};
    if (args.dropout > 0) dropout = dropout_of(args.dropout, args.stream, *args.state, sample);
    const int64_t first = sample * rows * width;
    HeadAttention h;
    h.queries = {args.qkv.data, args.qkv.dtype, first + head * head_dim, width};
    h.keys = {args.qkv.data, args.qkv.dtype, first + (args.query_heads + kv_head) * head_dim, width};
    h.values = {args.qkv.data, args.qkv.dtype,
                first + (args.query_heads + args.kv_heads + kv_head) * head_dim, width};
    h.query_rows = rows;
    h.head_dim = head_dim;
    h.scale = args.scale;
    h.rule = score_rule(args, sample, head);
    h.dropout = args.dropout > 0 ? &dropout : nullptr;
    h.dropout_first = head * rows * rows;
    h.out = args.out;
    h.out_at = sample * rows * out_width + head * head_dim;
    h.out_stride = out_width;
    h.lse = args.lse + (sample * args.query_heads + head) * rows;
    h.relative = relative_head(args, head);
    attend_chunk(h, w, chunk * query_chunk);
  });
}

}  // namespace stw::kernels::STW_ISA
