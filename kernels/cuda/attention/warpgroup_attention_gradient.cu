// The gradient of attention by warpgroups; tensor_attention_gradient.cu lists its products. A block keeps 128
// rows, 64 a warpgroup, and meets 64 other rows at a time; the next ones arrive while these are processed.
// Both second products have their left operand in the registers where the first ones were accumulated. They
// read the others from the same tiles as the first products, transposed. Two warpgroups at different points
// of a stage keep the tensor cores busy: off the diagonal, a stage takes about 400 instructions of each warp
// (of keys, head_dim 64, as compiled by nvcc 13) and 512 cycles of the tensor cores for a warpgroup; mma.sync
// takes about 1080 instructions for the same work. All data of a stage come by asynchronous copies, lse and
// dots too: the wait for a load would fall between the products and their wait.
#include "kernels/cuda/attention/warpgroup_attention.h"

#include "kernels/cuda/attention/warpgroup_attention_tiles.h"

namespace stw::kernels::cuda {

// With dropout, only heads of 64: 128 leaves no registers.
template <int head_dim, bool is_of_keys, bool with_dropout>
struct GradientTiles {
  static constexpr bool of_keys = is_of_keys, dropped = with_dropout;
  static constexpr int depth = head_dim, others = 64, threads = 2 * warpgroup_threads,
                       rows = 2 * warpgroup_rows;
  static constexpr int own_size = rows * depth, other_size = others * depth;  // Elements.
  static constexpr size_t shared_bytes =
      (2 * own_size + 4 * other_size) * sizeof(uint16_t) + 4 * others * sizeof(float) + aligning_bytes;
};

template <class T, DType dtype>
static __global__ void __launch_bounds__(T::threads, 1)
    warpgroup_gradient_kernel(AttentionArgs args, QueryStatistics all_statistics) {
  STW_DYNAMIC_SHARED(uint16_t, memory);
  constexpr bool of_keys = T::of_keys;
  constexpr int fragments = T::others / 8, depth = T::depth;
  constexpr bool unrolled = !of_keys || depth == 64;
  uint16_t* const own_s = aligned_tile(memory);  // Rows of Q, or of K.
  uint16_t* const own_d = own_s + T::own_size;   // Rows of dout, or of V.
  uint16_t* const others = own_d + T::own_size;  // Two stages of (K, V), or of (Q, dout).
  // Kernel of keys: two stages of the others' lse and dots.
  float* const statistics = reinterpret_cast<float*>(others + 4 * T::other_size);
  const int block_index = static_cast<int>(blockIdx.x), count = static_cast<int>(args.rows_per_sample),
            group = args.query_heads / args.kv_heads;
  const int own_heads = of_keys ? args.kv_heads : args.query_heads,
            heads = static_cast<int>(args.samples) * own_heads;
  const int sample = block_index % heads / own_heads, own_head = block_index % own_heads,
            tiles = (count + T::rows - 1) / T::rows;
  const int first_head = of_keys ? own_head * group : own_head, kv_head = first_head / group;
  const int out_width = args.query_heads * depth, width = out_width + 2 * args.kv_heads * depth;
  const int64_t rows = args.rows_per_sample, top = sample * rows * width;
  // In causal attention, the first keys and the last queries have the most work; they go first.
  const int first = (of_keys ? block_index / heads : tiles - 1 - block_index / heads) * T::rows;
  const auto queries_of = [&](int head) {
    return static_cast<const uint16_t*>(args.qkv.data) + top + head * depth;
  };
  const auto douts_of = [&](int head) {
    return static_cast<const uint16_t*>(args.dout.data) + sample * rows * out_width + head * depth;
  };
  const auto keys = [&] { return queries_of(args.query_heads + kv_head); };
  const auto values = [&] { return queries_of(args.query_heads + args.kv_heads + kv_head); };
  const auto copy_own = [&](const uint16_t* head, int stride, uint16_t* to) {
    copy_rows<T::threads, depth, T::rows>(head, stride, first, count, to);
  };
  // All rows at once, of whatever document: the rows of a product are independent.
  copy_own(of_keys ? keys() : queries_of(own_head), width, own_s);
  copy_own(of_keys ? values() : douts_of(own_head), of_keys ? width : out_width, own_d);

  const Documents documents = documents_of(args, sample);
  const int tile_end = first + T::rows < count ? first + T::rows : count;
  const int thread = static_cast<int>(threadIdx.x), warp_row = first + thread / 32 * 16;
  // Of this warpgroup.
  const uint32_t own_rows = static_cast<uint32_t>(thread / warpgroup_threads) * warpgroup_rows * line_bytes;
  const float factor = args.scale * log2_of_e;
  Segment segment;
  for (int next = first; next < tile_end; next = segment.end) {
    segment = segment_at(args, documents, next, tile_end, count, 0);
    const DocumentRule<int> rule = segment.rule;
    // The others that a row meets, [begin_of, end_of): the keys that a query sees, the queries that see a
    // key. Windows are not supported here.
    const auto begin_of = [&](int own_row) { return of_keys ? first_row(rule, own_row) : rule.begin; };
    const auto end_of = [&](int own_row) {
      return of_keys ? end_row(rule, own_row) : end_key(rule, own_row);
    };
    const int others_first = begin_of(segment.begin), others_end = end_of(segment.end - 1);
    // A stage is T::others rows from `at` of one query head. After the last stage of a head follows the next
    // head's first.
    struct Stage {
      int head, at, parity;
    };
    const auto next_stage = [&](Stage s) {
      s.at += T::others;
      s.parity ^= 1;
      if (s.at >= others_end) s.at = others_first, ++s.head;
      return s;
    };
    const int heads_end = of_keys ? first_head + group : first_head + 1;
    const auto copy_stage = [&](Stage stage) {
      uint16_t* const to = others + stage.parity * 2 * T::other_size;
      copy_rows<T::threads, depth, T::others, unrolled>(of_keys ? queries_of(stage.head) : keys(), width,
                                                        stage.at, others_end, to);
      copy_rows<T::threads, depth, T::others, unrolled>(of_keys ? douts_of(stage.head) : values(),
                                                        of_keys ? out_width : width, stage.at, others_end,
                                                        to + T::other_size);
      if constexpr (of_keys)
        copy_statistics<T::others>(
            all_statistics, static_cast<int64_t>(sample * args.query_heads + stage.head) * rows + stage.at,
            others_end - stage.at, statistics + stage.parity * 2 * T::others);
      commit_copies();
    };
    // Kernel of queries: rows of out, in the place of the second stage.
    uint16_t* const outs = others + 2 * T::other_size;
    if constexpr (!of_keys) {
      static_assert(T::own_size == 2 * T::other_size);
      copy_own(static_cast<const uint16_t*>(args.out.data) + sample * rows * out_width + own_head * depth,
               out_width, outs);
      commit_copies();
    }
    Stage stage = {first_head, others_first, 0};
    copy_stage(stage);

    float own_lse[2] = {0, 0}, own_dot[2] = {0, 0};  // Kernel of queries: rows lane / 4 and lane / 4 + 8.
    if constexpr (!of_keys) {
      const int64_t head_row = static_cast<int64_t>(sample * args.query_heads + own_head) * rows;
      load_lse(args.lse + head_row, warp_row, segment.begin, segment.end, own_lse);
      wait_copies<1>();
      __syncthreads();
      RowDots sums = {};
      STW_UNROLL
      for (int step = 0; step < depth / product_step; ++step) {
        uint32_t dout[4], out[4];
        load_left_of_lines<T::rows>(dout, own_d, thread / 32 * 16, step);
        load_left_of_lines<T::rows>(out, outs, thread / 32 * 16, step);
        add_products<dtype>(sums, dout, out);
      }
      STW_UNROLL
      for (int half = 0; half < 2; ++half) own_dot[half] = folded(sums.lanes[half]);
      share_statistics(all_statistics, head_row, warp_row, segment.begin, segment.end, own_lse, own_dot);
    }
    float sum_s[depth / 8][4] = {};                // dQ or dK.
    float sum_d[of_keys ? depth / 8 : 1][4] = {};  // dV.
    float slope = 0;
    // The others that all rows of a warp meet. Most stages lie within it and need no mask. With a bias, no
    // stage counts as inside. Results of rows outside this document are not stored.
    const int met_begin = begin_of(warp_row + 15), met_by_first = end_of(warp_row);
    const int met_end = args.alibi_root != 0 ? 0 : met_by_first < others_end ? met_by_first : others_end;
    STW_ROLLED
    for (; stage.head < heads_end; stage = next_stage(stage)) {
      wait_copies<0>();
      meet_for_products();  // This stage has arrived, and all threads have finished with the one before.
      const uint32_t other_s = shared_address(others + stage.parity * 2 * T::other_size),
                     other_d = other_s + T::other_size * sizeof(uint16_t);
      const float* const other_lse = statistics + stage.parity * 2 * T::others;
      const float* const other_dot = other_lse + T::others;
      float s[fragments][4], d[fragments][4];
      begin_products();
      multiply_rows_async<dtype, depth, T::rows, T::others>(s, shared_address(own_s) + own_rows, other_s);
      commit_products();
      begin_products();
      multiply_rows_async<dtype, depth, T::rows, T::others>(d, shared_address(own_d) + own_rows, other_d);
      commit_products();
      const Stage coming = next_stage(stage);
      if (coming.head < heads_end) copy_stage(coming);
      const int at = stage.at;
      wait_products<1>();  // The scores.
      products_are_done(s);
      if ((of_keys && at < met_begin) || at + T::others > met_end) {
        if (args.alibi_root != 0) {
          // The first stage of another head.
          if (at == others_first) slope = unscaled_slope(args, stage.head);
          add_bias<of_keys>(s, slope, warp_row, at);
        }
        int begins[2], ends[2];
        STW_UNROLL
        for (int half = 0; half < 2; ++half) {
          const int own_row = warp_row + accumulator_row(2 * half), end = end_of(own_row);
          begins[half] = of_keys ? begin_of(own_row) - at : 0;
          ends[half] = (end < others_end ? end : others_end) - at;
        }
        STW_UNROLL
        for (int n = 0; n < fragments; ++n) STW_UNROLL
        for (int e = 0; e < 4; ++e) {
          const int other = 8 * n + accumulator_column(e);
          if (other < begins[e / 2] || other >= ends[e / 2]) s[n][e] = -infinity;
        }
      }
      STW_UNROLL
      for (int n = 0; n < fragments; ++n) STW_UNROLL
      for (int e = 0; e < 4; ++e)
        s[n][e] = fast_exp2(
            fma1(s[n][e], factor, -(of_keys ? other_lse[8 * n + accumulator_column(e)] : own_lse[e / 2])));
      wait_products<0>();
      products_are_done(d);
      // P becomes P·F and d becomes dS, where F holds dropout's factors.
      const auto differentiate = [&](auto factor_of) {
        STW_UNROLL
        for (int n = 0; n < fragments; ++n) STW_UNROLL
        for (int e = 0; e < 4; ++e) {
          const float f = factor_of(4 * n + e);
          d[n][e] = s[n][e] *
                    fma1(d[n][e], f, -(of_keys ? other_dot[8 * n + accumulator_column(e)] : own_dot[e / 2]));
          if constexpr (of_keys) s[n][e] *= f;
        }
      };
      if constexpr (T::dropped) {
        const Dropout dropout = dropout_of(args.dropout, args.stream, *args.state, sample);
        const int64_t top_row = stage.head * rows;
        uint32_t kept;
        if constexpr (of_keys) kept = kept_of_keys(dropout, fragments, rows, top_row + at, warp_row);
        else kept = kept_of_queries(dropout, fragments, rows, top_row + warp_row, at);
        differentiate([&](int i) { return (kept >> i & 1u) != 0 ? dropout.kept_scale : 0.0f; });
      } else {
        differentiate([](int) { return 1.0f; });
      }
      uint32_t p[T::others / product_step][4], ds[T::others / product_step][4];
      as_own_rows<dtype>(ds, d);
      if constexpr (of_keys) as_own_rows<dtype>(p, s);
      begin_products();
      multiply_columns_async<dtype, depth, T::others>(sum_s, ds, other_s);
      if constexpr (of_keys) multiply_columns_async<dtype, depth, T::others>(sum_d, p, other_d);
      commit_products();
      wait_products<0>();
      products_are_done(sum_s);
      if constexpr (of_keys) products_are_done(sum_d);
    }
    const float scale[2] = {args.scale, args.scale}, one[2] = {1, 1};
    const int top_row = forgotten(warp_row);
    const int64_t at = top + (of_keys ? out_width + kv_head * depth : own_head * depth);
    store_accumulators<dtype, depth>(sum_s, scale, args.dqkv.data, at, width, top_row, segment.begin,
                                     segment.end, depth);
    if constexpr (of_keys)
      store_accumulators<dtype, depth>(sum_d, one, args.dqkv.data, at + args.kv_heads * depth, width, top_row,
                                       segment.begin, segment.end, depth);
    __syncthreads();  // All threads have finished with the tiles.
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
