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
#include "kernels/cuda/attention/single_rows.h"

namespace stw::kernels::cuda {

inline constexpr int tensor_keys = 64;  // Keys of a block.

// The queries of a block, and the rows of their sample.
struct TensorQueryBlock {
  int64_t rows, sample, head, out_width;
  int count, first;  // `count`: the rows of the sample.
  HalfRows queries, keys, values;
};
STW_DEVICE TensorQueryBlock tensor_query_block(const AttentionArgs& args) {
  TensorQueryBlock b;
  const int64_t head_dim = args.head_dim, heads = args.samples * args.query_heads;
  b.rows = args.rows_per_sample;
  b.sample = blockIdx.x % heads / args.query_heads, b.head = blockIdx.x % args.query_heads;
  b.out_width = args.query_heads * head_dim;
  const int64_t kv_head = b.head / (args.query_heads / args.kv_heads);
  const int64_t width = b.out_width + 2 * args.kv_heads * head_dim, top = b.sample * b.rows * width;
  b.count = static_cast<int>(b.rows);
  b.first = static_cast<int>((ceil_div(b.rows, tensor_rows) - 1 - blockIdx.x / heads) * tensor_rows);
  b.queries = half_rows(args.qkv.data, top + b.head * head_dim, width);
  b.keys = half_rows(args.qkv.data, top + b.out_width + kv_head * head_dim, width);
  b.values = half_rows(args.qkv.data, top + b.out_width + (args.kv_heads + kv_head) * head_dim, width);
  return b;
}

using Scores = float[tensor_keys / 8][4];

// s = q · the tile of keys, transposed.
template <DType dtype, int depth>
STW_DEVICE void multiply_keys(Scores& s, const uint32_t (&q)[depth / 16][4], const uint16_t* keys) {
  STW_UNROLL
  for (int k = 0; k < depth / 16; ++k) STW_UNROLL
  for (int n = 0; n < tensor_keys / 16; ++n) {
    uint32_t b[4];
    load_right<depth>(b, keys, 16 * n, 16 * k);
    multiply_add_two<dtype>(s[2 * n], s[2 * n + 1], q[k], b);
  }
}

// Hides the keys that a row does not see. `warp_row`: the warp's first row; `key`: the first key of the
// scores; `last`: the end of all keys. If a row sees no key of a block, all of its scores are -inf, below any
// maximum.
STW_DEVICE void mask_scores(Scores& s, const DocumentRule<int>& rule, int warp_row, int key, int last) {
  STW_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int row = warp_row + accumulator_row(2 * half), end = end_key(rule, row);
    const int seen = (end < last ? end : last) - key, unseen = first_key(rule, row) - key;
    STW_UNROLL
    for (int n = 0; n < tensor_keys / 8; ++n) STW_UNROLL
    for (int e = 2 * half; e < 2 * half + 2; ++e)
      if (8 * n + accumulator_column(e) >= seen || 8 * n + accumulator_column(e) < unseen)
        s[n][e] = -infinity;
  }
}

// For the rows lane / 4 and lane / 4 + 8 of a warp: the largest score so far, as an exponent of 2, and the
// sum of this lane's columns.
struct TensorSoftmax {
  float largest[2], sum[2];
};
// Turns scores into probabilities, and rescales the earlier outputs to the new maximum.
template <int depth>
STW_DEVICE void apply_softmax(Scores& s, float (&out)[depth / 8][4], float factor, TensorSoftmax& running) {
  float found[2] = {running.largest[0], running.largest[1]};
  STW_UNROLL
  for (int n = 0; n < tensor_keys / 8; ++n) STW_UNROLL
  for (int e = 0; e < 4; ++e) {
    s[n][e] *= factor;
    found[e / 2] = larger(found[e / 2], s[n][e]);
  }
  STW_UNROLL
  for (int half = 0; half < 2; ++half) {
    STW_UNROLL
    for (int lanes = 1; lanes <= 2; lanes *= 2)
      found[half] = larger(found[half], __shfl_xor_sync(all_lanes, found[half], lanes));
    const float rescale = fast_exp2(running.largest[half] - found[half]);
    running.largest[half] = found[half];
    running.sum[half] *= rescale;
    STW_UNROLL
    for (int n = 0; n < depth / 8; ++n) {
      out[n][2 * half] *= rescale;
      out[n][2 * half + 1] *= rescale;
    }
  }
  STW_UNROLL
  for (int n = 0; n < tensor_keys / 8; ++n) STW_UNROLL
  for (int e = 0; e < 4; ++e) {
    s[n][e] = fast_exp2(s[n][e] - running.largest[e / 2]);
    running.sum[e / 2] += s[n][e];
  }
}

STW_DEVICE void drop_probabilities(Scores& s, const AttentionArgs& args, const TensorQueryBlock& b,
                                   int warp_row, int key) {
  const Dropout dropout = dropout_of(args.dropout, args.stream, *args.state, b.sample);
  const uint32_t kept = kept_of_queries(dropout, tensor_keys / 8, b.rows, b.head * b.rows + warp_row, key);
  STW_UNROLL
  for (int n = 0; n < tensor_keys / 8; ++n) STW_UNROLL
  for (int e = 0; e < 4; ++e) s[n][e] *= (kept >> (4 * n + e) & 1u) != 0 ? dropout.kept_scale : 0.0f;
}

// out += the rounded probabilities · the tile of values.
template <DType dtype, int depth>
STW_DEVICE void multiply_values(float (&out)[depth / 8][4], const Scores& s, const uint16_t* values) {
  STW_UNROLL
  for (int k = 0; k < tensor_keys / 16; ++k) {
    uint32_t p[4];
    as_left<dtype>(p, s[2 * k], s[2 * k + 1]);
    STW_UNROLL
    for (int n = 0; n < depth / 16; ++n) {
      uint32_t b[4];
      load_right_transposed<depth>(b, values, 16 * k, 16 * n);
      multiply_add_two<dtype>(out[2 * n], out[2 * n + 1], p, b);
    }
  }
}

// Divides the outputs by the sums of probabilities, and stores them with the sums' logarithms.
template <DType dtype, int depth>
STW_DEVICE void store_rows(const AttentionArgs& args, const TensorQueryBlock& b, const Segment& segment,
                           int warp_row, TensorSoftmax& running, const float (&out)[depth / 8][4]) {
  float inverse[2];
  STW_UNROLL
  for (int half = 0; half < 2; ++half) {
    STW_UNROLL
    for (int lanes = 1; lanes <= 2; lanes *= 2)
      running.sum[half] += __shfl_xor_sync(all_lanes, running.sum[half], lanes);
    inverse[half] = 1.0f / running.sum[half];
    const int row = warp_row + accumulator_row(2 * half);
    if (lane_of_warp() % 4 == 0 && row >= segment.begin && row < segment.end)
      args.lse[(b.sample * args.query_heads + b.head) * b.rows + row] =
          fma1(running.largest[half], log_of_2, log(splat(running.sum[half])).f[0]);
  }
  store_accumulators<dtype, depth>(out, inverse, args.out.data,
                                   b.sample * b.rows * b.out_width + b.head * args.head_dim, b.out_width,
                                   warp_row, segment.begin, segment.end, args.head_dim);
}

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
    Scores s = {};
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
