// The gradient of attention with relative positions on tensor cores. The two kernels of
// tensor_attention_gradient.cu, with the biases in the scores, and with products with the table's rows:
//
//   of queries: dQ += dS·Kr, and the sums dKr    of keys: dK += dSᵀ·Qr, and the sums dQr
//
// dS is the same 16-bit number in all products. In shared memory, its element of own row o and other row p
// lies in column p - o; so the products with the table's rows are products of matrices. If the table is
// trained, a block has several tiles of own rows, so that the scratch memory for its sums does not grow with
// the square of the text's length.
//
// Workspace: as in attention_gradient.cu; then, if the table is trained, sums for its rows: (samples, heads,
// keys and queries, relative_sum_parts, table_rows, 64).
#include "kernels/contract/cuda_workspace.h"
#include "kernels/cuda/attention/tensor_gradient_tile.h"
#include "kernels/cuda/attention/tensor_table_sums.h"

namespace stw::kernels::cuda {

static_assert(relative_others == tensor_others);

// Shared memory: as in tensor_attention_gradient.cu, then that of relative positions, and `starts`.
inline constexpr size_t relative_gradient_bytes =
    gradient_tile_bytes<relative_depth> + relative_memory_bytes + (relative_others + 4) * sizeof(int);
static_assert(relative_gradient_bytes <= size_t{99} * 1024);  // The limit of desktop cards.

struct TensorRelativeGradientMemory {
  TensorGradientMemory tiles;
  TensorRelativeMemory relative;
  int* starts;
};
STW_DEVICE TensorRelativeGradientMemory relative_gradient_memory(uint16_t* shared) {
  constexpr int stride = tile_stride<relative_depth>;
  TensorRelativeGradientMemory m;
  m.tiles.own_s = shared;
  m.tiles.own_d = m.tiles.own_s + tensor_rows * stride;
  m.tiles.others = m.tiles.own_d + tensor_rows * stride;
  m.tiles.statistics = reinterpret_cast<float*>(m.tiles.others + 4 * tensor_others * stride);
  m.relative = relative_memory(m.tiles.statistics + 4 * tensor_others);
  m.starts = reinterpret_cast<int*>(m.relative.slots + relative_ring);
  return m;
}

// P and dS of a stage.
template <DType dtype, bool of_keys>
STW_DEVICE void differentiate_stage(const AttentionArgs& args, const TensorGradientBlock& b,
                                    const Segment& segment, const TensorStage& stage,
                                    const TensorStatistics& own_statistics, const float* other_lse,
                                    OtherScores& s, OtherScores& d) {
  const DocumentRule<int> rule = segment.rule;
  const float factor = args.scale * log2_of_e;
  const int warp_row = b.first + row_of_warp(), begin = rule.begin - stage.at, end = rule.end - stage.at;
  int ends[2];
  STW_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int own_row = warp_row + accumulator_row(2 * half);
    ends[half] = own_row >= segment.begin && own_row < segment.end ? end : begin;
  }
  const auto is_visible = [&](int half, int other) { return other >= begin && other < ends[half]; };
  if (args.dropout > 0) {
    const Dropout dropout = dropout_of(args.dropout, args.stream, *args.state, b.sample);
    const uint32_t kept = kept_of_stage<of_keys>(dropout, b, stage, warp_row);
    differentiate<of_keys>(s, d, factor, own_statistics, other_lse, is_visible,
                           [&](int i) { return (kept >> i & 1u) != 0 ? dropout.kept_scale : 0.0f; });
  } else if (end >= tensor_others && warp_row >= segment.begin && warp_row + 15 < segment.end) {
    differentiate<of_keys>(
        s, d, factor, own_statistics, other_lse, [](int, int) { return true; }, [](int) { return 1.0f; });
  } else {
    differentiate<of_keys>(s, d, factor, own_statistics, other_lse, is_visible, [](int) { return 1.0f; });
  }
}

