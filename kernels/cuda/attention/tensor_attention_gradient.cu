// The gradient of attention on tensor cores, with the formulas of attention_gradient.cu. Two kernels from one
// source. A block keeps 64 rows, 16 a warp, and meets 32 other rows at a time; the next ones arrive while
// these are processed.
//
//   of queries: rows are queries, others their keys:       S = Q·Kᵀ   dP = dout·Vᵀ   dQ += dS·K
//   of keys:    rows are keys, others the group's queries: Sᵀ = K·Qᵀ  dPᵀ = V·doutᵀ  dV += Pᵀ·dout
//                                                                                    dK += dSᵀ·Q
//
// In both, scores and their gradients stay in the registers of the warp that owns the rows. The accumulators
// of one product are the left operand of the next one, with P and dS rounded to 16 bits. Sums are fp32 and
// belong to one warp, which adds in the order of the other rows. The kernel of queries runs first. It loads
// out's rows in addition to dout's, into the place of its second stage, and computes D of its rows for itself
// and for the kernel of keys. So there are no atomics, and no order depends on timing: 7 products instead of
// the 5 of a single kernel.
//
// The lower bound is the time of the tensor cores. Other instructions add to it: a stage of 64 products (of
// keys, head_dim 64) has about 540 instructions of a warp. Most stages need no mask, because all rows meet
// all others.
#include "kernels/cuda/attention/tensor_attention.h"

