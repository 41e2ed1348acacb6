// The building blocks of attention on tensor cores: tiles of 16-bit rows in shared memory, and the fragments
// of mma.m16n8k16 that a warp reads from them. A tile has `depth` columns: head_dim rounded up to one of {32,
// 64, 96, 128}; the columns from head_dim on are 0. Its rows are 16 bytes longer, so that the eight rows of a
// fragment's matrix lie in different banks.
#pragma once
#include "kernels/common/math.h"
#include "kernels/common/score_rule.h"
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/random_words.h"

namespace stw::kernels::cuda {

// A warp has 16 of the tile's rows.
inline constexpr int tensor_threads = 128, tensor_warps = 4, tensor_rows = 64;
inline constexpr float log_of_2 = 0.693147181f, lowest = -3.402823466e38f;

// Whether the tensor-core kernels support this attention; otherwise the kernels with the CPU's bits compute
// it. Depends on shapes and types alone, so that the same plan always uses the same kernel.
inline bool tensor_cores_take(const AttentionArgs& args) {
  return args.products != ProductKernels::chain && args.qkv.dtype != DType::f32 &&
         args.out.dtype == args.qkv.dtype && is_tensor_head(args.head_dim);
}
inline bool tensor_cores_take_gradient(const AttentionArgs& args) {
  return tensor_cores_take(args) && args.dout.dtype == args.qkv.dtype && args.dqkv.dtype == args.qkv.dtype;
}
void tensor_attention(const Launch& l, const AttentionArgs& args);
// Statistics of every query, which the gradient of queries stores for the gradient of keys: log2(e)·lse, for
// fast_exp2, and rowsum(dout ∘ out).
struct QueryStatistics {
  float *lse, *dots;
};  // (samples, query_heads, rows_per_sample) each.
void tensor_attention_gradient(const Launch& l, const AttentionArgs& args, const QueryStatistics& statistics);

template <DType t, int n>
struct TensorInstance {
  static constexpr DType dtype = t;
  static constexpr int depth = n;
};
// Calls body(instance) for operands of this type and head_dim.
template <class Body>
void for_tensor_instance(DType dtype, int head_dim, const Body& body) {
  const auto with_depth = [&](auto stored) {
    constexpr DType t = stored.dtype == DType::f16 ? DType::f16 : DType::bf16;
    if (head_dim <= 32) body(TensorInstance<t, 32>{});
    else if (head_dim <= 64) body(TensorInstance<t, 64>{});
    else if (head_dim <= 96) body(TensorInstance<t, 96>{});
    else body(TensorInstance<t, 128>{});
  };
  if (dtype == DType::f16) with_depth(StoredAs<DType::f16>{});
  else with_depth(StoredAs<DType::bf16>{});
}

template <int depth>
inline constexpr int tile_stride = depth + 8;  // Elements.
template <int depth>
inline constexpr size_t tile_bytes(int rows) {
  return static_cast<size_t>(rows) * tile_stride<depth> * 2;
}

// A head's rows: row r starts at element r·stride of data.
struct HalfRows {
  const uint16_t* data;
  int64_t stride;
};
STW_DEVICE HalfRows half_rows(const void* data, int64_t at, int64_t stride) {
  return {static_cast<const uint16_t*>(data) + at, stride};
}

// The documents of a sample: as in AttentionArgs, from the first row of the sample on.
struct Documents {
  const int32_t *positions, *following;
};
STW_DEVICE Documents documents_of(const AttentionArgs& args, int64_t sample) {
  const int64_t first = sample * args.rows_per_sample;
  return {args.position_ids == nullptr ? nullptr : args.position_ids + first,
          args.following == nullptr ? nullptr : args.following + first};
}
// A segment: the rows of a tile that belong to one document, [begin, end), and the rule within that document.
// A block works on one segment after the other. Rows of two documents never share a product: a mask would
// only multiply the other document's values by 0, and 0 · NaN is NaN. Rows of a sample are counted in 32 bits
// to save registers.
struct Segment {
  int begin, end;
  DocumentRule<int> rule;
};
STW_DEVICE Segment segment_at(const AttentionArgs& args, const Documents& documents, int row, int tile_end,
                              int rows, int window) {
  const int end = document_end(documents.positions, documents.following, row, rows);
  const int begin = documents.positions == nullptr ? 0 : row - documents.positions[row];
  return {row, tile_end < end ? tile_end : end, {begin, end, window, args.causal}};
}
// The first row of the document's block that contains `row`. So the blocks of a document do not depend on
// where it begins.
STW_DEVICE int block_with(const DocumentRule<int>& rule, int row, int block) {
  return rule.begin + (row - rule.begin) / block * block;
}

// ALiBi's slope for scores that are not yet multiplied by the scale; 0: none.
STW_DEVICE float unscaled_slope(const AttentionArgs& args, int64_t head) {
  return args.alibi_root == 0 ? 0.0f : alibi_slope(args.alibi_root, args.query_heads, head) / args.scale;
}

// Copies rows [first, first + rows) of a head to a tile, asynchronously. Rows outside [begin, end) become 0.
// Not unrolled, because its addresses would fill the registers.
template <int depth, int rows>
STW_DEVICE void copy_tile(const HalfRows& from, int first, int begin, int end, int head_dim, uint16_t* tile) {
  constexpr int pieces = depth / 8;
  STW_ROLLED
  for (int task = static_cast<int>(threadIdx.x); task < rows * pieces; task += tensor_threads) {
    const int row = task / pieces, column = task % pieces * 8;
    uint16_t* to = tile + row * tile_stride<depth> + column;
    if (first + row >= begin && first + row < end && column < head_dim)
      copy_async16(to, from.data + (first + row) * from.stride + column);
    else store_vector(to, uint4{0, 0, 0, 0});
  }
}

STW_DEVICE int lane_of_warp() { return static_cast<int>(threadIdx.x) % 32; }
// Loads 16 × 16 elements of a tile, from (row, column) on, as a left operand (rows × depth). In the address,
// a lane's own part comes before the part that is constant in unrolled loops, so that the lane's own part is
// computed once.
template <int depth>
STW_DEVICE void load_left(uint32_t (&a)[4], const uint16_t* tile, int row, int column) {
  const int l = lane_of_warp();
  load_matrix4(a, tile + (l % 16 * tile_stride<depth> + l / 16 * 8) + (row * tile_stride<depth> + column));
}
// The same elements as two right operands (depth 16, 8 columns each) whose columns are the tile's rows: b[0],
// b[1] hold its first eight rows, b[2], b[3] the others.
template <int depth>
STW_DEVICE void load_right(uint32_t (&b)[4], const uint16_t* tile, int row, int column) {
  const int l = lane_of_warp();
  load_matrix4(b, tile + ((l / 16 * 8 + l % 8) * tile_stride<depth> + l / 8 % 2 * 8) +
                      (row * tile_stride<depth> + column));
}
// Two right operands whose depth runs along the tile's rows: b[0], b[1] hold its first eight columns, b[2],
// b[3] the others.
template <int depth>
STW_DEVICE void load_right_transposed(uint32_t (&b)[4], const uint16_t* tile, int row, int column) {
  const int l = lane_of_warp();
  load_matrix4_transposed(
      b, tile + (l % 16 * tile_stride<depth> + l / 16 * 8) + (row * tile_stride<depth> + column));
}
// d[0], d[1] (16 × 8 each) += a · the two right operands.
template <DType dtype>
STW_DEVICE void multiply_add_two(float (&d0)[4], float (&d1)[4], const uint32_t (&a)[4],
                                 const uint32_t (&b)[4]) {
  multiply_add<dtype>(d0, a, {b[0], b[1]});
  multiply_add<dtype>(d1, a, {b[2], b[3]});
}
// Rounded accumulators of 16 rows × 16 columns are the left operand of a product over those columns.
template <DType dtype>
STW_DEVICE void as_left(uint32_t (&a)[4], const float (&d0)[4], const float (&d1)[4]) {
  a[0] = pack_halves<dtype>(d0[0], d0[1]);
  a[1] = pack_halves<dtype>(d0[2], d0[3]);
  a[2] = pack_halves<dtype>(d1[0], d1[1]);
  a[3] = pack_halves<dtype>(d1[2], d1[3]);
}
// Row and column of element e of an accumulator, within its 16 rows and 8 columns.
STW_DEVICE int accumulator_row(int e) { return lane_of_warp() / 4 + e / 2 * 8; }
STW_DEVICE int accumulator_column(int e) { return lane_of_warp() % 4 * 2 + e % 2; }

// Adds the bias to scores whose rows are queries from `row` on and whose columns are keys from `other` on.
// of_keys: rows are keys, and columns are queries.
template <bool of_keys, int fragments>
STW_DEVICE void add_bias(float (&s)[fragments][4], float slope, int row, int other) {
  const float sign = of_keys ? -slope : slope;
  STW_UNROLL
  for (int n = 0; n < fragments; ++n) STW_UNROLL
  for (int e = 0; e < 4; ++e)
    s[n][e] = fma1(sign, static_cast<float>(other + 8 * n + accumulator_column(e) - row - accumulator_row(e)),
                   s[n][e]);
}

// Stores 16 rows of accumulators, multiplied by a factor for each half of the rows and rounded, to those of
// rows [row, row + 16) that lie in [begin, end). A quad holds 32 adjacent columns in four accumulators and
// transposes them in groups of eight: a thread stores 16 bytes, a quad whole sectors.
template <DType dtype, int depth>
STW_DEVICE void store_accumulators(const float (&d)[depth / 8][4], const float (&factor)[2], void* data,
                                   int64_t at, int64_t stride, int row, int begin, int end, int head_dim) {
  auto* to = static_cast<uint16_t*>(data) + at;
  STW_UNROLL
  for (int four = 0; four < depth / 8; four += 4) STW_UNROLL
  for (int half = 0; half < 2; ++half) {
    Philox4 words;
    STW_UNROLL
    for (int n = 0; n < 4; ++n)
      words.w[n] =
          pack_halves<dtype>(d[four + n][2 * half] * factor[half], d[four + n][2 * half + 1] * factor[half]);
    words = transposed_in_quad(words);
    const int r = row + accumulator_row(2 * half), column = 8 * (four + lane_of_warp() % 4);
    if (r >= begin && r < end && column < head_dim)
      store_global16(to + r * stride + column, uint4{words.w[0], words.w[1], words.w[2], words.w[3]});
  }
}

// ---- statistics of queries, for the gradient
// Copies the statistics of queries [at, at + others) to shared memory, asynchronously: lse, then dots. Only
// `rows` of them exist; the others become 0.
template <int others>
STW_DEVICE void copy_statistics(const QueryStatistics& from, int64_t at, int rows, float* to) {
  const int thread = static_cast<int>(threadIdx.x), row = thread % others;
  if (thread < 2 * others)
    copy_async4_or_zeros(to + thread, (thread < others ? from.lse : from.dots) + at + row, row < rows);
}
// rowsum(dout ∘ out) of rows lane / 4 and lane / 4 + 8 of a warp's 16. The sum of a row has sixteen lanes,
// like an F16. This thread has lanes 2·(lane % 4), the next one, and the two that are 8 further. The operands
// are 16 columns of dout and of out, as in load_left.
struct RowDots {
  float lanes[2][4];
};
template <DType dtype>
STW_DEVICE void add_products(RowDots& sums, const uint32_t (&dout)[4], const uint32_t (&out)[4]) {
  STW_UNROLL
  for (int i = 0; i < 4; ++i) {
    const float2 x = unpack_halves<dtype>(dout[i]), y = unpack_halves<dtype>(out[i]);
    float* const sum = sums.lanes[i % 2] + i / 2 * 2;
    sum[0] = fma1(x.x, y.x, sum[0]);
    sum[1] = fma1(x.y, y.y, sum[1]);
  }
}
// Adds the lanes as fold() does: lanes i and i + 8, i + 4, i + 2, i + 1. Every thread of the quad gets the
// result.
STW_DEVICE float folded(const float (&lanes)[4]) {
  float even = lanes[0] + lanes[2], odd = lanes[1] + lanes[3];
  STW_UNROLL
  for (int threads = 2; threads > 0; threads /= 2) {
    even = even + __shfl_xor_sync(all_lanes, even, threads);
    odd = odd + __shfl_xor_sync(all_lanes, odd, threads);
  }
  return even + odd;
}
// lse of a quad's two queries; lse begins at query 0 of the head. 0 for queries outside [begin, end).
STW_DEVICE void load_lse(const float* lse, int warp_row, int begin, int end, float (&loaded)[2]) {
  STW_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int row = warp_row + accumulator_row(2 * half);
    loaded[half] = row >= begin && row < end ? lse[row] : 0.0f;
  }
}
// Scales lse, and stores it and the dots for the gradient of keys. Query 0 of the head has number `at`.
STW_DEVICE void share_statistics(const QueryStatistics& to, int64_t at, int warp_row, int begin, int end,
                                 float (&lse)[2], const float (&dots)[2]) {
  STW_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int row = warp_row + accumulator_row(2 * half);
    lse[half] *= log2_of_e;
    if (row < begin || row >= end || lane_of_warp() % 4 != 0) continue;
    to.lse[at + row] = lse[half];
    to.dots[at + row] = dots[half];
  }
}

