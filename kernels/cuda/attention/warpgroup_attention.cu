// Attention (tensor_attention.cu) by warpgroups, after Shah et al., "FlashAttention-3" (arXiv:2407.08608). A
// block has 128 queries of one head, 64 a warpgroup. wgmma reads queries, keys and values from shared memory.
// Probabilities are rounded in the registers where scores were accumulated, and stay there as the left
// operand of the second product. While that product and the first product of the next keys run, the softmax
// of the next keys is computed, and the keys and values after them arrive.
//
// The bits differ from those of tensor_attention.cu, which has other blocks of keys. But here, too, the bits
// of a row depend on nothing outside its document.
#include "kernels/cuda/attention/warpgroup_attention.h"

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

// For rows lane / 4 and lane / 4 + 8 of a warp: the largest score so far, as a power of 2, and the sum of
// this lane's columns.
struct RunningSoftmax {
  float largest[2], sum[2];
};
// Turns scores into probabilities, before dropout. Earlier sums must then be multiplied by `rescale`. A row
// that sees none of the keys is all -inf here, but has a maximum from earlier keys.
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

template <class T, DType dtype>
static __global__ void __launch_bounds__(T::threads, 1) warpgroup_attention_kernel(AttentionArgs args) {
  STW_DYNAMIC_SHARED(uint16_t, memory);
  constexpr int fragments = T::keys / 8;
  constexpr uint32_t tile_bytes_of_keys = T::keys_size * sizeof(uint16_t);
  uint16_t* const queries = aligned_tile(memory);
  uint16_t* const keys = queries + T::queries_size;  // Of two blocks of keys: block i is at i mod 2.
  uint16_t* const values = keys + 2 * T::keys_size;
  // Numbers of heads and rows in 32 bits, to save registers: a grid has no more blocks.
  const int block_index = static_cast<int>(blockIdx.x), count = static_cast<int>(args.rows_per_sample),
            heads = static_cast<int>(args.samples) * args.query_heads;
  const int sample = block_index % heads / args.query_heads, head = block_index % args.query_heads,
            kv_head = head / (args.query_heads / args.kv_heads);
  const int out_width = args.query_heads * T::depth, width = out_width + 2 * args.kv_heads * T::depth;
  const int64_t rows = args.rows_per_sample, top = sample * rows * width;
  // In causal attention, the last queries have the most work; they go first.
  const int first = ((count + T::rows - 1) / T::rows - 1 - block_index / heads) * T::rows;
  const uint16_t* const all_keys =
      static_cast<const uint16_t*>(args.qkv.data) + top + out_width + kv_head * T::depth;
  const Documents documents = documents_of(args, sample);
  const int tile_end = first + T::rows < count ? first + T::rows : count;
  const int thread = static_cast<int>(threadIdx.x), warp_row = first + thread / 32 * 16;
  const float factor = args.scale * log2_of_e;  // Scores are powers of 2.
  const float slope = unscaled_slope(args, head);
  // All queries at once, of whatever document: the rows of a product are independent.
  copy_rows<T::threads, T::depth, T::rows>(
      static_cast<const uint16_t*>(args.qkv.data) + top + head * T::depth, width, first, count, queries);
  Segment segment;
  for (int next = first; next < tile_end; next = segment.end) {
    segment = segment_at(args, documents, next, tile_end, count, 0);
    const DocumentRule<int> rule = segment.rule;
    const int begin = rule.begin, last = end_key(rule, segment.end - 1);
    const int blocks = (last - begin + T::keys - 1) / T::keys;
    const auto copy_keys = [&](int block) {
      if (block < blocks)
        copy_rows<T::threads, T::depth, T::keys>(all_keys, width, begin + block * T::keys, last,
                                                 keys + block % 2 * T::keys_size);
    };
    const auto copy_values = [&](int block) {
      copy_rows<T::threads, T::depth, T::keys>(all_keys + args.kv_heads * T::depth, width,
                                               begin + block * T::keys, last,
                                               values + block % 2 * T::keys_size);
    };
    const uint32_t own_queries = shared_address(queries) + static_cast<uint32_t>(thread / warpgroup_threads) *
                                                               warpgroup_rows * line_bytes;
    const auto keys_of = [&](int block) {
      return shared_address(keys) + static_cast<uint32_t>(block % 2) * tile_bytes_of_keys;
    };
    const auto values_of = [&](int block) {
      return shared_address(values) + static_cast<uint32_t>(block % 2) * tile_bytes_of_keys;
    };

    float s[fragments][4], out[T::depth / 8][4] = {};
    uint32_t p[T::keys / product_step][4];
    // Every row sees the blocks before its warp's diagonal and before the end of the document. These need no
    // mask, only a bias.
    const int seen_end = slope != 0 ? 0 : end_key(rule, warp_row > segment.begin ? warp_row : segment.begin);
    RunningSoftmax running = {{-infinity, -infinity}, {0, 0}};
    const auto attend = [&](int block, float(&rescale)[2]) {
      const int key = begin + block * T::keys;
      if (key + T::keys > seen_end) {
        if (slope != 0) add_bias<false>(s, slope, warp_row, key);
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
      apply_softmax(s, factor, running, rescale);
      if constexpr (T::dropped) {
        const Dropout dropout = dropout_of(args.dropout, args.stream, *args.state, sample);
        const uint32_t kept = kept_of_queries(dropout, fragments, rows, head * rows + warp_row, key);
        STW_UNROLL
        for (int n = 0; n < fragments; ++n) STW_UNROLL
        for (int e = 0; e < 4; ++e) s[n][e] *= (kept >> (4 * n + e) & 1u) != 0 ? dropout.kept_scale : 0.0f;
      }
    };
    copy_keys(0);
    commit_copies();
    copy_keys(1);
    copy_values(0);
    commit_copies();
    wait_copies<1>();
    meet_for_products();
    begin_products();
    multiply_rows_async<dtype, T::depth, T::rows, T::keys>(s, own_queries, keys_of(0));
    commit_products();
    wait_products<0>();
    products_are_done(s);
    float rescale[2];  // For the first block: nothing comes before it.
    attend(0, rescale);
    as_own_rows<dtype>(p, s);
    STW_ROLLED
    for (int block = 1; block < blocks; ++block) {
      wait_copies<0>();  // These keys, and the values of the block before.
      meet_for_products();
      begin_products();
      multiply_rows_async<dtype, T::depth, T::rows, T::keys>(s, own_queries, keys_of(block));
      commit_products();
      begin_products();
      multiply_columns_async<dtype, T::depth, T::keys>(out, p, values_of(block - 1));
      commit_products();
      copy_keys(block + 1);
      copy_values(block);
      commit_copies();
      wait_products<1>();  // The scores.
      products_are_done(s);
      attend(block, rescale);
      computed_by_now(memory, running.sum);  // While the other product runs.
      wait_products<0>();
      products_are_done(out);
      STW_UNROLL
      for (int n = 0; n < T::depth / 8; ++n) STW_UNROLL
      for (int e = 0; e < 4; ++e) out[n][e] *= rescale[e / 2];
      as_own_rows<dtype>(p, s);
    }
    wait_copies<0>();
    meet_for_products();
    begin_products();
    multiply_columns_async<dtype, T::depth, T::keys>(out, p, values_of(blocks - 1));
    commit_products();
    wait_products<0>();
    products_are_done(out);

    float inverse[2];
    STW_UNROLL
    for (int half = 0; half < 2; ++half) {
      float sum = running.sum[half];
      STW_UNROLL
      for (int lanes = 1; lanes <= 2; lanes *= 2) sum += __shfl_xor_sync(all_lanes, sum, lanes);
      inverse[half] = 1.0f / sum;
      const int row = warp_row + accumulator_row(2 * half);
      if (lane_of_warp() % 4 == 0 && row >= segment.begin && row < segment.end)
        args.lse[static_cast<int64_t>(sample * args.query_heads + head) * rows + row] =
            fma1(running.largest[half], log_of_2, log(splat(sum)).f[0]);
    }
    store_accumulators<dtype, T::depth>(out, inverse, args.out.data,
                                        sample * rows * out_width + head * T::depth, out_width,
                                        forgotten(warp_row), segment.begin, segment.end, T::depth);
    __syncthreads();  // All threads have finished with the tiles.
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
