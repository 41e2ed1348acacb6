// Attention (tensor_attention.cu) by warpgroups, after Shah et al., "FlashAttention-3" (arXiv:2407.08608). A
// block has 128 queries of one head, 64 a warpgroup. wgmma reads queries, keys and values from shared memory.
// Probabilities are rounded in the registers where scores were accumulated, and stay there as the left
// operand of the second product. While that product and the first product of the next keys run, the softmax
// of the next keys is computed, and the keys and values after them arrive.
//
// The bits differ from those of tensor_attention.cu, which has other blocks of keys. But here, too, the bits
// of a row depend only on its document.
#include "kernels/cuda/attention/warpgroup_attention.h"

#include "kernels/cuda/attention/single_rows.h"
#include "kernels/cuda/attention/warpgroup_attention_tiles.h"

namespace stw::kernels::cuda {

// With dropout, a thread has 32 probabilities of a block of keys, one for each bit of a word
// (kept_of_queries).
template <int head_dim, bool with_dropout>
struct AttentionTiles {
  static constexpr bool dropped = with_dropout;
  static constexpr int depth = head_dim, keys = dropped ? 64 : 128, threads = 2 * warpgroup_threads,
                       rows = 2 * warpgroup_rows;
  static constexpr int queries_size = rows * depth, keys_size = keys * depth;  // Elements.
  static constexpr size_t shared_bytes = (queries_size + 4 * keys_size) * sizeof(uint16_t) + aligning_bytes;
};

// For rows lane / 4 and lane / 4 + 8 of a warp: the largest score so far, as an exponent of 2, and the sum
// of this lane's columns.
struct RunningSoftmax {
  float largest[2], sum[2];
};
// Turns scores into probabilities, before dropout. The caller must then multiply the earlier outputs by
// `rescale`. If a row sees none of the keys, all of its scores are -inf, but it has a maximum from earlier
// keys.
template <int fragments>
STW_DEVICE void apply_softmax(float (&s)[fragments][4], float factor, RunningSoftmax& running,
                              float (&rescale)[2]) {
  STW_UNROLL
  for (int half = 0; half < 2; ++half) {
    float found = s[0][2 * half];
    STW_UNROLL
    for (int n = 0; n < fragments; ++n) STW_UNROLL
    for (int e = 2 * half; e < 2 * half + 2; ++e) found = larger(found, s[n][e]);
    STW_UNROLL
    for (int lanes = 1; lanes <= 2; lanes *= 2)
      found = larger(found, __shfl_xor_sync(all_lanes, found, lanes));
    found = larger(found * factor, running.largest[half]);
    rescale[half] = fast_exp2(running.largest[half] - found);
    running.largest[half] = found;
    running.sum[half] *= rescale[half];
  }
  STW_UNROLL
  for (int n = 0; n < fragments; ++n) STW_UNROLL
  for (int e = 0; e < 4; ++e) {
    s[n][e] = fast_exp2(fma1(s[n][e], factor, -running.largest[e / 2]));
    running.sum[e / 2] += s[n][e];
  }
}

// Hides the keys that a row does not see: from `last` on, and those that its document's rule excludes. `key`
// is the first key of the scores.
template <int fragments>
STW_DEVICE void mask_keys(float (&s)[fragments][4], const DocumentRule<int>& rule, int warp_row, int key,
                          int last) {
  STW_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int end = end_key(rule, warp_row + accumulator_row(2 * half)),
              seen = (end < last ? end : last) - key;
    STW_UNROLL
    for (int n = 0; n < fragments; ++n) STW_UNROLL
    for (int e = 2 * half; e < 2 * half + 2; ++e)
      if (8 * n + accumulator_column(e) >= seen) s[n][e] = -infinity;
  }
}

