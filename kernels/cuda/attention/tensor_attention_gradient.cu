// The gradient of attention on tensor cores, with the formulas of attention_gradient.cu. Two kernels from one
// source. A block has 64 rows of its own, 16 a warp, and goes over the other rows, 32 at a time. While it
// processes some, it copies the next ones.
//
//   of queries: own rows are queries, others are their keys:       S = Q·Kᵀ   dP = dout·Vᵀ   dQ += dS·K
//   of keys:    own rows are keys, others are the group's queries: Sᵀ = K·Qᵀ  dPᵀ = V·doutᵀ  dV += Pᵀ·dout
//                                                                                            dK += dSᵀ·Q
//
// In both, scores and their gradients stay in the registers of the warp that owns the rows. The accumulators
// of one product are the left operand of the next one, with P and dS rounded to 16 bits. Sums are fp32 and
// belong to one warp, which adds in the order of the other rows. The kernel of queries runs first. It loads
// out's rows in addition to dout's, into the place of its second stage, and computes D of its rows for itself
// and for the kernel of keys. So there are no atomics, and no order depends on timing. In return, the kernels
// compute 7 products, where a single kernel would compute 5.
//
// The lower bound is the time of the tensor cores. Other instructions add to it: a stage of 64 products (in
// the kernel of keys, head_dim 64) has about 540 instructions of a warp. Most stages need no mask, because
// every row needs all other rows of the stage.
#include "kernels/cuda/attention/tensor_gradient_tile.h"

namespace stw::kernels::cuda {

// The gradients of a block's rows that belong to one document.
template <DType dtype, int depth, bool of_keys>
STW_DEVICE void segment_gradient(const AttentionArgs& args, const QueryStatistics& all_statistics,
                                 const TensorGradientBlock& b, const Segment& segment,
                                 const TensorGradientMemory& memory) {
  constexpr int tile = tensor_others * tile_stride<depth>;
  const DocumentRule<int> rule = segment.rule;
  const int others_first =
      of_keys && args.causal ? segment.begin
                             : block_with(rule, begin_of_others<of_keys>(rule, segment.begin), tensor_others);
  const TensorOthers all = {others_first, end_of_others<of_keys>(rule, segment.end - 1),
                            of_keys ? b.first_head + args.query_heads / args.kv_heads : b.first_head + 1};
  copy_own_rows<depth, of_keys>(args, b, segment, memory);
  TensorStage stage = {b.first_head, all.first, 0};
  copy_stage<depth, of_keys>(args, all_statistics, b, all, stage, memory);
  TensorStatistics own_statistics = {};
  if constexpr (!of_keys)
    own_statistics = compute_own_statistics<dtype, depth>(args, all_statistics, b, segment, memory);
  const float factor = args.scale * log2_of_e;
  float sum_s[depth / 8][4] = {};                // dQ or dK.
  float sum_d[of_keys ? depth / 8 : 1][4] = {};  // dV.
  float slope = 0;
  // Most stages need no mask: their rows lie in [unmasked_begin, unmasked_end) and belong to all rows of the
  // warp. The range is empty with a bias, or if some of the warp's rows belong to another document.
  const int warp_row = b.first + static_cast<int>(threadIdx.x) / 32 * 16, warp_last = warp_row + 15,
            unmasked_begin = begin_of_others<of_keys>(rule, warp_last);
  const int unmasked_end = args.alibi_root == 0 && warp_row >= segment.begin && warp_last < segment.end
                               ? end_of_others<of_keys>(rule, warp_row)
                               : 0;
  for (; stage.head < all.heads_end; stage = next_stage(stage, all)) {
    wait_copies<0>();
    __syncthreads();  // This stage has arrived, and all threads have finished with the one before.
    const TensorStage next = next_stage(stage, all);
    if (next.head < all.heads_end) copy_stage<depth, of_keys>(args, all_statistics, b, all, next, memory);
    const int at = stage.at;
    const uint16_t* const other_s = memory.others + stage.parity * 2 * tile;
    const float* const other_lse = memory.statistics + stage.parity * 2 * tensor_others;
    OtherScores s = {}, d = {};
    multiply_others<dtype, depth>(s, d, memory, other_s, other_s + tile);
    const auto differentiate_masked = [&](auto factor_of) {
      if (args.alibi_root != 0) {
        // The first stage of another head.
        if (at == all.first) slope = unscaled_slope(args, stage.head);
        add_bias<of_keys>(s, slope, warp_row, at);
      }
      int begins[2], ends[2];
      STW_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int own_row = warp_row + accumulator_row(2 * half);
        begins[half] = begin_of_others<of_keys>(rule, own_row) - at;
        ends[half] = own_row >= segment.begin && own_row < segment.end
                         ? end_of_others<of_keys>(rule, own_row) - at
                         : 0;
      }
      differentiate<of_keys>(
          s, d, factor, own_statistics, other_lse,
          [&](int half, int other) { return other >= begins[half] && other < ends[half]; }, factor_of);
    };
    if (args.dropout > 0) {
      const Dropout dropout = dropout_of(args.dropout, args.stream, *args.state, b.sample);
      const uint32_t kept = kept_of_stage<of_keys>(dropout, b, stage, warp_row);
      differentiate_masked([&](int i) { return (kept >> i & 1u) != 0 ? dropout.kept_scale : 0.0f; });
    } else if (at >= unmasked_begin && at + tensor_others <= unmasked_end) {
      differentiate<of_keys>(
          s, d, factor, own_statistics, other_lse, [](int, int) { return true; }, [](int) { return 1.0f; });
    } else {
      differentiate_masked([](int) { return 1.0f; });
    }
    add_gradients<dtype, depth, of_keys>(sum_s, sum_d, s, d, other_s, other_s + tile);
  }
  store_gradients<dtype, depth, of_keys>(args, b, segment, warp_row, sum_s, sum_d);
  __syncthreads();  // All threads have finished with the tiles.
}

template <DType dtype, int depth, bool of_keys>
static __global__ void __launch_bounds__(tensor_threads, depth <= 64 ? 3 : 2)
    tensor_gradient_kernel(AttentionArgs args, QueryStatistics all_statistics) {
  STW_DYNAMIC_SHARED(uint16_t, shared);
  constexpr int tile = tensor_others * tile_stride<depth>, own_size = tensor_rows * tile_stride<depth>;
  TensorGradientMemory memory;
  memory.own_s = shared;
  memory.own_d = memory.own_s + own_size;
  memory.others = memory.own_d + own_size;
  memory.statistics = reinterpret_cast<float*>(memory.others + 4 * tile);
  const TensorGradientBlock b = tensor_gradient_block<of_keys>(args);
  const Documents documents = documents_of(args, b.sample);
  const int tile_end = b.first + tensor_rows < b.count ? b.first + tensor_rows : b.count;
  Segment segment;
  for (int next = b.first; next < tile_end; next = segment.end) {
    const int begin = next;
    next = end_of_single_rows(documents, begin, tile_end, b.count);
    differentiate_single_rows<dtype, of_keys, true>(args, b.sample, b.own_head,
                                                    {b.first + row_of_warp(), begin, next});
    if (next == tile_end) return;
    segment = segment_at(args, documents, next, tile_end, b.count, static_cast<int>(args.window));
    segment_gradient<dtype, depth, of_keys>(args, all_statistics, b, segment, memory);
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
