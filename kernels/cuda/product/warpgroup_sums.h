// How a warp of a warpgroup stores its sums of a matrix product.
#pragma once
#include "kernels/cuda/product/tile_sums.h"
#include "kernels/cuda/warpgroup.h"

namespace stw::kernels::cuda {

// Stores 16-bit numbers in a tile inside the output. They pass through the warp's own part of the memory of
// the slices, whose rows are placed so that eight of them lie in different banks. A warp has 16 whole rows of
// the tile and stores lines of 512 bytes, or two lines of 256. This takes a fifth of the instructions of
// transposing in quads (store_halves_inside).
template <class T, DType dtype, class Multiply>
STW_DEVICE void store_rows_inside(const float (&sum)[1][T::fragments_n][4], const Product& out,
                                  const Tile& tile, uint16_t* shared, int thread) {
  static_assert(T::warps_n == 1 && T::warp_m == 16);
  // `lines`: lines that a warp stores at once.
  constexpr int stride = T::edge_n + chunk, line_chunks = T::edge_n / chunk, lines = 32 / line_chunks;
  static_assert(T::threads / 32 * 16 * stride * sizeof(uint16_t) <= T::slices_bytes);
  uint32_t bias[T::fragments_n];
  load_bias<T>(bias, out, tile, thread);
  __syncthreads();  // All threads have finished with the slices.
  const int lane = thread % 32;
  uint16_t* const rows = shared + thread / 32 * 16 * stride;
  STW_UNROLL
  for (int j = 0; j < T::fragments_n; j += 2) {
    uint32_t words[4];
    STW_UNROLL
    for (int k = 0; k < 4; ++k) {  // The first and second eight rows, then those of the second fragment.
      const float* const pair = &sum[0][j + k / 2][k % 2 * 2];
      const float2 b = unpack_halves<dtype>(bias[j + k / 2]);
      words[k] = pack_halves<dtype>(Multiply::add(pair[0], b.x), Multiply::add(pair[1], b.y));
    }
    store_matrix4(rows + lane % 16 * stride + lane / 16 * chunk + j * chunk, words);
  }
  __syncwarp();
  uint16_t* const from = rows + lane / line_chunks * stride + lane % line_chunks * chunk;
  const int64_t at = (tile.row + row_of<T>(thread / 32 * 32) + lane / line_chunks) * out.c_stride +
                     tile.column + lane % line_chunks * chunk;
  const auto store = [&](void* to, const auto& of_place) {
    STW_UNROLL
    for (int line = 0; line < 16; line += lines)
      store_global16(static_cast<uint16_t*>(to) + at + line * out.c_stride,
                     of_place(line, load_vector<uint4>(from + line * stride)));
  };
  if (out.activated != nullptr) {
    if (out.c != nullptr) store(out.c, [](int, uint4 v) { return v; });
    return store(out.activated, [](int, uint4 v) {
      const auto gelu = [](uint32_t x) {
        const float2 y = gelu_of_stored<dtype>(x);
        return pack_halves<dtype>(y.x, y.y);
      };
      return uint4{gelu(v.x), gelu(v.y), gelu(v.z), gelu(v.w)};
    });
  }
  if (out.residual == nullptr && out.before_gelu == nullptr)
    return store(out.c, [](int, uint4 v) { return v; });
  const bool is_sum = out.residual != nullptr;
  const auto* const other = static_cast<const uint16_t*>(is_sum ? out.residual : out.before_gelu);
  uint4 before[16 / lines];
  STW_UNROLL
  for (int line = 0; line < 16; line += lines)
    before[line / lines] = load_vector<uint4>(other + at + line * out.c_stride);
  const auto store_with = [&](const auto& of_pair) {
    store(out.c, [&](int line, uint4 v) {
      const uint4 b = before[line / lines];
      const auto word = [&](uint32_t x, uint32_t y) {
        const float2 s = of_pair(x, y);
        return pack_halves<dtype>(s.x, s.y);
      };
      const uint4 words = {word(b.x, v.x), word(b.y, v.y), word(b.z, v.z), word(b.w, v.w)};
      // The lane that read the words stores them.
      if (out.column_sums != nullptr) store_vector(from + line * stride, words);
      return words;
    });
  };
  if (is_sum) store_with([](uint32_t x, uint32_t y) { return added_as_stored<dtype>(x, y); });
  else store_with([](uint32_t x, uint32_t y) { return times_slope<dtype>(x, y); });
  if (out.column_sums != nullptr) sum_columns_inside<T, dtype>(shared, stride, out, tile, thread);
}

}  // namespace stw::kernels::cuda
