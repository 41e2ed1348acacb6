// The gradient of attention by warpgroups; tensor_attention_gradient.cu lists its products. A block has 128
// rows of its own, 64 a warpgroup, and goes over the other rows, 64 at a time. While it processes some, it
// copies the next ones.
//
// The left operands of both second products are in the registers where the first products were accumulated.
// The right operands are the tiles of the first products, read transposed. Two warpgroups at different points
// of a stage keep the tensor cores busy: off the diagonal, a stage takes about 400 instructions of each warp
// (kernel of keys, head_dim 64, as compiled by nvcc 13) and 512 cycles of the tensor cores for a warpgroup.
// mma.sync takes about 1080 instructions for the same work. All data of a stage, lse and dots too, arrive by
// asynchronous copies: a load would make a thread wait while the products run.
#include "kernels/cuda/attention/warpgroup_attention.h"

#include "kernels/cuda/attention/single_rows.h"
#include "kernels/cuda/attention/warpgroup_attention_tiles.h"

namespace stw::kernels::cuda {

// With dropout, only heads of 64 are supported: heads of 128 would leave no registers.
template <int head_dim, bool is_of_keys, bool with_dropout>
struct GradientTiles {
  static constexpr bool of_keys = is_of_keys, dropped = with_dropout;
  static constexpr int depth = head_dim, others = 64, threads = 2 * warpgroup_threads,
                       rows = 2 * warpgroup_rows;
  static constexpr int own_size = rows * depth, other_size = others * depth;  // Elements.
  // The last word is GradientMemory::spare.
  static constexpr size_t shared_bytes =
      (2 * own_size + 4 * other_size) * sizeof(uint16_t) + (4 * others + 1) * sizeof(float) + aligning_bytes;
};

// The rows of a block: keys or queries.
struct GradientBlock {
  int sample, own_head, first_head, kv_head, first, count;  // `count`: the rows of the sample.
  int out_width, width;                                     // Elements of a row of `out`, and of `qkv`.
  int64_t rows, top;                                        // `top`: the sample's first element in `qkv`.
};
template <class T>
STW_DEVICE GradientBlock gradient_block(const AttentionArgs& args) {
  GradientBlock b;
  const int block_index = static_cast<int>(blockIdx.x), group = args.query_heads / args.kv_heads;
  const int own_heads = T::of_keys ? args.kv_heads : args.query_heads,
            heads = static_cast<int>(args.samples) * own_heads;
  b.count = static_cast<int>(args.rows_per_sample);
  b.sample = block_index % heads / own_heads, b.own_head = block_index % own_heads;
  b.first_head = T::of_keys ? b.own_head * group : b.own_head, b.kv_head = b.first_head / group;
  b.out_width = args.query_heads * T::depth, b.width = b.out_width + 2 * args.kv_heads * T::depth;
  b.rows = args.rows_per_sample, b.top = b.sample * b.rows * b.width;
  // In causal attention, the first keys and the last queries have the most work; they go first.
  const int tiles = (b.count + T::rows - 1) / T::rows;
  b.first = (T::of_keys ? block_index / heads : tiles - 1 - block_index / heads) * T::rows;
  return b;
}
// Row 0 of a head of the sample.
template <class T>
STW_DEVICE const uint16_t* queries_of(const AttentionArgs& args, const GradientBlock& b, int head) {
  return static_cast<const uint16_t*>(args.qkv.data) + b.top + head * T::depth;
}
template <class T>
STW_DEVICE const uint16_t* keys_of(const AttentionArgs& args, const GradientBlock& b) {
  return queries_of<T>(args, b, args.query_heads + b.kv_head);
}
template <class T>
STW_DEVICE const uint16_t* values_of(const AttentionArgs& args, const GradientBlock& b) {
  return queries_of<T>(args, b, args.query_heads + args.kv_heads + b.kv_head);
}
// The rows of `out`, or of its gradient.
template <class T>
STW_DEVICE const uint16_t* outputs_of(const void* outputs, const GradientBlock& b, int head) {
  return static_cast<const uint16_t*>(outputs) + b.sample * b.rows * b.out_width + head * T::depth;
}

// The other rows that belong to a row, [begin, end): the keys that a query sees, or the queries that see a
// key. Windows are not supported here.
template <class T>
STW_DEVICE int begin_of_others(const DocumentRule<int>& rule, int own_row) {
  return T::of_keys ? first_row(rule, own_row) : rule.begin;
}
template <class T>
STW_DEVICE int end_of_others(const DocumentRule<int>& rule, int own_row) {
  return T::of_keys ? end_row(rule, own_row) : end_key(rule, own_row);
}

// A stage is T::others rows of one query head, from row `at` on. After the last stage of a head comes the
// first stage of the next head.
struct Stage {
  int head, at, parity;
};
// All other rows that belong to the rows of a document.
struct Others {
  int first, end, heads_end;
};
template <class T>
STW_DEVICE Stage next_stage(Stage s, const Others& all) {
  s.at += T::others;
  s.parity ^= 1;
  if (s.at >= all.end) s.at = all.first, ++s.head;
  return s;
}
template <class T>
STW_DEVICE void copy_stage(const AttentionArgs& args, const QueryStatistics& all_statistics,
                           const GradientBlock& b, const Others& all, Stage stage, uint16_t* others,
                           float* statistics) {
  constexpr bool unrolled = !T::of_keys || T::depth == 64;
  uint16_t* const to = others + stage.parity * 2 * T::other_size;
  copy_rows<T::threads, T::depth, T::others, unrolled>(
      T::of_keys ? queries_of<T>(args, b, stage.head) : keys_of<T>(args, b), b.width, stage.at, all.end, to);
  copy_rows<T::threads, T::depth, T::others, unrolled>(
      T::of_keys ? outputs_of<T>(args.dout.data, b, stage.head) : values_of<T>(args, b),
      T::of_keys ? b.out_width : b.width, stage.at, all.end, to + T::other_size);
  if constexpr (T::of_keys)
    copy_statistics<T::others>(
        all_statistics, static_cast<int64_t>(b.sample * args.query_heads + stage.head) * b.rows + stage.at,
        all.end - stage.at, statistics + stage.parity * 2 * T::others);
  commit_copies();
}

// For the rows lane / 4 and lane / 4 + 8 of a warp.
struct OwnStatistics {
  float lse[2], dot[2];
};
// Kernel of queries: the statistics of its rows. A row's `dot` is the product of its rows in `own_d` and
// `outs`. The kernel of keys reads the statistics later.
template <class T, DType dtype>
STW_DEVICE OwnStatistics compute_own_statistics(const AttentionArgs& args,
                                                const QueryStatistics& all_statistics, const GradientBlock& b,
                                                const Segment& segment, int warp_row, const uint16_t* own_d,
                                                const uint16_t* outs) {
  OwnStatistics own_statistics = {};
  const int first_row = static_cast<int>(threadIdx.x) / 32 * 16;
  const int64_t head_row = static_cast<int64_t>(b.sample * args.query_heads + b.own_head) * b.rows;
  load_lse(args.lse + head_row, warp_row, segment.begin, segment.end, own_statistics.lse);
  wait_copies<1>();
  __syncthreads();
  RowDots sums = {};
  STW_UNROLL
  for (int step = 0; step < T::depth / product_step; ++step) {
    uint32_t dout[4], out[4];
    load_left_of_lines<T::rows>(dout, own_d, first_row, step);
    load_left_of_lines<T::rows>(out, outs, first_row, step);
    add_products<dtype>(sums, dout, out);
  }
  STW_UNROLL
  for (int half = 0; half < 2; ++half) own_statistics.dot[half] = folded(sums.lanes[half]);
  share_statistics(all_statistics, head_row, warp_row, segment.begin, segment.end, own_statistics.lse,
                   own_statistics.dot);
  return own_statistics;
}

// Masks the scores of other rows that do not belong to a row. `at`: the first other row of the scores.
template <class T>
STW_DEVICE void mask_others(float (&s)[T::others / 8][4], const DocumentRule<int>& rule, const Others& all,
                            int warp_row, int at) {
  int begins[2], ends[2];
  STW_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int own_row = warp_row + accumulator_row(2 * half), end = end_of_others<T>(rule, own_row);
    begins[half] = T::of_keys ? begin_of_others<T>(rule, own_row) - at : 0;
    ends[half] = (end < all.end ? end : all.end) - at;
  }
  STW_UNROLL
  for (int n = 0; n < T::others / 8; ++n) STW_UNROLL
  for (int e = 0; e < 4; ++e) {
    const int other = 8 * n + accumulator_column(e);
    if (other < begins[e / 2] || other >= ends[e / 2]) s[n][e] = -infinity;
  }
}