// Keeps or drops each probability of a block of keys. `row`: the first row of the warp among the rows of all
// heads of the sample.
template <int fragments>
STW_DEVICE void drop_probabilities(float (&s)[fragments][4], const AttentionArgs& args, int sample,
                                   int64_t row, int key) {
  const Dropout dropout = dropout_of(args.dropout, args.stream, *args.state, sample);
  const uint32_t kept = kept_of_queries(dropout, fragments, args.rows_per_sample, row, key);
  STW_UNROLL
  for (int n = 0; n < fragments; ++n) STW_UNROLL
  for (int e = 0; e < 4; ++e) s[n][e] *= (kept >> (4 * n + e) & 1u) != 0 ? dropout.kept_scale : 0.0f;
}

// The queries of a block. Numbers of heads and rows have 32 bits, which saves registers. This suffices,
// because the number of a grid's blocks fits into 32 bits.
struct QueryBlock {
  int sample, head, kv_head, first, count;  // `count`: the rows of the sample.
  int out_width, width;                     // Elements of a row of `out`, and of `qkv`.
  const uint16_t *queries, *keys;           // Row 0 of the sample.
};
template <class T>
STW_DEVICE QueryBlock query_block(const AttentionArgs& args) {
  QueryBlock b;
  const int block_index = static_cast<int>(blockIdx.x),
            heads = static_cast<int>(args.samples) * args.query_heads;
  b.count = static_cast<int>(args.rows_per_sample);
  b.sample = block_index % heads / args.query_heads;
  b.head = block_index % args.query_heads;
  b.kv_head = b.head / (args.query_heads / args.kv_heads);
  b.out_width = args.query_heads * T::depth;
  b.width = b.out_width + 2 * args.kv_heads * T::depth;
  // In causal attention, the last queries have the most work; they go first.
  b.first = ((b.count + T::rows - 1) / T::rows - 1 - block_index / heads) * T::rows;
  const uint16_t* const top =
      static_cast<const uint16_t*>(args.qkv.data) + b.sample * args.rows_per_sample * b.width;
  b.queries = top + b.head * T::depth;
  b.keys = top + b.out_width + b.kv_head * T::depth;
  return b;
}

// Divides the output by the sums of probabilities, and stores it with the sums' logarithms.
template <class T, DType dtype>
STW_DEVICE void store_rows(const AttentionArgs& args, const QueryBlock& block, const Segment& segment,
                           int warp_row, const RunningSoftmax& running, float (&out)[T::depth / 8][4]) {
  const int64_t rows = args.rows_per_sample;
  float inverse[2];
  STW_UNROLL
  for (int half = 0; half < 2; ++half) {
    float sum = running.sum[half];
    STW_UNROLL
    for (int lanes = 1; lanes <= 2; lanes *= 2) sum += __shfl_xor_sync(all_lanes, sum, lanes);
    inverse[half] = 1.0f / sum;
    const int row = warp_row + accumulator_row(2 * half);
    if (lane_of_warp() % 4 == 0 && row >= segment.begin && row < segment.end)
      args.lse[static_cast<int64_t>(block.sample * args.query_heads + block.head) * rows + row] =
          fma1(running.largest[half], log_of_2, log(splat(sum)).f[0]);
  }
  store_accumulators<dtype, T::depth>(
      out, inverse, args.out.data, block.sample * rows * block.out_width + block.head * T::depth,
      block.out_width, opaque(warp_row), segment.begin, segment.end, T::depth);
}

// The keys that the queries of a document see, and what a warp needs to score them.
struct SeenKeys {
  DocumentRule<int> rule;
  int begin, last, blocks;
  int warp_row;
  // Every row of the warp sees the keys before seen_end: blocks of only such keys need no mask. 0 with a
  // bias.
  int seen_end;
  float factor, slope;
};
template <class T>
STW_DEVICE SeenKeys seen_keys(const AttentionArgs& args, const QueryBlock& place, const Segment& segment) {
  SeenKeys k;
  k.rule = segment.rule;
  k.begin = k.rule.begin, k.last = end_key(k.rule, segment.end - 1);
  k.blocks = (k.last - k.begin + T::keys - 1) / T::keys;
  k.warp_row = place.first + static_cast<int>(threadIdx.x) / 32 * 16;
  k.factor = args.scale * log2_of_e;  // e^(scale·s) = 2^(factor·s).
  k.slope = unscaled_slope(args, place.head);
  k.seen_end = k.slope != 0 ? 0 : end_key(k.rule, k.warp_row > segment.begin ? k.warp_row : segment.begin);
  return k;
}