// The table's sums of a stage: adds them up, and stores those of the columns that no later stage has.
template <DType dtype, bool of_keys>
STW_DEVICE void sum_stage(TableSums& sums, int& turn, int column, bool is_last,
                          const TensorRelativeGradientMemory& memory, TablePart& part) {
  __syncthreads();  // All warps have stored their dS.
  for_turn(turn, [&](auto now) {
    add_own_rows<dtype, now.value>(sums, memory.relative, memory.tiles.own_s);
    take_strips<now.value>(sums, memory.relative);
  });
  turn = next_turn(turn);
  flush_columns<of_keys>(column, memory.relative, memory.starts, part);
  if (!is_last) return;
  STW_ROLLED
  for (int more = relative_others; more < relative_columns; more += relative_others) {
    __syncthreads();
    for_turn(turn, [&](auto now) { take_strips<now.value>(sums, memory.relative); });
    turn = next_turn(turn);
    flush_columns<of_keys>(column + more, memory.relative, memory.starts, part);
  }
}

// The gradients of a tile's rows that belong to one document.
template <DType dtype, bool of_keys, bool trained>
STW_DEVICE void relative_segment_gradient(const AttentionArgs& args, const QueryStatistics& all_statistics,
                                          const TensorGradientBlock& b, const Segment& segment,
                                          const TensorRelativeGradientMemory& memory, TablePart& part) {
  constexpr int depth = relative_depth, tile = tensor_others * tile_stride<depth>;
  const TensorOthers all = {segment.rule.begin, segment.rule.end, b.first_head + 1};
  const TensorRelativeTable table = tensor_relative_table<of_keys>(args, b.own_head, b.first, all.first);
  copy_own_rows<depth, of_keys>(args, b, segment, memory.tiles);
  copy_columns<of_keys>(table, 0, relative_columns, args.head_dim, memory.relative);
  TensorStage stage = {b.first_head, all.first, 0};
  copy_stage<depth, of_keys>(args, all_statistics, b, all, stage, memory.tiles);
  TensorStatistics own_statistics = {};
  if constexpr (!of_keys)
    own_statistics = compute_own_statistics<dtype, depth>(args, all_statistics, b, segment, memory.tiles);
  float sum_s[depth / 8][4] = {};                // dQ or dK.
  float sum_d[of_keys ? depth / 8 : 1][4] = {};  // dV.
  TableSums sums = {};
  int turn = 0;
  const int tile_row = row_of_warp();
  for (; stage.head < all.heads_end; stage = next_stage(stage, all)) {
    wait_copies<0>();
    __syncthreads();  // This stage has arrived, and all threads have finished with the one before.
    const TensorStage next = next_stage(stage, all);
    const bool is_last = next.head == all.heads_end;
    const int column = stage.at - all.first;
    if (!is_last) {
      copy_columns<of_keys>(table, column + relative_columns, column + relative_ring, args.head_dim,
                            memory.relative);
      copy_stage<depth, of_keys>(args, all_statistics, b, all, next, memory.tiles);
    }
    const uint16_t* const other_s = memory.tiles.others + stage.parity * 2 * tile;
    OtherScores s, d = {};
    load_biases<dtype>(s, table, memory.relative, column, other_s, [&](uint32_t(&a)[4], int k) {
      load_left<depth>(a, memory.tiles.own_s, tile_row, 16 * k);
    });
    multiply_others<dtype, depth>(s, d, memory.tiles, other_s, other_s + tile);
    differentiate_stage<dtype, of_keys>(args, b, segment, stage, own_statistics,
                                        memory.tiles.statistics + stage.parity * 2 * tensor_others, s, d);
    if (table.own != nullptr) store_own_gradients<dtype>(d, memory.relative);
    add_gradients<dtype, depth, of_keys>(sum_s, sum_d, s, d, other_s, other_s + tile);
    if (table.own == nullptr) continue;
    add_table_rows<dtype>(sum_s, memory.relative, column);
    if constexpr (trained) sum_stage<dtype, of_keys>(sums, turn, column, is_last, memory, part);
  }
  store_gradients<dtype, depth, of_keys>(args, b, segment, b.first + tile_row, sum_s, sum_d);
  end_tile(part);
  __syncthreads();  // All threads have finished with the tiles.
}

