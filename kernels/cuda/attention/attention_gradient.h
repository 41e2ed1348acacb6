// What the kernels of attention's gradient share: the rows of a query head, and the gradient of its scores.
#pragma once
#include "kernels/cuda/attention/attention_tile.h"

namespace stw::kernels::cuda {

// A query head of a sample.
struct GradientHead {
  ScoreRule rule;
  HeadRows queries, keys, values, douts, outs;
  const float* lse;       // (rows)
  float* dots;            // (rows)
  int64_t dropout_first;  // Element of (query 0, key 0).
};
STW_DEVICE GradientHead gradient_head(const AttentionArgs& args, float* dots, int64_t sample, int64_t head) {
  const int64_t rows = args.rows_per_sample, head_dim = args.head_dim,
                kv_head = head / (args.query_heads / args.kv_heads);
  const int64_t out_width = args.query_heads * head_dim, width = out_width + 2 * args.kv_heads * head_dim,
                top = sample * rows * width;
  GradientHead h;
  h.rule = score_rule(args, sample, head);
  h.queries = {args.qkv.data, args.qkv.dtype, top + head * head_dim, width};
  h.keys = {args.qkv.data, args.qkv.dtype, top + out_width + kv_head * head_dim, width};
  h.values = {args.qkv.data, args.qkv.dtype, top + out_width + (args.kv_heads + kv_head) * head_dim, width};
  h.douts = {args.dout.data, args.dout.dtype, sample * rows * out_width + head * head_dim, out_width};
  h.outs = {args.out.data, args.out.dtype, h.douts.at, out_width};
  h.lse = args.lse + (sample * args.query_heads + head) * rows;
  h.dots = dots + (sample * args.query_heads + head) * rows;
  h.dropout_first = head * rows * rows;
  return h;
}

// A quad's sum of the products of the elements of two rows.
STW_DEVICE float row_dot(const GradientHead& h, int64_t row, int head_dim) {
  F16 sum = zero();
  for_groups(0, head_dim, [&](int64_t d, int64_t n) {
    sum = fma(load_group(h.douts.data, h.douts.dtype, h.douts.at + row * h.douts.stride + d, n),
              load_group(h.outs.data, h.outs.dtype, h.outs.at + row * h.outs.stride + d, n), sum);
  });
  return fold(sum);
}

// 16 adjacent keys of one query, by a quad: *s becomes P∘F from the score, *d becomes dS from dout·V. Lanes
// for which `seen` is false become 0.
template <class Seen>
STW_DEVICE void differentiate(const AttentionArgs& args, const GradientHead& h, const Dropout& dropout,
                              int64_t query, int64_t key, float lse, float dot, const Seen& seen, F16* s,
                              F16* d) {
  F16 factor = splat(1.0f);
  if (args.dropout > 0)
    factor = dropout_factors16(dropout, h.dropout_first + query * args.rows_per_sample + key);
  if (h.rule.slope != 0) *s = with_bias(h.rule.slope, query, key, *s);
  const F16 p = exp(sub(*s, splat(lse)));
  *d = mul(p, fma(*d, factor, splat(-dot)));
  *s = mul(p, factor);
  for (int i = 0; i < 4; ++i)
    if (!seen(first_lane() + i)) s->f[i] = d->f[i] = 0.0f;
}

}  // namespace stw::kernels::cuda