// Turns scores into probabilities, while the products with the values run. `other_lse`: the lse of the
// others, for the kernel of keys.
template <class T>
STW_DEVICE void as_probabilities(float (&s)[T::others / 8][4], float factor,
                                 const OwnStatistics& own_statistics, const float* other_lse, float* spare) {
  uint32_t all_bits = 0;
  STW_UNROLL
  for (int n = 0; n < T::others / 8; ++n) STW_UNROLL
  for (int e = 0; e < 4; ++e) {
    s[n][e] =
        fast_exp2(fma1(s[n][e], factor,
                       -(T::of_keys ? other_lse[8 * n + accumulator_column(e)] : own_statistics.lse[e / 2])));
    all_bits |= bits_of(s[n][e]);
  }
  force_evaluation(spare, all_bits);  // No probability has a sign.
}

// P becomes P·F and d becomes dS, where F holds dropout's factors. `other_dot`: the dots of the others, for
// the kernel of keys.
template <class T>
STW_DEVICE void differentiate(float (&s)[T::others / 8][4], float (&d)[T::others / 8][4],
                              const AttentionArgs& args, const GradientBlock& b, Stage stage, int warp_row,
                              const OwnStatistics& own_statistics, const float* other_dot) {
  constexpr int fragments = T::others / 8;
  const auto apply = [&](auto factor_of) {
    STW_UNROLL
    for (int n = 0; n < fragments; ++n) STW_UNROLL
    for (int e = 0; e < 4; ++e) {
      const float f = factor_of(4 * n + e);
      d[n][e] = s[n][e] *
                fma1(d[n][e], f,
                     -(T::of_keys ? other_dot[8 * n + accumulator_column(e)] : own_statistics.dot[e / 2]));
      if constexpr (T::of_keys) s[n][e] *= f;
    }
  };
  if constexpr (T::dropped) {
    const Dropout dropout = dropout_of(args.dropout, args.stream, *args.state, b.sample);
    const int64_t top_row = stage.head * b.rows;
    uint32_t kept;
    if constexpr (T::of_keys) kept = kept_of_keys(dropout, fragments, b.rows, top_row + stage.at, warp_row);
    else kept = kept_of_queries(dropout, fragments, b.rows, top_row + warp_row, stage.at);
    apply([&](int i) { return (kept >> i & 1u) != 0 ? dropout.kept_scale : 0.0f; });
  } else {
    apply([](int) { return 1.0f; });
  }
}

