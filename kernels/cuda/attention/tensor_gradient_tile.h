// Shared by the kernels of attention's gradient on tensor cores: the rows of a block, stages of other rows,
// and the gradients of a warp's 16 rows (tensor_attention_gradient.cu).
#pragma once
#include "kernels/cuda/attention/single_rows.h"

namespace stw::kernels::cuda {

inline constexpr int tensor_others = 32;

// Shared memory: two tiles of the own rows, and two stages of two tiles of the other rows. In the kernel of
// keys, a stage also has the lse and dots of its rows.
template <int depth>
inline constexpr size_t gradient_tile_bytes = tile_bytes<depth>(2 * tensor_rows + 4 * tensor_others) +
                                              4 * tensor_others * sizeof(float);

// The rows of a block, keys or queries, and the rows of their sample.
struct TensorGradientBlock {
  int64_t rows, sample, own_head, first_head, kv_head, out_width, width;
  int64_t top;       // The sample's first element in `qkv`.
  int count, first;  // `count`: the rows of the sample.
};
template <bool of_keys>
STW_DEVICE TensorGradientBlock tensor_gradient_block(const AttentionArgs& args) {
  TensorGradientBlock b;
  b.rows = args.rows_per_sample;
  const int64_t own_heads = of_keys ? args.kv_heads : args.query_heads, heads = args.samples * own_heads,
                tiles = ceil_div(b.rows, tensor_rows), group = args.query_heads / args.kv_heads;
  b.sample = blockIdx.x % heads / own_heads, b.own_head = blockIdx.x % own_heads;
  b.first_head = of_keys ? b.own_head * group : b.own_head, b.kv_head = b.first_head / group;
  b.out_width = args.query_heads * args.head_dim, b.width = b.out_width + 2 * args.kv_heads * args.head_dim;
  b.top = b.sample * b.rows * b.width;
  b.count = static_cast<int>(b.rows);
  // In causal attention, the first keys and the last queries have the most work; they go first.
  b.first = static_cast<int>((of_keys ? blockIdx.x / heads : tiles - 1 - blockIdx.x / heads) * tensor_rows);
  return b;
}
STW_DEVICE HalfRows queries_of(const AttentionArgs& args, const TensorGradientBlock& b, int64_t head) {
  return half_rows(args.qkv.data, b.top + head * args.head_dim, b.width);
}
STW_DEVICE HalfRows keys_of(const AttentionArgs& args, const TensorGradientBlock& b) {
  return half_rows(args.qkv.data, b.top + b.out_width + b.kv_head * args.head_dim, b.width);
}
STW_DEVICE HalfRows values_of(const AttentionArgs& args, const TensorGradientBlock& b) {
  return queries_of(args, b, args.query_heads + args.kv_heads + b.kv_head);
}
// The rows of `out`, or of its gradient.
STW_DEVICE HalfRows outputs_of(const void* outputs, const AttentionArgs& args, const TensorGradientBlock& b,
                               int64_t head) {
  return half_rows(outputs, b.sample * b.rows * b.out_width + head * args.head_dim, b.out_width);
}

// The other rows that belong to a row, [begin, end): the keys that a query sees, or the queries that see a
// key.
template <bool of_keys>
STW_DEVICE int begin_of_others(const DocumentRule<int>& rule, int own_row) {
  return of_keys ? first_row(rule, own_row) : first_key(rule, own_row);
}
template <bool of_keys>
STW_DEVICE int end_of_others(const DocumentRule<int>& rule, int own_row) {
  return of_keys ? end_row(rule, own_row) : end_key(rule, own_row);
}

// A stage is tensor_others rows of one query head, from row `at` on. After the last stage of a head comes the
// first stage of the next head.
struct TensorStage {
  int64_t head;
  int at, parity;
};
// All other rows that belong to the rows of a document.
struct TensorOthers {
  int first, end;
  int64_t heads_end;
};
STW_DEVICE TensorStage next_stage(TensorStage s, const TensorOthers& all) {
  s.at += tensor_others;
  s.parity ^= 1;
  if (s.at >= all.end) s.at = all.first, ++s.head;
  return s;
}

// The tiles of a block in shared memory.
struct TensorGradientMemory {
  uint16_t *own_s, *own_d;  // Rows of Q and dout, or of K and V.
  uint16_t* others;         // Two stages of (K, V), or of (Q, dout).
  float* statistics;        // Kernel of keys: two stages of the others' lse and dots.
};
template <int depth, bool of_keys>
STW_DEVICE void copy_stage(const AttentionArgs& args, const QueryStatistics& all_statistics,
                           const TensorGradientBlock& b, const TensorOthers& all, TensorStage stage,
                           const TensorGradientMemory& memory) {
  constexpr int tile = tensor_others * tile_stride<depth>;
  const int64_t head = stage.head;
  const int at = stage.at;
  uint16_t* const to = memory.others + stage.parity * 2 * tile;
  copy_tile<depth, tensor_others>(of_keys ? queries_of(args, b, head) : keys_of(args, b), at, at, all.end,
                                  args.head_dim, to);
  copy_tile<depth, tensor_others>(of_keys ? outputs_of(args.dout.data, args, b, head) : values_of(args, b),
                                  at, at, all.end, args.head_dim, to + tile);
  if constexpr (of_keys)
    copy_statistics<tensor_others>(all_statistics, (b.sample * args.query_heads + head) * b.rows + at,
                                   all.end - at, memory.statistics + stage.parity * 2 * tensor_others);
  commit_copies();
}
template <int depth, bool of_keys>
STW_DEVICE void copy_own_rows(const AttentionArgs& args, const TensorGradientBlock& b, const Segment& segment,
                              const TensorGradientMemory& memory) {
  const auto copy = [&](const HalfRows& from, uint16_t* to) {
    copy_tile<depth, tensor_rows>(from, b.first, segment.begin, segment.end, args.head_dim, to);
  };
  copy(of_keys ? keys_of(args, b) : queries_of(args, b, b.own_head), memory.own_s);
  copy(of_keys ? values_of(args, b) : outputs_of(args.dout.data, args, b, b.own_head), memory.own_d);
  if constexpr (!of_keys) {  // Rows of out, in the place of the second stage.
    static_assert(2 * tensor_others == tensor_rows);
    copy(outputs_of(args.out.data, args, b, b.own_head),
         memory.others + 2 * tensor_others * tile_stride<depth>);
    commit_copies();
  }
}

// For the rows lane / 4 and lane / 4 + 8 of a warp.
struct TensorStatistics {
  float lse[2], dot[2];
};
// Kernel of queries: the statistics of its rows, which the kernel of keys reads later.
template <DType dtype, int depth>
STW_DEVICE TensorStatistics compute_own_statistics(const AttentionArgs& args,
                                                   const QueryStatistics& all_statistics,
                                                   const TensorGradientBlock& b, const Segment& segment,
                                                   const TensorGradientMemory& memory) {
  TensorStatistics own_statistics = {};
  const int tile_row = static_cast<int>(threadIdx.x) / 32 * 16, warp_row = b.first + tile_row;
  const uint16_t* const outs = memory.others + 2 * tensor_others * tile_stride<depth>;
  const int64_t head_row = (b.sample * args.query_heads + b.own_head) * b.rows;
  load_lse(args.lse + head_row, warp_row, segment.begin, segment.end, own_statistics.lse);
  wait_copies<1>();
  __syncthreads();
  RowDots sums = {};
  STW_UNROLL
  for (int k = 0; k < depth / 16; ++k) {
    if (16 * k >= args.head_dim) break;
    uint32_t dout[4], out[4];
    load_left<depth>(dout, memory.own_d, tile_row, 16 * k);
    load_left<depth>(out, outs, tile_row, 16 * k);
    add_products<dtype>(sums, dout, out);
  }
  STW_UNROLL
  for (int half = 0; half < 2; ++half) own_statistics.dot[half] = folded(sums.lanes[half]);
  share_statistics(all_statistics, head_row, warp_row, segment.begin, segment.end, own_statistics.lse,
                   own_statistics.dot);
  return own_statistics;
}

using OtherScores = float[tensor_others / 8][4];

// s and d: the products of the own rows and the others' rows.
template <DType dtype, int depth>
STW_DEVICE void multiply_others(OtherScores& s, OtherScores& d, const TensorGradientMemory& memory,
                                const uint16_t* other_s, const uint16_t* other_d) {
  const int tile_row = static_cast<int>(threadIdx.x) / 32 * 16;
  STW_UNROLL
  for (int k = 0; k < depth / 16; ++k) {
    uint32_t a_s[4], a_d[4];
    load_left<depth>(a_s, memory.own_s, tile_row, 16 * k);
    load_left<depth>(a_d, memory.own_d, tile_row, 16 * k);
    STW_UNROLL
    for (int n = 0; n < tensor_others / 16; ++n) {
      uint32_t b[4];
      load_right<depth>(b, other_s, 16 * n, 16 * k);
      multiply_add_two<dtype>(s[2 * n], s[2 * n + 1], a_s, b);
      load_right<depth>(b, other_d, 16 * n, 16 * k);
      multiply_add_two<dtype>(d[2 * n], d[2 * n + 1], a_d, b);
    }
  }
}

// P and dS of this lane's elements; both are 0 where the query does not see the key (is_visible). factor_of
// gives dropout's factors. `other_lse`: the statistics of the others, for the kernel of keys.
template <bool of_keys, class IsVisible, class FactorOf>
STW_DEVICE void differentiate(OtherScores& s, OtherScores& d, float factor,
                              const TensorStatistics& own_statistics, const float* other_lse,
                              IsVisible is_visible, FactorOf factor_of) {
  const float* const other_dot = other_lse + tensor_others;
  STW_UNROLL
  for (int n = 0; n < tensor_others / 8; ++n) STW_UNROLL
  for (int e = 0; e < 4; ++e) {
    const int other = 8 * n + accumulator_column(e);
    const float lse = of_keys ? other_lse[other] : own_statistics.lse[e / 2],
                dot = of_keys ? other_dot[other] : own_statistics.dot[e / 2];
    const float p = is_visible(e / 2, other) ? fast_exp2(fma1(s[n][e], factor, -lse)) : 0.0f,
                f = factor_of(4 * n + e);
    d[n][e] = p * fma1(d[n][e], f, -dot);
    s[n][e] = p * f;
  }
}

// The elements of a stage that dropout keeps, one bit each.
template <bool of_keys>
STW_DEVICE uint32_t kept_of_stage(const Dropout& dropout, const TensorGradientBlock& b, TensorStage stage,
                                  int warp_row) {
  const int64_t top_row = stage.head * b.rows;
  if constexpr (of_keys)
    return kept_of_keys(dropout, tensor_others / 8, b.rows, top_row + stage.at, warp_row);
  else return kept_of_queries(dropout, tensor_others / 8, b.rows, top_row + warp_row, stage.at);
}

// sum_s += dS · the others' rows of Q or K; kernel of keys: sum_d += P · those of dout.
template <DType dtype, int depth, bool of_keys>
STW_DEVICE void add_gradients(float (&sum_s)[depth / 8][4], float (&sum_d)[of_keys ? depth / 8 : 1][4],
                              const OtherScores& s, const OtherScores& d, const uint16_t* other_s,
                              const uint16_t* other_d) {
  STW_UNROLL
  for (int k = 0; k < tensor_others / 16; ++k) {
    uint32_t a_s[4], a_d[4], b[4];
    as_left<dtype>(a_d, d[2 * k], d[2 * k + 1]);
    if constexpr (of_keys) as_left<dtype>(a_s, s[2 * k], s[2 * k + 1]);
    STW_UNROLL
    for (int n = 0; n < depth / 16; ++n) {
      load_right_transposed<depth>(b, other_s, 16 * k, 16 * n);
      multiply_add_two<dtype>(sum_s[2 * n], sum_s[2 * n + 1], a_d, b);
      if constexpr (of_keys) {
        load_right_transposed<depth>(b, other_d, 16 * k, 16 * n);
        multiply_add_two<dtype>(sum_d[2 * n], sum_d[2 * n + 1], a_s, b);
      }
    }
  }
}

// Stores dQ, or dK and dV.
template <DType dtype, int depth, bool of_keys>
STW_DEVICE void store_gradients(const AttentionArgs& args, const TensorGradientBlock& b,
                                const Segment& segment, int warp_row, const float (&sum_s)[depth / 8][4],
                                const float (&sum_d)[of_keys ? depth / 8 : 1][4]) {
  const float scale[2] = {args.scale, args.scale}, one[2] = {1, 1};
  const int top_row = opaque(warp_row);
  const int64_t at = b.top + (of_keys ? b.out_width + b.kv_head * args.head_dim : b.own_head * args.head_dim);
  store_accumulators<dtype, depth>(sum_s, scale, args.dqkv.data, at, b.width, top_row, segment.begin,
                                   segment.end, args.head_dim);
  if constexpr (of_keys)
    store_accumulators<dtype, depth>(sum_d, one, args.dqkv.data, at + args.kv_heads * args.head_dim, b.width,
                                     top_row, segment.begin, segment.end, args.head_dim);
}

}  // namespace stw::kernels::cuda
