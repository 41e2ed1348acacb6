// Attention of one tile of queries of one head over all its keys, in blocks of 64 keys counted from the first
// key of the sequence, with a running maximum and sum (Milakov and Gimelshein, "Online normalizer calculation
// for softmax", 2018; blocks as in Dao et al., "FlashAttention", 2022). `attention` and `attention_cached`
// share this code because their rows must agree bit for bit. It has the bits of
// kernels/cpu/attention/attention_forward.h: a row rescales when its own maximum grows, and its sum has 16
// lanes (key % 16) that are folded once, at the end. A quad keeps a row's maximum and sum in its registers.
#pragma once
#include "kernels/cuda/attention/attention_tile.h"

namespace stw::kernels::cuda {

struct HeadAttention {
  HeadRows queries, keys, values;
  int64_t query_rows;
  int head_dim;
  float scale;
  ScoreRule rule;
  bool dropped;
  Dropout dropout;        // If `dropped`.
  int64_t dropout_first;  // Element of (query row 0, key 0).
  Matrix out;
  int64_t out_at, out_stride;
  float* lse;  // (query_rows), or null.
};

// Shared memory: slices, scores (tile_rows, score_stride), rescale (tile_rows), ranges (tile_rows), outputs.
inline size_t forward_shared_bytes(int head_dim) {
  return static_cast<size_t>(slices_floats + tile_rows * (score_stride + 3) + outputs_floats(head_dim)) * 4;
}

// The first row of a block's tile of queries, and its head.
STW_DEVICE int64_t first_of_tile(const AttentionArgs& args) {
  return (ceil_div(args.rows_per_sample, tile_rows) - 1 - blockIdx.x / (args.samples * args.query_heads)) *
         tile_rows;
}
STW_DEVICE HeadAttention head_of_tile(const AttentionArgs& args) {
  const int64_t rows = args.rows_per_sample, head_dim = args.head_dim,
                group = args.query_heads / args.kv_heads;
  const int64_t width = (static_cast<int64_t>(args.query_heads) + 2 * args.kv_heads) * head_dim,
                out_width = args.query_heads * head_dim;
  const int64_t sample = blockIdx.x % (args.samples * args.query_heads) / args.query_heads;
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
  return h;
}

// The scores of attention without relative positions (attend_tile).
STW_DEVICE auto product_of_rows(const HeadAttention& h) {
  return [&h](const SomeRows& queries, const SomeRows& keys, float* slices) {
    return multiply_rows(queries, keys, h.head_dim, slices);
  };
}

// Query rows [first, first + tile_rows) of the head. scores_of(queries, keys, slices) gives this thread's
// part of a block's scores.
template <class Scores>
STW_DEVICE void attend_tile(const HeadAttention& h, int64_t first, float* memory, const Scores& scores_of) {
  float* slices = memory;
  float* scores = slices + slices_floats;
  float* rescales = scores + tile_rows * score_stride;
  Range* ranges = reinterpret_cast<Range*>(rescales + tile_rows);
  float* outputs = rescales + 3 * tile_rows;
  const int64_t stride = round_up(h.head_dim, output_columns);
  clear_outputs(outputs, tile_rows * stride);

  const int r = static_cast<int>(threadIdx.x) / quad;  // The row of this quad.
  const int64_t row = first + r, end = min(first + tile_rows, h.query_rows);
  const int64_t before = first_key(h.rule, first), last = end_key(h.rule, end - 1);
  int64_t row_start = 0, row_end = 0;  // The keys that it sees.
  if (row < h.query_rows) {
    row_start = first_key(h.rule, row);
    row_end = end_key(h.rule, row);
  }
  float* s = scores + r * score_stride;
  F16 sum = zero();
  float largest = -infinity;
  for (int64_t key = before - before % key_block; key < last; key += key_block) {
    const int keys = static_cast<int>(min(static_cast<int64_t>(key_block), last - key));
    store_scores(scores_of({h.queries, first, static_cast<int>(end - first), h.scale},
                           {h.keys, key, keys, 1.0f}, slices),
                 scores);
    __syncthreads();
    const Range range = {clamp_to(row_start - key, keys), clamp_to(row_end - key, keys)};
    float rescale = 1.0f;
    if (range.begin < range.end) {
      const int from = range.begin / 16 * 16;
      const auto seen = [&](int k) {
        F16 x = load(s + k);
        if (h.rule.slope != 0) x = with_bias(h.rule.slope, h.rule.position + row, key + k, x);
        for (int i = 0; i < 4; ++i)
          if (k + first_lane() + i < range.begin || k + first_lane() + i >= range.end) x.f[i] = -infinity;
        return x;
      };
      F16 lanes = seen(from);
      for (int k = from + 16; k < range.end; k += 16) lanes = maximum(lanes, seen(k));
      const float found = fold_maximum(lanes), before = largest;
      largest = found > before ? found : before;
      if (row_start < key) rescale = exp(splat(before - largest)).f[0];
      sum = mul(sum, splat(rescale));
      for (int k = from; k < range.end; k += 16) {
        F16 e = exp(sub(seen(k), splat(largest)));
        sum = add(sum, e);
        if (h.dropped)
          e = mul(e, dropout_factors16(h.dropout, h.dropout_first + row * h.query_rows + key + k));
        store(s + k, e);
      }
    }
    if (first_lane() == 0) {
      rescales[r] = rescale;
      ranges[r] = range;
    }
    const bool all = !__syncthreads_or(range.begin > 0 || range.end < key_block);
    multiply_columns<false>(scores, ranges, all, rescales, {h.values, key, keys, 1.0f}, h.head_dim, slices,
                            outputs);
  }
  __syncthreads();
  if (row >= h.query_rows) return;
  const float total = fold(sum);
  store_output_row(outputs + r * stride, 1.0f / total, h.head_dim, h.out, h.out_at + row * h.out_stride);
  if (h.lse != nullptr && first_lane() == 0) h.lse[row] = largest + log(splat(total)).f[0];
}

}  // namespace stw::kernels::cuda