// Stores dQ, or dK and dV.
template <class T, DType dtype>
STW_DEVICE void store_gradients(const AttentionArgs& args, const GradientBlock& b, const Segment& segment,
                                int warp_row, const float (&sum_s)[T::depth / 8][4],
                                const float (&sum_d)[T::of_keys ? T::depth / 8 : 1][4]) {
  const float scale[2] = {args.scale, args.scale}, one[2] = {1, 1};
  const int top_row = opaque(warp_row);
  const int64_t at = b.top + (T::of_keys ? b.out_width + b.kv_head * T::depth : b.own_head * T::depth);
  store_accumulators<dtype, T::depth>(sum_s, scale, args.dqkv.data, at, b.width, top_row, segment.begin,
                                      segment.end, T::depth);
  if constexpr (T::of_keys)
    store_accumulators<dtype, T::depth>(sum_d, one, args.dqkv.data, at + args.kv_heads * T::depth, b.width,
                                        top_row, segment.begin, segment.end, T::depth);
}

// The tiles of a block in shared memory.
struct GradientMemory {
  uint16_t *own_s, *own_d;  // Rows of Q and dout, or of K and V.
  uint16_t* others;         // Two stages of (K, V), or of (Q, dout).
  float* statistics;        // Kernel of keys: two stages of the others' lse and dots.
  float* spare;             // For force_evaluation.
};