// The tiles of a block: one, or every relative_sum_parts-th of the head, if the table is trained.
template <DType dtype, bool of_keys, bool trained>
static __global__ void __launch_bounds__(tensor_threads, 2)
    tensor_relative_gradient_kernel(AttentionArgs args, QueryStatistics all_statistics, float* sums) {
  STW_DYNAMIC_SHARED(uint16_t, shared);
  const TensorRelativeGradientMemory memory = relative_gradient_memory(shared);
  TensorGradientBlock b = tensor_gradient_block<of_keys>(args);
  const Documents documents = documents_of(args, b.sample);
  const RelativePositions& r = args.relative;
  const bool has_part = of_keys ? r.has_queries : r.has_keys;
  const int parts = cuda_workspace::relative_sum_parts(b.rows);
  int step = b.count;
  TablePart part = {};
  if constexpr (trained) {
    const int64_t heads = args.samples * args.query_heads, own = blockIdx.x / heads,
                  kinds = r.has_keys && r.has_queries ? 2 : 1, kind = of_keys && r.has_keys ? 1 : 0;
    part.data = sums + ((blockIdx.x % heads * kinds + kind) * parts + own) * r.table_rows * relative_depth;
    b.first = static_cast<int>(own) * tensor_rows;
    step = parts * tensor_rows;
  }
  for (; b.first < b.count; b.first += step) {
    const int tile_end = b.first + tensor_rows < b.count ? b.first + tensor_rows : b.count;
    Segment segment;
    for (int next = b.first; next < tile_end; next = segment.end) {
      segment.end = tile_end;
      const int begin = next;
      next = end_of_single_rows(documents, begin, tile_end, b.count);
      differentiate_single_rows<dtype, of_keys, true>(args, b.sample, b.own_head,
                                                      {b.first + row_of_warp(), begin, next});
      if (next == tile_end) continue;
      segment = segment_at(args, documents, next, tile_end, b.count, 0);
      relative_segment_gradient<dtype, of_keys, trained>(args, all_statistics, b, segment, memory, part);
    }
  }
  if (trained && has_part) clear_other_rows(part, r.table_rows);
}

void tensor_relative_gradient(const Launch& l, const AttentionArgs& args, const QueryStatistics& statistics,
                              float* sums) {
  assert((reinterpret_cast<uintptr_t>(args.qkv.data) | reinterpret_cast<uintptr_t>(args.dout.data) |
          reinterpret_cast<uintptr_t>(args.dqkv.data) | reinterpret_cast<uintptr_t>(args.out.data) |
          reinterpret_cast<uintptr_t>(args.relative.table.data)) %
             16 ==
         0);
  const bool trained = args.relative.gradient != nullptr;
  const int64_t heads = args.samples * args.query_heads;
  const int parts = cuda_workspace::relative_sum_parts(args.rows_per_sample);
  const int64_t of_head = trained ? parts : ceil_div(args.rows_per_sample, tensor_rows);
  const auto launch_both = [&](auto of_queries, auto of_keys) {
    for (const auto kernel : {of_queries, of_keys})
      launch(l, kernel, static_cast<unsigned>(heads * of_head), tensor_threads, relative_gradient_bytes, args,
             statistics, sums);
  };
  const auto launch_for = [&](auto stored) {
    if (trained)
      launch_both(tensor_relative_gradient_kernel<stored.dtype, false, true>,
                  tensor_relative_gradient_kernel<stored.dtype, true, true>);
    else
      launch_both(tensor_relative_gradient_kernel<stored.dtype, false, false>,
                  tensor_relative_gradient_kernel<stored.dtype, true, false>);
  };
  if (args.qkv.dtype == DType::f16) launch_for(StoredAs<DType::f16>{});
  else launch_for(StoredAs<DType::bf16>{});
  if (trained) add_relative_sums(l, args, sums, parts, args.scale);
}

}  // namespace stw::kernels::cuda
