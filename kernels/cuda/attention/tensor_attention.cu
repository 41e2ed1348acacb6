// Attention on tensor cores for 16-bit operands, after Dao, "FlashAttention-2" (2023). A block has 64 queries
// of one head, 16 a warp, and processes 64 keys at a time. Scores, the running maximum and sum, and the
// outputs stay in fp32 in the registers of the warp that owns the rows. Probabilities are rounded to 16 bits
// for the second product; the accumulators of the first product are the operand of the second. The next keys
// arrive while probabilities and outputs are computed, the values while the scores are computed.
//
// The bits are not the CPU's: tensor cores add 16 products in their own order, and exponentials come from the
// special function unit. But the bits of a row depend only on its document, whose keys are counted from its
// first one, and every run gives the same bits. The limit is the tensor cores: 4·keys·head_dim operations a
// query, half of that if causal.
#include "kernels/cuda/attention/tensor_query_tile.h"

namespace stw::kernels::cuda {

inline constexpr int tensor_keys = 64;  // Keys of a block.

// Attention of the queries of one document. The queries pass through the tile of values.
template <DType dtype, int depth>
STW_DEVICE void attend_segment(const AttentionArgs& args, const TensorQueryBlock& b, const Segment& segment,
                               float slope, uint16_t* keys, uint16_t* values) {
  const DocumentRule<int> rule = segment.rule;
  const int begin = block_with(rule, first_key(rule, segment.begin), tensor_keys),
            last = end_key(rule, segment.end - 1);
  copy_tile<depth, tensor_rows>(b.queries, b.first, segment.begin, segment.end, args.head_dim, values);
  commit_copies();
  copy_tile<depth, tensor_keys>(b.keys, begin, begin, last, args.head_dim, keys);
  commit_copies();

  const int tile_row = static_cast<int>(threadIdx.x) / 32 * 16, warp_row = b.first + tile_row;
  // The keys that all rows of the warp see. Most blocks of keys lie within [seen_begin, seen_end) and need no
  // mask. With a bias, the range is empty.
  const int seen_begin = first_key(rule, warp_row + 15),
            seen_end = slope != 0 ? 0 : end_key(rule, segment.begin);
  const float factor = args.scale * log2_of_e;  // e^(scale·s) = 2^(factor·s).
  uint32_t q[depth / 16][4];
  wait_copies<1>();
  __syncthreads();
  STW_UNROLL
  for (int k = 0; k < depth / 16; ++k) load_left<depth>(q[k], values, tile_row, 16 * k);
  __syncthreads();
  copy_tile<depth, tensor_keys>(b.values, begin, begin, last, args.head_dim, values);
  commit_copies();

  float out[depth / 8][4] = {};
  TensorSoftmax running = {{lowest, lowest}, {0, 0}};
  for (int key = begin; key < last; key += tensor_keys) {
    wait_copies<1>();  // The keys; the values may be in flight.
    __syncthreads();
    float s[tensor_keys / 8][4] = {};
    multiply_keys<dtype, depth>(s, q, keys);
    __syncthreads();
    if (key + tensor_keys < last)
      copy_tile<depth, tensor_keys>(b.keys, key + tensor_keys, begin, last, args.head_dim, keys);
    commit_copies();
    if (key + tensor_keys > seen_end || key < seen_begin) {
      if (slope != 0) add_bias<false>(s, slope, warp_row, key);
      mask_scores(s, rule, warp_row, key, last);
    }
    apply_softmax<depth>(s, out, factor, running);
    if (args.dropout > 0) drop_probabilities(s, args, b, warp_row, key);
    wait_copies<1>();  // The values; the next keys may be in flight.
    __syncthreads();
    multiply_values<dtype, depth>(out, s, values);
    __syncthreads();
    if (key + tensor_keys < last)
      copy_tile<depth, tensor_keys>(b.values, key + tensor_keys, begin, last, args.head_dim, values);
    commit_copies();
  }
  store_rows<dtype, depth>(args, b, segment, warp_row, running, out);
  __syncthreads();  // All threads have finished with the tiles.
}

// Shared memory: a tile of keys and a tile of values. The queries pass through them too. With a tile of its
// own for the queries, a block with head_dim 128 would need 52 KiB, and cards with 100 KiB a multiprocessor
// (sm_86, sm_89, sm_120) would run one such block at a time instead of two.
template <DType dtype, int depth>
static __global__ void __launch_bounds__(tensor_threads, depth <= 64 ? 3 : 2)
    tensor_attention_kernel(AttentionArgs args) {
  STW_DYNAMIC_SHARED(uint16_t, memory);
  uint16_t* const keys = memory;
  uint16_t* const values = keys + tensor_keys * tile_stride<depth>;
  static_assert(tensor_rows <= tensor_keys);
  const TensorQueryBlock b = tensor_query_block(args);
  const Documents documents = documents_of(args, b.sample);
  const float slope = unscaled_slope(args, b.head);
  const int tile_end = b.first + tensor_rows < b.count ? b.first + tensor_rows : b.count;
  Segment segment;
  for (int next = b.first; next < tile_end; next = segment.end) {
    const int begin = next;
    next = end_of_single_rows(documents, begin, tile_end, b.count);
    attend_single_rows<dtype, depth, false, true>(args, b.sample, b.head, b.queries, b.keys, b.values,
                                                  {b.first + row_of_warp(), begin, next});
    if (next == tile_end) return;
    segment = segment_at(args, documents, next, tile_end, b.count, static_cast<int>(args.window));
    attend_segment<dtype, depth>(args, b, segment, slope, keys, values);
  }
}

void tensor_attention(const Launch& l, const AttentionArgs& args) {
  assert((reinterpret_cast<uintptr_t>(args.qkv.data) | reinterpret_cast<uintptr_t>(args.out.data)) % 16 == 0);
  const int64_t blocks = args.samples * args.query_heads * ceil_div(args.rows_per_sample, tensor_rows);
  for_tensor_instance(args.qkv.dtype, args.head_dim, [&](auto t) {
    launch(l, tensor_attention_kernel<t.dtype, t.depth>, static_cast<unsigned>(blocks), tensor_threads,
           tile_bytes<t.depth>(2 * tensor_keys), args);
  });
}

}  // namespace stw::kernels::cuda