// ---- dropout
// Bit 4·n + e says whether element e of accumulator n is kept; the accumulators have disjoint columns. An
// element of the probabilities is (head·rows + query)·rows + key. A block of Philox decides four adjacent
// elements, [4·b, 4·b + 4). Each block takes ten rounds. These functions have loops of their own, so that
// their code and registers stay out of the unrolled loops around them.
STW_DEVICE uint32_t kept_of_block(const Dropout& d, int64_t element) {
  const Philox4 r = dropout_words(d, element / 4);
  uint32_t kept = 0;
  STW_UNROLL
  for (int k = 0; k < 4; ++k) kept |= (r.w[k] >= d.threshold ? 1u : 0u) << k;
  return kept;
}
// Draws one block for each element. Used if the groups of four elements of a block do not match those of the
// quad.
template <class Element>
STW_DEVICE uint32_t kept_one_by_one(const Dropout& d, int accumulators, const Element& element_of) {
  uint32_t bits = 0;
  STW_ROLLED
  for (int i = 0; i < 4 * accumulators; ++i) {
    const int64_t element = element_of(i / 4, i % 4);
    bits |= (kept_of_block(d, element) >> element % 4 & 1u) << i;
  }
  return bits;
}
// Rows are queries, 8·n + accumulator_column are keys. In an accumulator, a quad has eight keys of each of
// two rows. These take four blocks, one for each thread of the quad.
STW_DEVICE uint32_t kept_of_queries(const Dropout& d, int accumulators, int64_t rows, int64_t first_row,
                                    int key) {
  const auto element_of = [&](int n, int e) {
    return (first_row + accumulator_row(e)) * rows + key + 8 * n + accumulator_column(e);
  };
  if (rows % 4 != 0 || key % 4 != 0) return kept_one_by_one(d, accumulators, element_of);
  const int lane = lane_of_warp(), in_quad = lane % 4;
  uint32_t bits = 0;
  STW_ROLLED
  for (int n = 0; n < accumulators; ++n) {
    const uint32_t kept =
        kept_of_block(d, (first_row + lane / 4 + in_quad / 2 * 8) * rows + key + 8 * n + in_quad % 2 * 4);
    STW_UNROLL
    for (int half = 0; half < 2; ++half)
      bits |=
          (__shfl_sync(all_lanes, kept, lane - in_quad + 2 * half + in_quad / 2) >> 2 * (in_quad % 2) & 3u)
          << (4 * n + 2 * half);
  }
  return bits;
}
// Rows are keys, columns are queries. Four lanes with adjacent keys need the same four blocks, one for each
// element.
STW_DEVICE uint32_t kept_of_keys(const Dropout& d, int accumulators, int64_t rows, int64_t first_query,
                                 int first_key) {
  const auto element_of = [&](int n, int e) {
    return (first_query + 8 * n + accumulator_column(e)) * rows + first_key + accumulator_row(e);
  };
  if (rows % 4 != 0 || first_key % 4 != 0) return kept_one_by_one(d, accumulators, element_of);
  const int lane = lane_of_warp(), neighbour = lane / 4 % 4;
  uint32_t bits = 0;
  STW_ROLLED
  for (int n = 0; n < accumulators; ++n) {
    const uint32_t kept = kept_of_block(d, element_of(n, neighbour) - neighbour);
    STW_UNROLL
    for (int e = 0; e < 4; ++e)
      bits |= (__shfl_sync(all_lanes, kept, lane + 4 * (e - neighbour)) >> neighbour & 1u) << (4 * n + e);
  }
  return bits;
}

}  // namespace stw::kernels::cuda