// The gradients of a block's rows that belong to one document.
template <class T, DType dtype>
STW_DEVICE void segment_gradient(const AttentionArgs& args, const QueryStatistics& all_statistics,
                                 const GradientBlock& b, const Segment& segment,
                                 const GradientMemory& memory) {
  constexpr bool of_keys = T::of_keys;
  constexpr int fragments = T::others / 8, depth = T::depth;
  const int thread = static_cast<int>(threadIdx.x), warp_row = b.first + thread / 32 * 16;
  // The rows of this warpgroup.
  const uint32_t own_rows = static_cast<uint32_t>(thread / warpgroup_threads) * warpgroup_rows * line_bytes;
  const DocumentRule<int> rule = segment.rule;
  const Others all = {begin_of_others<T>(rule, segment.begin), end_of_others<T>(rule, segment.end - 1),
                      of_keys ? b.first_head + args.query_heads / args.kv_heads : b.first_head + 1};
  // Kernel of queries: rows of out, in the place of the second stage.
  uint16_t* const outs = memory.others + 2 * T::other_size;
  if constexpr (!of_keys) {
    static_assert(T::own_size == 2 * T::other_size);
    copy_rows<T::threads, depth, T::rows>(outputs_of<T>(args.out.data, b, b.own_head), b.out_width, b.first,
                                          b.count, outs);
    commit_copies();
  }
  Stage stage = {b.first_head, all.first, 0};
  copy_stage<T>(args, all_statistics, b, all, stage, memory.others, memory.statistics);
  OwnStatistics own_statistics = {};
  if constexpr (!of_keys)
    own_statistics =
        compute_own_statistics<T, dtype>(args, all_statistics, b, segment, warp_row, memory.own_d, outs);
  float sum_s[depth / 8][4] = {};                // dQ or dK.
  float sum_d[of_keys ? depth / 8 : 1][4] = {};  // dV.
  float slope = 0;
  // Most stages need no mask: their rows lie in [unmasked_begin, unmasked_end) and belong to all rows of the
  // warp. The range is empty with a bias. Results of rows outside this document are not stored.
  const int unmasked_begin = begin_of_others<T>(rule, warp_row + 15),
            end_of_first_row = end_of_others<T>(rule, warp_row);
  const int unmasked_end = args.alibi_root != 0 ? 0 : end_of_first_row < all.end ? end_of_first_row : all.end;
  STW_ROLLED
  for (; stage.head < all.heads_end; stage = next_stage<T>(stage, all)) {
    wait_copies<0>();
    fence_and_barrier();  // This stage has arrived, and all threads have finished with the one before.
    const uint32_t other_s = shared_address(memory.others + stage.parity * 2 * T::other_size),
                   other_d = other_s + T::other_size * sizeof(uint16_t);
    const float* const other_lse = memory.statistics + stage.parity * 2 * T::others;
    float s[fragments][4], d[fragments][4];
    begin_products();
    multiply_rows_async<dtype, depth, T::rows, T::others>(s, shared_address(memory.own_s) + own_rows,
                                                          other_s);
    commit_products();
    begin_products();
    multiply_rows_async<dtype, depth, T::rows, T::others>(d, shared_address(memory.own_d) + own_rows,
                                                          other_d);
    commit_products();
    const Stage next = next_stage<T>(stage, all);
    if (next.head < all.heads_end)
      copy_stage<T>(args, all_statistics, b, all, next, memory.others, memory.statistics);
    wait_products<1>();  // The scores.
    fence_accumulators(s);
    if ((of_keys && stage.at < unmasked_begin) || stage.at + T::others > unmasked_end) {
      if (args.alibi_root != 0) {
        if (stage.at == all.first) slope = unscaled_slope(args, stage.head);  // A new head.
        add_bias<of_keys>(s, slope, warp_row, stage.at);
      }
      mask_others<T>(s, rule, all, warp_row, stage.at);
    }
    as_probabilities<T>(s, args.scale * log2_of_e, own_statistics, other_lse, memory.spare);
    wait_products<0>();
    fence_accumulators(d);
    differentiate<T>(s, d, args, b, stage, warp_row, own_statistics, other_lse + T::others);
    uint32_t p[T::others / product_step][4], ds[T::others / product_step][4];
    as_left_operand<dtype>(ds, d);
    if constexpr (of_keys) as_left_operand<dtype>(p, s);
    begin_products();
    multiply_columns_async<dtype, depth, T::others>(sum_s, ds, other_s);
    if constexpr (of_keys) multiply_columns_async<dtype, depth, T::others>(sum_d, p, other_d);
    commit_products();
    wait_products<0>();
    fence_accumulators(sum_s);
    if constexpr (of_keys) fence_accumulators(sum_d);
  }
  store_gradients<T, dtype>(args, b, segment, warp_row, sum_s, sum_d);
  __syncthreads();  // All threads have finished with the tiles.
}

