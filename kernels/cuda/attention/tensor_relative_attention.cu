// Attention with relative positions on tensor cores for 16-bit operands. As in tensor_attention.cu, a block
// has 64 queries of one head, 16 a warp. It processes 32 keys at a time. Meanwhile, it copies the next 32
// keys and the further rows of the table that they need (tensor_relative_tile.h).
//
// The bits are not the CPU's. Every run gives the same bits, and a sample's bits depend on that sample alone.
#include "kernels/cuda/attention/tensor_query_tile.h"
#include "kernels/cuda/attention/tensor_relative_tile.h"

namespace stw::kernels::cuda {

// Shared memory: two stages of a tile of keys and a tile of values, then that of relative positions. The
// queries pass through the second stage.
inline constexpr int relative_stage_size = 2 * relative_others * tile_stride<relative_depth>;
inline constexpr size_t relative_forward_bytes =
    2 * relative_stage_size * sizeof(uint16_t) + relative_memory_bytes;
static_assert(relative_forward_bytes <= size_t{99} * 1024);  // The limit of desktop cards.

// Attention of the queries of one document.
template <DType dtype>
STW_DEVICE void attend_relative_segment(const AttentionArgs& args, const TensorQueryBlock& b,
                                        const Segment& segment, uint16_t* stages,
                                        const TensorRelativeMemory& memory) {
  constexpr int depth = relative_depth;
  const DocumentRule<int> rule = segment.rule;
  const int begin = rule.begin, last = rule.end, tile_row = row_of_warp(), warp_row = b.first + tile_row;
  const TensorRelativeTable table = tensor_relative_table<false>(args, b.head, b.first, begin);
  const auto copy_stage = [&](int key, uint16_t* to) {
    copy_tile<depth, relative_others>(b.keys, key, begin, last, args.head_dim, to);
    copy_tile<depth, relative_others>(b.values, key, begin, last, args.head_dim,
                                      to + relative_stage_size / 2);
    commit_copies();
  };
  static_assert(tensor_rows == 2 * relative_others);
  copy_tile<depth, tensor_rows>(b.queries, b.first, segment.begin, segment.end, args.head_dim,
                                stages + relative_stage_size);
  copy_columns<false>(table, 0, relative_columns, args.head_dim, memory);
  copy_stage(begin, stages);
  wait_copies<0>();
  __syncthreads();
  uint32_t q[depth / 16][4];
  STW_UNROLL
  for (int k = 0; k < depth / 16; ++k) load_left<depth>(q[k], stages + relative_stage_size, tile_row, 16 * k);

  const float factor = args.scale * log2_of_e;  // e^(scale·s) = 2^(factor·s).
  float out[depth / 8][4] = {};
  TensorSoftmax running = {{lowest, lowest}, {0, 0}};
  int parity = 0;
  for (int key = begin; key < last; key += relative_others, parity ^= 1) {
    wait_copies<0>();
    __syncthreads();  // This stage has arrived, and all threads have finished with the one before.
    const uint16_t* const keys = stages + parity * relative_stage_size;
    if (key + relative_others < last) {
      const int next = key + relative_others - begin + relative_columns - relative_others;
      copy_columns<false>(table, next, next + relative_others, args.head_dim, memory);
      copy_stage(key + relative_others, stages + (parity ^ 1) * relative_stage_size);
    }
    float s[relative_others / 8][4];
    load_biases<dtype>(s, table, memory, key - begin, keys, [&](uint32_t(&a)[4], int k) {
      STW_UNROLL
      for (int i = 0; i < 4; ++i) a[i] = q[k][i];
    });
    multiply_keys<dtype, depth>(s, q, keys);
    if (key + relative_others > last) mask_scores(s, rule, warp_row, key, last);
    apply_softmax<depth>(s, out, factor, running);
    if (args.dropout > 0) drop_probabilities(s, args, b, warp_row, key);
    multiply_values<dtype, depth>(out, s, keys + relative_stage_size / 2);
  }
  store_rows<dtype, depth>(args, b, segment, warp_row, running, out);
  __syncthreads();  // All threads have finished with the tiles.
}

template <DType dtype>
static __global__ void __launch_bounds__(tensor_threads, 2)
    tensor_relative_attention_kernel(AttentionArgs args) {
  STW_DYNAMIC_SHARED(uint16_t, stages);
  const TensorRelativeMemory memory = relative_memory(stages + 2 * relative_stage_size);
  const TensorQueryBlock b = tensor_query_block(args);
  const Documents documents = documents_of(args, b.sample);
  const int tile_end = b.first + tensor_rows < b.count ? b.first + tensor_rows : b.count;
  Segment segment;
  for (int next = b.first; next < tile_end; next = segment.end) {
    const int begin = next;
    next = end_of_single_rows(documents, begin, tile_end, b.count);
    attend_single_rows<dtype, relative_depth, false, true>(args, b.sample, b.head, b.queries, b.keys,
                                                           b.values, {b.first + row_of_warp(), begin, next});
    if (next == tile_end) return;
    segment = segment_at(args, documents, next, tile_end, b.count, 0);
    attend_relative_segment<dtype>(args, b, segment, stages, memory);
  }
}

void tensor_relative_attention(const Launch& l, const AttentionArgs& args) {
  assert((reinterpret_cast<uintptr_t>(args.qkv.data) | reinterpret_cast<uintptr_t>(args.out.data) |
          reinterpret_cast<uintptr_t>(args.relative.table.data)) %
             16 ==
         0);
  const int64_t blocks = args.samples * args.query_heads * ceil_div(args.rows_per_sample, tensor_rows);
  const auto launch_for = [&](auto stored) {
    launch(l, tensor_relative_attention_kernel<stored.dtype>, static_cast<unsigned>(blocks), tensor_threads,
           relative_forward_bytes, args);
  };
  if (args.qkv.dtype == DType::f16) launch_for(StoredAs<DType::f16>{});
  else launch_for(StoredAs<DType::bf16>{});
}

}  // namespace stw::kernels::cuda