namespace stw::kernels::cuda {

inline constexpr int tensor_others = 32;

// Shared memory: two tiles of the own rows, twice two tiles of the others, twice their lse and dots (of keys
// only).
template <int depth>
inline constexpr size_t gradient_tile_bytes = tile_bytes<depth>(2 * tensor_rows + 4 * tensor_others) +
                                              4 * tensor_others * sizeof(float);

template <DType dtype, int depth, bool of_keys>
static __global__ void __launch_bounds__(tensor_threads, depth <= 64 ? 3 : 2)
    tensor_gradient_kernel(AttentionArgs args, QueryStatistics all_statistics) {
  STW_DYNAMIC_SHARED(uint16_t, memory);
  constexpr int tile = tensor_others * tile_stride<depth>;
  uint16_t* own_s = memory;                                     // Rows of Q, or of K.
  uint16_t* own_d = own_s + tensor_rows * tile_stride<depth>;   // Rows of dout, or of V.
  uint16_t* others = own_d + tensor_rows * tile_stride<depth>;  // Two stages of (K, V), or of (Q, dout).
  // Kernel of keys: two stages of the others' lse and dots.
  float* statistics = reinterpret_cast<float*>(others + 4 * tile);
  const int64_t rows = args.rows_per_sample, head_dim = args.head_dim,
                group = args.query_heads / args.kv_heads;
  const int64_t own_heads = of_keys ? args.kv_heads : args.query_heads, heads = args.samples * own_heads,
                tiles = ceil_div(rows, tensor_rows);
  const int64_t sample = blockIdx.x % heads / own_heads, own_head = blockIdx.x % own_heads;
  // In causal attention, the first keys and the last queries have the most work; they go first.
  const int count = static_cast<int>(rows),
            first = static_cast<int>((of_keys ? blockIdx.x / heads : tiles - 1 - blockIdx.x / heads) *
                                     tensor_rows);
  const int64_t out_width = args.query_heads * head_dim, width = out_width + 2 * args.kv_heads * head_dim,
                top = sample * rows * width;
  const int64_t first_head = of_keys ? own_head * group : own_head, kv_head = first_head / group;
  const HalfRows keys = half_rows(args.qkv.data, top + out_width + kv_head * head_dim, width);
  const HalfRows values =
      half_rows(args.qkv.data, top + out_width + (args.kv_heads + kv_head) * head_dim, width);
  const auto queries_of = [&](int64_t head) {
    return half_rows(args.qkv.data, top + head * head_dim, width);
  };
  const auto douts_of = [&](int64_t head) {
    return half_rows(args.dout.data, sample * rows * out_width + head * head_dim, out_width);
  };
  const Documents documents = documents_of(args, sample);
  const int tile_end = first + tensor_rows < count ? first + tensor_rows : count;
  Segment segment;
  for (int next = first; next < tile_end; next = segment.end) {
    segment = segment_at(args, documents, next, tile_end, count, static_cast<int>(args.window));
    const DocumentRule<int> rule = segment.rule;
    // The others that a row meets, [begin_of, end_of): the keys that a query sees, the queries that see a
    // key.
    const auto begin_of = [&](int own_row) {
      return of_keys ? first_row(rule, own_row) : first_key(rule, own_row);
    };
    const auto end_of = [&](int own_row) {
      return of_keys ? end_row(rule, own_row) : end_key(rule, own_row);
    };
    const int others_first =
        of_keys && args.causal ? segment.begin : block_with(rule, begin_of(segment.begin), tensor_others);
    const int others_end = end_of(segment.end - 1);
    // A stage is tensor_others rows from `at` of one query head. After the last stage of a head follows the
    // next head's first.
    struct Stage {
      int64_t head;
      int at, parity;
    };
    const auto next_stage = [&](Stage s) {
      s.at += tensor_others;
      s.parity ^= 1;
      if (s.at >= others_end) s.at = others_first, ++s.head;
      return s;
    };
    const int64_t heads_end = of_keys ? first_head + group : first_head + 1;
    const auto copy_stage = [&](Stage stage) {
      const int64_t head = stage.head;
      const int at = stage.at;
      uint16_t* to = others + stage.parity * 2 * tile;
      copy_tile<depth, tensor_others>(of_keys ? queries_of(head) : keys, at, at, others_end, args.head_dim,
                                      to);
      copy_tile<depth, tensor_others>(of_keys ? douts_of(head) : values, at, at, others_end, args.head_dim,
                                      to + tile);
      if constexpr (of_keys)
        copy_statistics<tensor_others>(all_statistics, (sample * args.query_heads + head) * rows + at,
                                       others_end - at, statistics + stage.parity * 2 * tensor_others);
      commit_copies();
    };
    copy_tile<depth, tensor_rows>(of_keys ? keys : queries_of(own_head), first, segment.begin, segment.end,
                                  args.head_dim, own_s);
    copy_tile<depth, tensor_rows>(of_keys ? values : douts_of(own_head), first, segment.begin, segment.end,
                                  args.head_dim, own_d);
    if constexpr (!of_keys) {  // Rows of out, in the place of the second stage.
      static_assert(2 * tensor_others == tensor_rows);
      copy_tile<depth, tensor_rows>(
          half_rows(args.out.data, sample * rows * out_width + own_head * head_dim, out_width), first,
          segment.begin, segment.end, args.head_dim, others + 2 * tile);
      commit_copies();
    }
    Stage stage = {first_head, others_first, 0};
    copy_stage(stage);

    const int warp_row = static_cast<int>(threadIdx.x) / 32 * 16;
    const float factor = args.scale * log2_of_e;
    float own_lse[2] = {0, 0}, own_dot[2] = {0, 0};  // Kernel of queries: rows lane / 4 and lane / 4 + 8.
    if constexpr (!of_keys) {
      const int64_t head_row = (sample * args.query_heads + own_head) * rows;
      load_lse(args.lse + head_row, first + warp_row, segment.begin, segment.end, own_lse);
      wait_copies<1>();
      __syncthreads();
      RowDots sums = {};
      STW_UNROLL for (int k = 0; k < depth / 16; ++k) {
        if (16 * k >= args.head_dim) break;
        uint32_t dout[4], out[4];
        load_left<depth>(dout, own_d, warp_row, 16 * k);
        load_left<depth>(out, others + 2 * tile, warp_row, 16 * k);
        add_products<dtype>(sums, dout, out);
      }
      STW_UNROLL for (int half = 0; half < 2; ++half) own_dot[half] = folded(sums.lanes[half]);
      share_statistics(all_statistics, head_row, first + warp_row, segment.begin, segment.end, own_lse,
                       own_dot);
    }
    float sum_s[depth / 8][4] = {};                // dQ or dK.
    float sum_d[of_keys ? depth / 8 : 1][4] = {};  // dV.
    float slope = 0;
    // The others that all rows of a warp meet. Empty if some rows belong to another document. Most stages lie
    // within it and need no mask. With a bias, no stage counts as inside.
    const int warp_first = first + warp_row, warp_last = warp_first + 15, met_begin = begin_of(warp_last);
    const int met_end = args.alibi_root == 0 && warp_first >= segment.begin && warp_last < segment.end
                            ? end_of(warp_first)
                            : 0;
    for (; stage.head < heads_end; stage = next_stage(stage)) {
      wait_copies<0>();
      __syncthreads();  // This stage has arrived, and all threads have finished with the one before.
      const Stage coming = next_stage(stage);
      if (coming.head < heads_end) copy_stage(coming);
      const int at = stage.at;
      const uint16_t* other_s = others + stage.parity * 2 * tile;
      const uint16_t* other_d = other_s + tile;
      const float* other_lse = statistics + stage.parity * 2 * tensor_others;
      const float* other_dot = other_lse + tensor_others;

      float s[tensor_others / 8][4] = {}, d[tensor_others / 8][4] = {};
      STW_UNROLL for (int k = 0; k < depth / 16; ++k) {
        uint32_t a_s[4], a_d[4];
        load_left<depth>(a_s, own_s, warp_row, 16 * k);
        load_left<depth>(a_d, own_d, warp_row, 16 * k);
        STW_UNROLL for (int n = 0; n < tensor_others / 16; ++n) {
          uint32_t b[4];
          load_right<depth>(b, other_s, 16 * n, 16 * k);
          multiply_add_two<dtype>(s[2 * n], s[2 * n + 1], a_s, b);
          load_right<depth>(b, other_d, 16 * n, 16 * k);
          multiply_add_two<dtype>(d[2 * n], d[2 * n + 1], a_d, b);
        }
      }
      // P and dS of this lane's elements whose row `is_met` by the other row; factor_of gives dropout's
      // factors.
      const auto differentiate = [&](auto is_met, auto factor_of) {
        STW_UNROLL for (int n = 0; n < tensor_others / 8; ++n) STW_UNROLL for (int e = 0; e < 4; ++e) {
          const int other = 8 * n + accumulator_column(e);
          const float lse = of_keys ? other_lse[other] : own_lse[e / 2],
                      dot = of_keys ? other_dot[other] : own_dot[e / 2];
          const float p = is_met(e / 2, other) ? fast_exp2(fma1(s[n][e], factor, -lse)) : 0.0f,
                      f = factor_of(4 * n + e);
          d[n][e] = p * fma1(d[n][e], f, -dot);
          s[n][e] = p * f;
        }
      };
      const auto differentiate_seen = [&](auto factor_of) {
        if (args.alibi_root != 0) {
          // The first stage of another head.
          if (at == others_first) slope = unscaled_slope(args, stage.head);
          add_bias<of_keys>(s, slope, warp_first, at);
        }
        int begins[2], ends[2];
        STW_UNROLL for (int half = 0; half < 2; ++half) {
          const int own_row = warp_first + accumulator_row(2 * half);
          begins[half] = begin_of(own_row) - at;
          ends[half] = own_row >= segment.begin && own_row < segment.end ? end_of(own_row) - at : 0;
        }
        differentiate([&](int half, int other) { return other >= begins[half] && other < ends[half]; },
                      factor_of);
      };
      if (args.dropout > 0) {
        const Dropout dropout = dropout_of(args.dropout, args.stream, *args.state, sample);
        const int64_t top_row = stage.head * rows;
        uint32_t kept;
        if constexpr (of_keys)
          kept = kept_of_keys(dropout, tensor_others / 8, rows, top_row + at, first + warp_row);
        else kept = kept_of_queries(dropout, tensor_others / 8, rows, top_row + first + warp_row, at);
        differentiate_seen([&](int i) { return (kept >> i & 1u) != 0 ? dropout.kept_scale : 0.0f; });
      } else if (at >= met_begin && at + tensor_others <= met_end) {
        differentiate([](int, int) { return true; }, [](int) { return 1.0f; });
      } else {
        differentiate_seen([](int) { return 1.0f; });
      }
      STW_UNROLL for (int k = 0; k < tensor_others / 16; ++k) {
        uint32_t a_s[4], a_d[4], b[4];
        as_left<dtype>(a_d, d[2 * k], d[2 * k + 1]);
        if constexpr (of_keys) as_left<dtype>(a_s, s[2 * k], s[2 * k + 1]);
        STW_UNROLL for (int n = 0; n < depth / 16; ++n) {
          load_right_transposed<depth>(b, other_s, 16 * k, 16 * n);
          multiply_add_two<dtype>(sum_s[2 * n], sum_s[2 * n + 1], a_d, b);
          if constexpr (of_keys) {
            load_right_transposed<depth>(b, other_d, 16 * k, 16 * n);
            multiply_add_two<dtype>(sum_d[2 * n], sum_d[2 * n + 1], a_s, b);
          }
        }
      }
    }
    const float scale[2] = {args.scale, args.scale}, one[2] = {1, 1};
    const int top_row = forgotten(first + warp_row);
    const int64_t at = top + (of_keys ? out_width + kv_head * head_dim : own_head * head_dim);
    store_accumulators<dtype, depth>(sum_s, scale, args.dqkv.data, at, width, top_row, segment.begin,
                                     segment.end, args.head_dim);
    if constexpr (of_keys)
      store_accumulators<dtype, depth>(sum_d, one, args.dqkv.data, at + args.kv_heads * head_dim, width,
                                       top_row, segment.begin, segment.end, args.head_dim);
    __syncthreads();  // All threads have finished with the tiles.
  }
}

void tensor_attention_gradient(const Launch& l, const AttentionArgs& args,
                               const QueryStatistics& statistics) {
  assert((reinterpret_cast<uintptr_t>(args.qkv.data) | reinterpret_cast<uintptr_t>(args.dout.data) |
          reinterpret_cast<uintptr_t>(args.dqkv.data) | reinterpret_cast<uintptr_t>(args.out.data)) %
             16 ==
         0);
  const int64_t tiles = args.samples * ceil_div(args.rows_per_sample, tensor_rows);
  for_tensor_instance(args.qkv.dtype, args.head_dim, [&](auto t) {
    launch(l, tensor_gradient_kernel<t.dtype, t.depth, false>,
           static_cast<unsigned>(tiles * args.query_heads), tensor_threads, gradient_tile_bytes<t.depth>,
           args, statistics);
    launch(l, tensor_gradient_kernel<t.dtype, t.depth, true>, static_cast<unsigned>(tiles * args.kv_heads),
           tensor_threads, gradient_tile_bytes<t.depth>, args, statistics);
  });
}

}  // namespace stw::kernels::cuda
