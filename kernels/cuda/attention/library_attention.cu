// Sums the gradients of keys and values over the query heads that share them. Bound by memory: both gradients
// of each query head are read once, and the shared gradients are written. Every gradient has 2 bytes an
// element, and a thread accesses 8 bytes at a time. Sums are chains in fp32 in the order of the query heads,
// rounded once.
#include "kernels/cuda/attention/library_attention.h"

#include "kernels/cuda/groups.h"

namespace stw::kernels::cuda {

bool library_takes(const Launch& l, const AttentionArgs& args, bool gradient) {
  return library_could_take(args) && l.attention != nullptr &&
         l.attention->takes(l.attention->self, args, gradient);
}

void library_attention(const Launch& l, const AttentionArgs& args) {
  l.attention->attend(l.attention->self, args, l.workspace, l.stream);
}

// `keys` and `values` are the gradients of a part for each query head, (rows, query heads, head_dim). Their
// sums go to the key and value heads of dqkv.
static __global__ void __launch_bounds__(block_threads)
    shared_heads_kernel(AttentionArgs args, AttentionPart part, const uint16_t* keys,
                        const uint16_t* values) {
  const int64_t group = args.query_heads / args.kv_heads, width = args.head_dim,
                of_row = part.kv_heads * width;
  const int64_t q_width = args.query_heads * width, stride = q_width + 2 * args.kv_heads * width,
                rows = part.samples * args.rows_per_sample;
  for_tasks_of_grid(2 * rows * part.kv_heads, [&](int64_t task) {
    const bool is_value = task >= rows * part.kv_heads;
    const int64_t at = is_value ? task - rows * part.kv_heads : task, row = at / part.kv_heads,
                  head = at % part.kv_heads;
    const uint16_t* const from = (is_value ? values : keys) + row * of_row * group + head * group * width;
    const int64_t to = (part.first_sample * args.rows_per_sample + row) * stride + q_width +
                       (part.first_kv_head + head) * width + (is_value ? args.kv_heads * width : 0);
    for_groups(0, width, [&](int64_t i, int64_t n) {
      F16 sum = load_group(from, args.qkv.dtype, i, n);
      for (int64_t query_head = 1; query_head < group; ++query_head)
        sum = add(sum, load_group(from, args.qkv.dtype, query_head * width + i, n));
      store_group(args.dqkv.data, args.dqkv.dtype, to + i, sum, n);
    });
  });
}

void library_attention_gradient(const Launch& l, const AttentionArgs& args) {
  const AttentionShape shape = shape_of(args);
  const AttentionPart largest = largest_attention_part(shape);
  auto* const scratch = static_cast<unsigned char*>(l.workspace);
  for (int64_t sample = 0; sample < args.samples; sample += largest.samples)
    for (int64_t kv_head = 0; kv_head < args.kv_heads; kv_head += largest.kv_heads) {
      const AttentionPart part = attention_part_at(shape, largest, sample, kv_head);
      l.attention->differentiate(l.attention->self, args, part, scratch, l.stream);
      if (args.query_heads == args.kv_heads) continue;
      const AttentionScratch at = attention_scratch(shape, part);
      launch(l, shared_heads_kernel, blocks_for_rows(2 * part.samples * args.rows_per_sample * part.kv_heads),
             block_threads, 0, args, part, reinterpret_cast<const uint16_t*>(scratch + at.keys),
             reinterpret_cast<const uint16_t*>(scratch + at.values));
    }
}

}  // namespace stw::kernels::cuda