// Turns the scores of a block of keys into probabilities, with their bias, mask and dropout.
template <class T>
STW_DEVICE void apply_block(float (&s)[T::keys / 8][4], const AttentionArgs& args, const QueryBlock& place,
                            const SeenKeys& seen, int block, RunningSoftmax& running, float (&rescale)[2]) {
  const int key = seen.begin + block * T::keys;
  if (key + T::keys > seen.seen_end) {
    if (seen.slope != 0) add_bias<false>(s, seen.slope, seen.warp_row, key);
    mask_keys(s, seen.rule, seen.warp_row, key, seen.last);
  }
  apply_softmax(s, seen.factor, running, rescale);
  if constexpr (T::dropped)
    drop_probabilities(s, args, place.sample, place.head * args.rows_per_sample + seen.warp_row, key);
}

// Copies the keys, or values, of a block to its tile: the blocks take turns in two tiles.
template <class T>
STW_DEVICE void copy_block(const uint16_t* rows, int width, const SeenKeys& seen, int block,
                           uint16_t* tiles) {
  copy_rows<T::threads, T::depth, T::keys>(rows, width, seen.begin + block * T::keys, seen.last,
                                           tiles + block % 2 * T::keys_size);
}
template <class T>
STW_DEVICE uint32_t tile_address(const uint16_t* tiles, int block) {
  return shared_address(tiles) + static_cast<uint32_t>(block % 2) * (T::keys_size * sizeof(uint16_t));
}

// Attention of the queries of one document. `queries`: all queries of the block. `memory`: the tiles of keys
// and values follow the queries there.
template <class T, DType dtype>
STW_DEVICE void attend_segment(const AttentionArgs& args, const QueryBlock& place, const Segment& segment,
                               uint16_t* memory, uint16_t* queries) {
  uint16_t* const keys = queries + T::queries_size;
  uint16_t* const values = keys + 2 * T::keys_size;
  const SeenKeys seen = seen_keys<T>(args, place, segment);
  const uint32_t own_queries =
      shared_address(queries) +
      static_cast<uint32_t>(threadIdx.x / warpgroup_threads) * warpgroup_rows * line_bytes;
  float s[T::keys / 8][4], out[T::depth / 8][4] = {};
  uint32_t p[T::keys / product_step][4];
  RunningSoftmax running = {{-infinity, -infinity}, {0, 0}};
  float rescale[2];
  const auto copy_keys = [&](int block) {
    if (block < seen.blocks) copy_block<T>(place.keys, place.width, seen, block, keys);
  };
  const auto copy_values = [&](int block) {
    copy_block<T>(place.keys + args.kv_heads * T::depth, place.width, seen, block, values);
  };
  const auto multiply_scores = [&](int block) {
    begin_products();
    multiply_rows_async<dtype, T::depth, T::rows, T::keys>(s, own_queries, tile_address<T>(keys, block));
    commit_products();
  };
  const auto multiply_values = [&](int block) {
    begin_products();
    multiply_columns_async<dtype, T::depth, T::keys>(out, p, tile_address<T>(values, block));
    commit_products();
  };
  copy_keys(0);
  commit_copies();
  copy_keys(1);
  copy_values(0);
  commit_copies();
  wait_copies<1>();
  fence_and_barrier();
  multiply_scores(0);
  wait_products<0>();
  fence_accumulators(s);
  apply_block<T>(s, args, place, seen, 0, running, rescale);  // Nothing comes before it to rescale.
  as_left_operand<dtype>(p, s);
  STW_ROLLED
  for (int block = 1; block < seen.blocks; ++block) {
    wait_copies<0>();  // These keys, and the values of the block before.
    fence_and_barrier();
    multiply_scores(block);
    multiply_values(block - 1);
    copy_keys(block + 1);
    copy_values(block);
    commit_copies();
    wait_products<1>();  // The scores.
    fence_accumulators(s);
    apply_block<T>(s, args, place, seen, block, running, rescale);
    // Sums of probabilities have no sign. They are computed while the other product runs.
    force_evaluation(memory, bits_of(running.sum[0]) | bits_of(running.sum[1]));
    wait_products<0>();
    fence_accumulators(out);
    STW_UNROLL
    for (int n = 0; n < T::depth / 8; ++n) STW_UNROLL
    for (int e = 0; e < 4; ++e) out[n][e] *= rescale[e / 2];
    as_left_operand<dtype>(p, s);
  }
  wait_copies<0>();
  fence_and_barrier();
  multiply_values(seen.blocks - 1);
  wait_products<0>();
  fence_accumulators(out);
  store_rows<T, dtype>(args, place, segment, seen.warp_row, running, out);
  __syncthreads();  // All threads have finished with the tiles.
}

