// Relative positions in attention on tensor cores (RelativePositions). A tile has 64 own rows and 32 other
// rows: queries and keys, or the reverse. The pairs of own row o and other row p with the same p - o have one
// distance, so the tile has 95 distances. They are the columns of the tile: column p - o + 63, of 96. From
// one tile of a block to the next, the columns move on by 32.
//
//   biases of own rows (16 a warp):    own rows · the table's rows for their 48 columns
//   biases of other rows (16 a strip): other rows · the table's rows for their 80 columns
//
// These products lie in shared memory in fp32, and each score gets its two elements from there before the
// product of queries and keys is added to it. So no score and no bias is ever in global memory. The table's
// rows lie in shared memory once, in rings of 128 rows; a table of log buckets has fewer rows than distances.
// The lanes of ldmatrix get their addresses by the row of each column (`slots`).
#pragma once
#include "kernels/cuda/attention/relative_attention.h"
#include "kernels/cuda/attention/single_rows.h"

namespace stw::kernels::cuda {

inline constexpr int relative_depth = 64;  // Columns of tiles. Heads have at most that many.
inline constexpr int relative_others = 32;
inline constexpr int relative_columns = tensor_rows + relative_others;
// Also has the columns that the next tile adds.
inline constexpr int relative_ring = relative_columns + relative_others;
inline constexpr int relative_ring_size = relative_ring * tile_stride<relative_depth>;
// Columns of a warp's own rows, and those of 16 other rows. The strides are 8 more than a multiple of 16. So
// four rows of accumulators lie in different banks.
inline constexpr int own_columns = 16 + relative_others, other_columns = 16 + tensor_rows;
inline constexpr int own_bias_stride = own_columns + 8, other_bias_stride = other_columns + 8;
inline constexpr int own_biases_size = tensor_rows * own_bias_stride,
                     other_biases_size = relative_others * other_bias_stride;
static_assert((relative_ring & (relative_ring - 1)) == 0);

STW_DEVICE int in_ring(int n) { return n & (relative_ring - 1); }
// The rows of columns lie in a longer ring: they are loaded a tile earlier than the table's rows.
inline constexpr int row_ring = 2 * relative_ring;
STW_DEVICE int in_row_ring(int n) { return n & (row_ring - 1); }

// A block's memory for relative positions.
struct TensorRelativeMemory {
  uint16_t *own_ring, *other_ring;  // Rows of the table; row r is at in_ring(r).
  int* rows;                        // (row_ring): the row of each column.
  uint16_t* slots;                  // (relative_ring): where the row of each column lies in the other rings.
  float *own_biases, *other_biases;
};
inline constexpr size_t relative_memory_bytes =
    (2 * relative_ring_size + relative_ring) * sizeof(uint16_t) +
    (row_ring + own_biases_size + other_biases_size) * sizeof(float);
STW_DEVICE TensorRelativeMemory relative_memory(void* from) {
  TensorRelativeMemory m;
  m.own_ring = static_cast<uint16_t*>(from);
  m.other_ring = m.own_ring + relative_ring_size;
  m.own_biases = reinterpret_cast<float*>(m.other_ring + relative_ring_size);
  m.other_biases = m.own_biases + own_biases_size;
  m.own_biases += row_of_warp() * own_bias_stride;
  m.rows = reinterpret_cast<int*>(m.other_biases + other_biases_size);
  m.slots = reinterpret_cast<uint16_t*>(m.rows + row_ring);
  return m;
}

// The table's rows of one head, for the tiles of a block. Column c of the tile whose other rows begin at
// `others` is number others - others_first + c.
struct TensorRelativeTable {
  const uint16_t *own, *other;  // The rows that own rows and other rows are multiplied with. Null: none.
  int64_t stride;
  const int32_t* row_at;  // The row for distance 0; negative indices are valid.
  int limit;              // Distances are at most this.
  int shift;              // Column number + shift = other row - own row.
};
// of_keys: own rows are keys, and other rows are queries.
template <bool of_keys>
STW_DEVICE TensorRelativeTable tensor_relative_table(const AttentionArgs& args, int64_t head, int own_first,
                                                     int others_first) {
  const RelativePositions& r = args.relative;
  const int64_t of_heads = static_cast<int64_t>(args.query_heads) * args.head_dim;
  const auto* const data = static_cast<const uint16_t*>(r.table.data) + head * args.head_dim;
  const uint16_t* const keys = r.has_keys ? data : nullptr;
  const uint16_t* const queries = r.has_queries ? data + (r.has_keys ? of_heads : 0) : nullptr;
  TensorRelativeTable t;
  t.own = of_keys ? queries : keys;
  t.other = of_keys ? keys : queries;
  t.stride = of_heads * (r.has_keys && r.has_queries ? 2 : 1);
  t.limit = static_cast<int>(args.rows_per_sample) - 1;
  t.row_at = r.rows + t.limit;
  t.shift = others_first - own_first - (tensor_rows - 1);
  return t;
}
// The table's row of a column. Columns of distances that no pair has get the row of the nearest distance.
template <bool of_keys>
STW_DEVICE int row_of_column(const TensorRelativeTable& t, int column) {
  int distance = column + t.shift;
  if (distance < -t.limit) distance = -t.limit;
  if (distance > t.limit) distance = t.limit;
  return t.row_at[of_keys ? distance : -distance];
}

// Copies the table's rows of columns [begin, end) to the rings, asynchronously, and loads the numbers of the
// rows of the next 32 columns. Those of columns before `begin` are there, unless begin is 0. Called by all
// threads of the block.
template <bool of_keys>
STW_DEVICE void copy_columns(const TensorRelativeTable& t, int begin, int end, int head_dim,
                             const TensorRelativeMemory& memory) {
  constexpr int pieces = relative_depth / 8, rows_at_once = tensor_threads / pieces;
  static_assert(relative_ring == tensor_threads);
  const int thread = static_cast<int>(threadIdx.x), column = thread % pieces * 8;
  int low, high;  // The new rows.
  if (begin == 0) {
    const int first = row_of_column<of_keys>(t, 0), last = row_of_column<of_keys>(t, end - 1);
    low = of_keys ? first : last, high = (of_keys ? last : first) + 1;
    const int row = row_of_column<of_keys>(t, thread);
    memory.rows[thread] = row;
    memory.slots[thread] = static_cast<uint16_t>(in_ring(row) * tile_stride<relative_depth>);
  } else {
    const int before = memory.rows[in_row_ring(begin - 1)], last = memory.rows[in_row_ring(end - 1)];
    low = of_keys ? before + 1 : last, high = of_keys ? last + 1 : before;
    if (thread < relative_others) {
      memory.slots[in_ring(begin + thread)] = static_cast<uint16_t>(
          in_ring(memory.rows[in_row_ring(begin + thread)]) * tile_stride<relative_depth>);
      memory.rows[in_row_ring(end + thread)] = row_of_column<of_keys>(t, end + thread);
    }
  }
  int row = low + thread / pieces;
  const bool exists = column < head_dim;
  int64_t from = row * t.stride + column;
  STW_ROLLED
  for (; row < high; row += rows_at_once, from += rows_at_once * t.stride) {
    const int to = in_ring(row) * tile_stride<relative_depth> + column;
    if (t.own != nullptr) copy_async16_or_zeros(memory.own_ring + to, t.own + from, exists);
    if (t.other != nullptr) copy_async16_or_zeros(memory.other_ring + to, t.other + from, exists);
  }
}

// The first column of a warp's own rows.
STW_DEVICE int first_own_column() { return tensor_rows - 16 - row_of_warp(); }

// The biases of a warp's own rows: element (o, c), c counted from the warp's first column. load_own(a, k)
// loads the warp's rows as a left operand.
template <DType dtype, class LoadOwn>
STW_DEVICE void store_own_biases(const TensorRelativeMemory& memory, int column, const LoadOwn& load_own) {
  constexpr int groups = own_columns / 16;
  const int lane = lane_of_warp();
  const uint16_t* rows[groups];
  STW_UNROLL
  for (int n = 0; n < groups; ++n)
    rows[n] = memory.own_ring +
              memory.slots[in_ring(column + first_own_column() + 16 * n + lane / 16 * 8 + lane % 8)] +
              lane / 8 % 2 * 8;
  float biases[2 * groups][4] = {};
  STW_UNROLL
  for (int k = 0; k < relative_depth / 16; ++k) {
    uint32_t a[4];
    load_own(a, k);
    STW_UNROLL
    for (int n = 0; n < groups; ++n) {
      uint32_t b[4];
      load_matrix4(b, rows[n] + 16 * k);
      multiply_add_two<dtype>(biases[2 * n], biases[2 * n + 1], a, b);
    }
  }
  float* const to = memory.own_biases + accumulator_row(0) * own_bias_stride + accumulator_column(0);
  STW_UNROLL
  for (int n = 0; n < 2 * groups; ++n) STW_UNROLL
  for (int half = 0; half < 2; ++half)
    store_vector(to + 8 * half * own_bias_stride + 8 * n,
                 float2{biases[n][2 * half], biases[n][2 * half + 1]});
}

// The biases of the other rows: element (p, c), c counted from the first column of the strip of 16 rows that
// has p. Two warps share a strip.
template <DType dtype>
STW_DEVICE void store_other_biases(const TensorRelativeMemory& memory, int column, const uint16_t* others) {
  constexpr int groups = other_columns / 16;  // Each of the two warps has so many groups of 8 columns.
  const int lane = lane_of_warp(), strip = row_of_warp() / 32 * 16,
            from = row_of_warp() / 16 % 2 * 8 * groups;
  const uint16_t* rows[groups];
  STW_UNROLL
  for (int n = 0; n < groups; ++n)
    rows[n] =
        memory.other_ring + memory.slots[in_ring(column + strip + from + 8 * n + lane % 8)] + lane / 8 * 8;
  float biases[groups][4] = {};
  STW_UNROLL
  for (int k = 0; k < relative_depth / 16; k += 2) {
    uint32_t a[2][4];
    load_left<relative_depth>(a[0], others, strip, 16 * k);
    load_left<relative_depth>(a[1], others, strip, 16 * k + 16);
    STW_UNROLL
    for (int n = 0; n < groups; ++n) {
      uint32_t b[4];
      load_matrix4(b, rows[n] + 16 * k);
      multiply_add<dtype>(biases[n], a[0], {b[0], b[1]});
      multiply_add<dtype>(biases[n], a[1], {b[2], b[3]});
    }
  }
  float* const to =
      memory.other_biases + (strip + accumulator_row(0)) * other_bias_stride + from + accumulator_column(0);
  STW_UNROLL
  for (int n = 0; n < groups; ++n) STW_UNROLL
  for (int half = 0; half < 2; ++half)
    store_vector(to + 8 * half * other_bias_stride + 8 * n,
                 float2{biases[n][2 * half], biases[n][2 * half + 1]});
}

// s = the biases of a warp's own rows and the tile's other rows. `column`: the number of the tile's first
// column. Called by all threads of the block. The biases of other rows may be written again after the next
// barrier.
template <DType dtype, class LoadOwn>
STW_DEVICE void load_biases(float (&s)[relative_others / 8][4], const TensorRelativeTable& t,
                            const TensorRelativeMemory& memory, int column, const uint16_t* others,
                            const LoadOwn& load_own) {
  if (t.own != nullptr) store_own_biases<dtype>(memory, column, load_own);
  if (t.other != nullptr) store_other_biases<dtype>(memory, column, others);
  __syncthreads();
  const int o = accumulator_row(0), p = accumulator_column(0);
  const float* const of_own = memory.own_biases + o * (own_bias_stride - 1) + p + 15;
  const float* const of_others =
      memory.other_biases + p * (other_bias_stride + 1) + tensor_rows - 1 - row_of_warp() - o;
  STW_UNROLL
  for (int n = 0; n < relative_others / 8; ++n) STW_UNROLL
  for (int e = 0; e < 4; ++e) {
    const int row = e / 2 * 8, other = 8 * n + e % 2;
    s[n][e] = t.own != nullptr ? of_own[row * (own_bias_stride - 1) + other] : 0.0f;
    if (t.other != nullptr) s[n][e] += of_others[other * other_bias_stride + other % 16 - row];
  }
}

}  // namespace stw::kernels::cuda
