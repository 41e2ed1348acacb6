// The sums of the gradient of the table of relative positions, on tensor cores:
//
//   dKr = Σ dS·(scale·Q)   dQr = scale·Σ dS·K
//
// The kernels of attention's gradient add them up by the columns of their tiles (tensor_relative_tile.h): a
// column's sum is complete when the tiles have moved on. Then the sums of columns with the same row of the
// table are added, and go to the block's own part of the scratch memory. A block has several tiles of a head,
// one after the other. A last kernel adds the blocks' parts, sample after sample, so no order depends on
// timing or on the batch.
#pragma once
#include "kernels/cuda/attention/tensor_relative_tile.h"

namespace stw::kernels::cuda {

// dS of a warp's own rows, as 16-bit numbers: element (o, column), in the place of its biases. A column is
// counted from the warp's first one.
inline constexpr int own_gradient_stride = own_columns + 8;
static_assert(own_gradient_stride * 2 <= own_bias_stride * 4);
STW_DEVICE uint16_t* own_gradients(const TensorRelativeMemory& memory) {
  return reinterpret_cast<uint16_t*>(memory.own_biases);
}
// Called by whole warps, when the warp has read its biases.
template <DType dtype>
STW_DEVICE void store_own_gradients(const float (&d)[relative_others / 8][4],
                                    const TensorRelativeMemory& memory) {
  uint16_t* const to = own_gradients(memory);
  const int lane = lane_of_warp(), o = accumulator_row(0);
  __syncwarp();
  // Row o has columns [15 - o, 47 - o). The others among the first and the last sixteen are 0.
  STW_UNROLL
  for (int i = 0; i < 2; ++i)
    store_vector(to + lane / 2 * own_gradient_stride + i * relative_others + lane % 2 * 8, uint4{0, 0, 0, 0});
  __syncwarp();
  uint16_t* const own = to + o * (own_gradient_stride - 1) + accumulator_column(0) + 15;
  STW_UNROLL
  for (int n = 0; n < relative_others / 8; ++n) STW_UNROLL
  for (int half = 0; half < 2; ++half) {
    const uint32_t two = pack_halves<dtype>(d[n][2 * half], d[n][2 * half + 1]);
    uint16_t* const at = own + 8 * half * (own_gradient_stride - 1) + 8 * n;
    at[0] = static_cast<uint16_t>(two);
    at[1] = static_cast<uint16_t>(two >> 16);
  }
  __syncwarp();
}

// sum += dS by columns · the table's rows.
template <DType dtype>
STW_DEVICE void add_table_rows(float (&sum)[relative_depth / 8][4], const TensorRelativeMemory& memory,
                               int column) {
  const int lane = lane_of_warp();
  const uint16_t* const gradients = own_gradients(memory) + lane % 16 * own_gradient_stride + lane / 16 * 8;
  STW_UNROLL
  for (int k = 0; k < own_columns / 16; ++k) {
    uint32_t a[4], b[4];
    load_matrix4(a, gradients + 16 * k);
    const uint16_t* const rows = memory.own_ring +
                                 memory.slots[in_ring(column + first_own_column() + 16 * k + lane % 16)] +
                                 lane / 16 * 8;
    STW_UNROLL
    for (int n = 0; n < relative_depth / 16; ++n) {
      load_matrix4_transposed(b, rows + 16 * n);
      multiply_add_two<dtype>(sum[2 * n], sum[2 * n + 1], a, b);
    }
  }
}

// ---- the table's own gradient
// For every strip of 16 columns of the tile, a warp has 16 columns of the head. With each tile, two strips
// are complete and leave, and two new ones take their registers. So the registers of a strip depend on the
// tile's turn: 0, 1 or 2.
inline constexpr int strips = relative_columns / 16, strips_at_once = relative_others / 16,
                     turns = strips / strips_at_once;
using TableSums = float[strips][2][4];
static_assert(tensor_warps * 16 == relative_depth && turns == 3);
template <int turn>
inline constexpr int place_of_strip(int strip) {
  return (strip + strips_at_once * turn) % strips;
}
STW_DEVICE int next_turn(int turn) { return turn == turns - 1 ? 0 : turn + 1; }
template <int n>
struct Turn {
  static constexpr int value = n;
};
// Calls body(Turn<turn>{}).
template <class Body>
STW_DEVICE void for_turn(int turn, const Body& body) {
  if (turn == 0) body(Turn<0>{});
  else if (turn == 1) body(Turn<1>{});
  else body(Turn<2>{});
}
// sums += the block's dS by columns, transposed, · its own rows. Called when all warps have stored theirs.
template <DType dtype, int turn>
STW_DEVICE void add_own_rows(TableSums& sums, const TensorRelativeMemory& memory, const uint16_t* own_rows) {
  const int lane = lane_of_warp(), warp = row_of_warp() / 16;
  const uint16_t* const gradients = own_gradients(memory) - row_of_warp() * own_bias_stride * 2 +
                                    (lane / 16 * 8 + lane % 8) * own_gradient_stride + lane / 8 % 2 * 8;
  STW_UNROLL
  for (int w = 0; w < tensor_warps; ++w) {
    uint32_t b[4];
    load_right_transposed<relative_depth>(b, own_rows, 16 * w, 16 * warp);
    STW_UNROLL
    for (int i = 0; i < own_columns / 16; ++i) {
      const int place = place_of_strip<turn>(tensor_warps - 1 - w + i);
      uint32_t a[4];
      load_matrix4_transposed(a, gradients + w * 16 * own_bias_stride * 2 + 16 * i);
      multiply_add_two<dtype>(sums[place][0], sums[place][1], a, b);
    }
  }
}

// Sums of columns on their way to the scratch memory lie in the place of the other rows' biases.
inline constexpr int table_sum_stride = relative_depth + 8;
static_assert(relative_others * table_sum_stride <= other_biases_size);
// Stores the first two strips there, and sets their registers to 0 for the next strips. Called when all
// threads have read the other rows' biases.
template <int turn>
STW_DEVICE void take_strips(TableSums& sums, const TensorRelativeMemory& memory) {
  float* const to =
      memory.other_biases + accumulator_row(0) * table_sum_stride + row_of_warp() + accumulator_column(0);
  STW_UNROLL
  for (int i = 0; i < strips_at_once; ++i) STW_UNROLL
  for (int n = 0; n < 2; ++n) {
    float(&sum)[4] = sums[place_of_strip<turn>(i)][n];
    STW_UNROLL
    for (int half = 0; half < 2; ++half) {
      store_vector(to + (16 * i + 8 * half) * table_sum_stride + 8 * n,
                   float2{sum[2 * half], sum[2 * half + 1]});
      sum[2 * half] = sum[2 * half + 1] = 0;
    }
  }
}

// A block's part of the scratch memory.
struct TablePart {
  float* data;              // (table_rows, relative_depth).
  int low = 0, high = 0;    // Earlier tiles stored the rows [low, high): one range, as each has distance 0.
  int first = -1, row = 0;  // This tile stored rows first to row, in either order; none if first < 0.
};
// Called when a tile ends.
STW_DEVICE void end_tile(TablePart& part) {
  if (part.first < 0) return;
  const int least = part.first < part.row ? part.first : part.row, most = part.first + part.row - least;
  if (part.high == 0 || least < part.low) part.low = least;
  if (most >= part.high) part.high = most + 1;
  part.first = -1;
}

// Adds the sums that take_strips stored, of 32 columns from `column` on, to the part. of_keys: rows of the
// table grow with the columns; otherwise, they decrease. `starts` (relative_others + 1): where each row
// begins among the columns. Called by all threads.
template <bool of_keys>
STW_DEVICE void flush_columns(int column, const TensorRelativeMemory& memory, int* starts, TablePart& part) {
  const int lane = lane_of_warp(), thread = static_cast<int>(threadIdx.x);
  const int first = memory.rows[in_row_ring(column)],
            last = memory.rows[in_row_ring(column + relative_others - 1)];
  const int count = (of_keys ? last - first : first - last) + 1;
  if (thread < relative_others) {
    const int row = memory.rows[in_row_ring(column + lane)],
              before = memory.rows[in_row_ring(column + lane - 1)];
    if (lane == 0 || row != before) starts[of_keys ? row - first : first - row] = lane;
    if (lane == 0) starts[count] = relative_others;
  }
  __syncthreads();
  constexpr int fours = relative_depth / 4;
  const auto earlier = static_cast<unsigned>(part.high - part.low);
  const int stored = part.first < 0 ? -1 : part.row;
  STW_ROLLED
  for (int n = thread / fours; n < count; n += tensor_threads / fours) {
    const float* from = memory.other_biases + starts[n] * table_sum_stride + thread % fours * 4;
    float4 sum = load_vector<float4>(from);
    for (int more = starts[n + 1] - starts[n] - 1; more > 0; --more) {
      from += table_sum_stride;
      const float4 x = load_vector<float4>(from);
      sum = {sum.x + x.x, sum.y + x.y, sum.z + x.z, sum.w + x.w};
    }
    const int row = of_keys ? first + n : first - n;
    float* const at = part.data + static_cast<int64_t>(row) * relative_depth + thread % fours * 4;
    if (static_cast<unsigned>(row - part.low) < earlier || row == stored) {
      const float4 x = load_vector<float4>(at);
      sum = {x.x + sum.x, x.y + sum.y, x.z + sum.z, x.w + sum.w};
    }
    store_vector(at, sum);
  }
  if (part.first < 0) part.first = first;
  part.row = last;
}

// Stores zeros for the rows that no tile had.
STW_DEVICE void clear_other_rows(const TablePart& part, int64_t table_rows) {
  constexpr int fours = relative_depth / 4;
  for (int64_t i = static_cast<int>(threadIdx.x); i < table_rows * fours; i += tensor_threads)
    if (i / fours < part.low || i / fours >= part.high) store_vector(part.data + 4 * i, float4{0, 0, 0, 0});
}

}  // namespace stw::kernels::cuda