template <class T, DType dtype>
static __global__ void __launch_bounds__(T::threads, 1) warpgroup_attention_kernel(AttentionArgs args) {
  STW_DYNAMIC_SHARED(uint16_t, memory);
  uint16_t* const queries = aligned_tile(memory);
  const QueryBlock place = query_block<T>(args);
  const int count = place.count, tile_end = place.first + T::rows < count ? place.first + T::rows : count;
  const Documents documents = documents_of(args, place.sample);
  const HalfRows heads[] = {{place.queries, place.width},
                            {place.keys, place.width},
                            {place.keys + args.kv_heads * T::depth, place.width}};
  Segment segment = {};
  for (int next = place.first; next < tile_end; next = segment.end) {
    const int begin = next;
    next = end_of_single_rows(documents, begin, tile_end, count);
    attend_single_rows<dtype, T::depth, true, T::dropped>(args, place.sample, place.head, heads[0], heads[1],
                                                          heads[2],
                                                          {place.first + row_of_warp(), begin, next});
    if (next == tile_end) return;
    // Copies all queries at once, whatever their document: the rows of a product are independent.
    if (segment.end == 0)
      copy_rows<T::threads, T::depth, T::rows>(place.queries, place.width, place.first, count, queries);
    segment = segment_at(args, documents, next, tile_end, count, 0);
    attend_segment<T, dtype>(args, place, segment, memory, queries);
  }
}

void warpgroup_attention(const Launch& l, const AttentionArgs& args) {
  assert((reinterpret_cast<uintptr_t>(args.qkv.data) | reinterpret_cast<uintptr_t>(args.out.data)) % 16 == 0);
  const auto in_tiles = [&](auto t, auto stored) {
    using T = decltype(t);
    const int64_t blocks = args.samples * args.query_heads * ceil_div(args.rows_per_sample, T::rows);
    launch(l, warpgroup_attention_kernel<T, stored.dtype>, static_cast<unsigned>(blocks), T::threads,
           T::shared_bytes, args);
  };
  const auto of_type = [&](auto stored) {
    if (args.head_dim == 64 && args.dropout == 0) in_tiles(AttentionTiles<64, false>{}, stored);
    else if (args.head_dim == 64) in_tiles(AttentionTiles<64, true>{}, stored);
    else if (args.dropout == 0) in_tiles(AttentionTiles<128, false>{}, stored);
    else in_tiles(AttentionTiles<128, true>{}, stored);
  };
  if (args.qkv.dtype == DType::bf16) of_type(StoredAs<DType::bf16>{});
  else of_type(StoredAs<DType::f16>{});
}

}  // namespace stw::kernels::cuda