template <class T, DType dtype>
static __global__ void __launch_bounds__(T::threads, 1)
    warpgroup_gradient_kernel(AttentionArgs args, QueryStatistics all_statistics) {
  STW_DYNAMIC_SHARED(uint16_t, shared);
  GradientMemory memory;
  memory.own_s = aligned_tile(shared);
  memory.own_d = memory.own_s + T::own_size;
  memory.others = memory.own_d + T::own_size;
  memory.statistics = reinterpret_cast<float*>(memory.others + 4 * T::other_size);
  memory.spare = memory.statistics + 4 * T::others;
  const GradientBlock b = gradient_block<T>(args);
  const auto copy_own = [&](const uint16_t* head, int stride, uint16_t* to) {
    copy_rows<T::threads, T::depth, T::rows>(head, stride, b.first, b.count, to);
  };
  const Documents documents = documents_of(args, b.sample);
  const int tile_end = b.first + T::rows < b.count ? b.first + T::rows : b.count;
  Segment segment = {};
  for (int next = b.first; next < tile_end; next = segment.end) {
    const int begin = next;
    next = end_of_single_rows(documents, begin, tile_end, b.count);
    differentiate_single_rows<dtype, T::of_keys, T::dropped>(args, b.sample, b.own_head,
                                                             {b.first + row_of_warp(), begin, next});
    if (next == tile_end) return;
    if (segment.end ==
        0) {  // Copies all rows at once, whatever their document: their products are independent.
      copy_own(T::of_keys ? keys_of<T>(args, b) : queries_of<T>(args, b, b.own_head), b.width, memory.own_s);
      copy_own(T::of_keys ? values_of<T>(args, b) : outputs_of<T>(args.dout.data, b, b.own_head),
               T::of_keys ? b.width : b.out_width, memory.own_d);
    }
    segment = segment_at(args, documents, next, tile_end, b.count, 0);
    segment_gradient<T, dtype>(args, all_statistics, b, segment, memory);
  }
}

void warpgroup_attention_gradient(const Launch& l, const AttentionArgs& args,
                                  const QueryStatistics& statistics) {
  assert((reinterpret_cast<uintptr_t>(args.qkv.data) | reinterpret_cast<uintptr_t>(args.dout.data) |
          reinterpret_cast<uintptr_t>(args.dqkv.data) | reinterpret_cast<uintptr_t>(args.out.data)) %
             16 ==
         0);
  const auto in_tiles = [&](auto t, auto stored, int heads) {
    using T = decltype(t);
    const int64_t blocks = args.samples * heads * ceil_div(args.rows_per_sample, T::rows);
    launch(l, warpgroup_gradient_kernel<T, stored.dtype>, static_cast<unsigned>(blocks), T::threads,
           T::shared_bytes, args, statistics);
  };
  const auto of_type = [&](auto stored) {
    const auto of_both = [&](auto of_queries, auto of_keys) {
      in_tiles(of_queries, stored, args.query_heads);
      in_tiles(of_keys, stored, args.kv_heads);
    };
    if (args.head_dim == 128) of_both(GradientTiles<128, false, false>{}, GradientTiles<128, true, false>{});
    else if (args.dropout == 0) of_both(GradientTiles<64, false, false>{}, GradientTiles<64, true, false>{});
    else of_both(GradientTiles<64, false, true>{}, GradientTiles<64, true, true>{});
  };
  if (args.qkv.dtype == DType::bf16) of_type(StoredAs<DType::bf16>{});
  else of_type(StoredAs<DType::f16>{});
}

}  // namespace stw::kernels::cuda
