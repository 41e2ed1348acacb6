// Shared by the kernels of attention on tensor cores: the queries of a block, and the softmax and the outputs
// of a warp's 16 queries.
#pragma once
#include "kernels/cuda/attention/single_rows.h"

namespace stw::kernels::cuda {

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

// s += q · the tile of keys, transposed. There are 8·fragments keys, here and below.
template <DType dtype, int depth, int fragments>
STW_DEVICE void multiply_keys(float (&s)[fragments][4], const uint32_t (&q)[depth / 16][4],
                              const uint16_t* keys) {
  STW_UNROLL
  for (int k = 0; k < depth / 16; ++k) STW_UNROLL
  for (int n = 0; n < fragments / 2; ++n) {
    uint32_t b[4];
    load_right<depth>(b, keys, 16 * n, 16 * k);
    multiply_add_two<dtype>(s[2 * n], s[2 * n + 1], q[k], b);
  }
}

// Hides the keys that a row does not see. `warp_row`: the warp's first row; `key`: the first key of the
// scores; `last`: the end of all keys. If a row sees no key of a block, all of its scores are -inf, below any
// maximum.
template <int fragments>
STW_DEVICE void mask_scores(float (&s)[fragments][4], const DocumentRule<int>& rule, int warp_row, int key,
                            int last) {
  STW_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int row = warp_row + accumulator_row(2 * half), end = end_key(rule, row);
    const int seen = (end < last ? end : last) - key, unseen = first_key(rule, row) - key;
    STW_UNROLL
    for (int n = 0; n < fragments; ++n) STW_UNROLL
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
template <int depth, int fragments>
STW_DEVICE void apply_softmax(float (&s)[fragments][4], float (&out)[depth / 8][4], float factor,
                              TensorSoftmax& running) {
  float found[2] = {running.largest[0], running.largest[1]};
  STW_UNROLL
  for (int n = 0; n < fragments; ++n) STW_UNROLL
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
  for (int n = 0; n < fragments; ++n) STW_UNROLL
  for (int e = 0; e < 4; ++e) {
    s[n][e] = fast_exp2(s[n][e] - running.largest[e / 2]);
    running.sum[e / 2] += s[n][e];
  }
}

template <int fragments>
STW_DEVICE void drop_probabilities(float (&s)[fragments][4], const AttentionArgs& args,
                                   const TensorQueryBlock& b, int warp_row, int key) {
  const Dropout dropout = dropout_of(args.dropout, args.stream, *args.state, b.sample);
  const uint32_t kept = kept_of_queries(dropout, fragments, b.rows, b.head * b.rows + warp_row, key);
  STW_UNROLL
  for (int n = 0; n < fragments; ++n) STW_UNROLL
  for (int e = 0; e < 4; ++e) s[n][e] *= (kept >> (4 * n + e) & 1u) != 0 ? dropout.kept_scale : 0.0f;
}

// out += the rounded probabilities · the tile of values.
template <DType dtype, int depth, int fragments>
STW_DEVICE void multiply_values(float (&out)[depth / 8][4], const float (&s)[fragments][4],
                                const uint16_t* values) {
  STW_UNROLL
  for (int k = 0; k < fragments / 2; ++k) {
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

}  // namespace stw::kernels::cuda
