// The building blocks of attention by warpgroups: tiles of rows in shared memory, in wgmma's layout, and
// their products. A tile consists of parts of 64 columns, whose rows are lines of 128 bytes (matrix_at).
#pragma once
#include "kernels/cuda/attention/tensor_attention.h"
#include "kernels/cuda/warpgroup.h"

namespace stw::kernels::cuda {

inline constexpr int warpgroup_threads = 128, warpgroup_rows = 64;
inline constexpr int line_columns = 64, line_chunks = 8, atom_rows = 8,
                     part_steps = line_columns / product_step;
inline constexpr uint32_t line_bytes = line_columns * sizeof(uint16_t), eight_rows = atom_rows * line_bytes;

// The first tile begins at an atom. Allocate this many extra bytes for the alignment.
inline constexpr size_t aligning_bytes = eight_rows;
STW_DEVICE uint16_t* aligned_tile(uint16_t* memory) {
  return memory + (eight_rows - shared_address(memory) % eight_rows) % eight_rows / sizeof(uint16_t);
}

// Copies rows [first, first + rows) of a head, whose row 0 is at `head`, to a tile, asynchronously. Rows from
// `end` on become 0. Without `unrolled`, the addresses take fewer registers.
template <int threads, int depth, int rows, bool unrolled = true>
STW_DEVICE void copy_rows(const uint16_t* head, int stride, int first, int end, uint16_t* tile) {
  // Rows from one copy of a thread to the next.
  constexpr int chunks = depth / 8, further = threads / chunks;
  static_assert(further % atom_rows == 0 && rows % further == 0);
  const int thread = static_cast<int>(threadIdx.x), c = thread % chunks;
  int row = thread / chunks;
  const uint16_t* p = head + static_cast<int64_t>(first + row) * stride + c * 8;
  uint16_t* to = tile + c / line_chunks * (rows * line_columns) + row * line_columns +
                 (c % line_chunks ^ row % atom_rows) * 8;
  const auto copy = [&](int i) {
    copy_async16_or_zeros(to + i * further * line_columns, p, first + row < end);
    row += further, p += further * stride;
  };
  if constexpr (unrolled) {
    STW_UNROLL
    for (int i = 0; i < rows / further; ++i) copy(i);
  } else {
    STW_ROLLED
    for (int i = 0; i < rows / further; ++i) copy(i);
  }
}

// 64 rows of a tile of `a_rows`, from byte address a on, times all rows of a tile of `b_rows`.
template <DType dtype, int depth, int a_rows, int b_rows>
STW_DEVICE void multiply_rows_async(float (&s)[b_rows / 8][4], uint32_t a, uint32_t b) {
  STW_UNROLL
  for (uint32_t step = 0; step < depth / product_step; ++step) {
    const uint32_t in_line = step % part_steps * product_step * sizeof(uint16_t), part = step / part_steps;
    const uint64_t left = matrix_after(matrix_at(a, 0, eight_rows), part * a_rows * line_bytes + in_line);
    const uint64_t right = matrix_after(matrix_at(b, 0, eight_rows), part * b_rows * line_bytes + in_line);
    if (step == 0) multiply_add_async<dtype, false, false, false>(s, left, right);
    else multiply_add_async<dtype, false, false>(s, left, right);
  }
}
// sum (64, depth) += p (64, b_rows) · tile b (b_rows, depth). A warp has its rows of p in registers.
template <DType dtype, int depth, int b_rows>
STW_DEVICE void multiply_columns_async(float (&sum)[depth / 8][4],
                                       const uint32_t (&p)[b_rows / product_step][4], uint32_t b) {
  STW_UNROLL
  for (uint32_t step = 0; step < b_rows / product_step; ++step)
    multiply_add_async<dtype, true>(
        sum, p[step],
        matrix_after(matrix_at(b, b_rows * line_bytes, eight_rows), step * product_step * line_bytes));
}

// The left operand, as in load_left: 16 columns from 16·step on and 16 rows from `row` on of a tile of `rows`
// rows.
template <int rows>
STW_DEVICE void load_left_of_lines(uint32_t (&a)[4], const uint16_t* tile, int row, int step) {
  const int l = lane_of_warp(), r = row + l % 16, chunk = step % part_steps * 2 + l / 16;
  load_matrix4(
      a, tile + step / part_steps * (rows * line_columns) + r * line_columns + (chunk ^ r % atom_rows) * 8);
}

// Rounds accumulators; they become the left operand of the second product.
template <DType dtype, int fragments>
STW_DEVICE void as_left_operand(uint32_t (&p)[fragments / 2][4], const float (&s)[fragments][4]) {
  STW_UNROLL
  for (int k = 0; k < fragments / 2; ++k) as_left<dtype>(p[k], s[2 * k], s[2 * k + 1]);
}

// Waits until the copies of all threads have arrived and all threads have finished with the earlier contents.
STW_DEVICE void fence_and_barrier() {
  fence_async_proxy();
  __syncthreads();
}

}  // namespace stw::kernels::cuda
