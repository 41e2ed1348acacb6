// Matrix products (tile_product.h) by warpgroups. wgmma reads both factors from shared memory and continues
// to run while the next slice is requested. mma.sync does not; on Hopper it reaches at most 63 % of the peak
// (Luo et al., arXiv:2402.13499).
//
// A warpgroup computes 64 rows of a tile. For the largest tile, 128 × 256, a slice of four steps is 48 KiB
// from the second-level cache and takes the tensor cores 1,024 cycles: 48 bytes a cycle. A slice is 40 KiB in
// 768 cycles for 128 × 192, 32 KiB in 512 cycles for 128 × 128, and 24 KiB in 256 cycles for 64 × 128. The
// last figure is more than that cache delivers to all multiprocessors at once. But a product of few tiles
// leaves multiprocessors idle. The choice of the tile estimates both effects. No bit depends on it, provided
// that 64 × 128, 64 × 192 and 64 × 256 add up a step alike: tools/gpu-check checks that on the device.
//
// With totals (tile_product.h), a thread holds its sums twice. 128 × 256 does not fit then. The other tiles
// take one block of 256 threads a multiprocessor, or two of 128. With 192 columns, a thread has 96 additions
// in four slices, 5 % of the time of their products, and it first waits for its last product. To keep the
// tensor cores busy meanwhile, the second warpgroup of a block is one slice behind the first (`staggered`):
// when one has no products, the other has some.
//
// Each layout and type is instantiated in a file of its own, so that they compile at once.
#pragma once
#include "kernels/cuda/product/tile_product.h"
#include "kernels/cuda/product/warpgroup_product.h"
#include "kernels/cuda/product/warpgroup_sums.h"

namespace stw::kernels::cuda {

inline constexpr int atom_line = 64, atom_lines = 8;  // Elements of 128 bytes; see matrix_at.
inline constexpr uint32_t atom_bytes = atom_lines * atom_line * sizeof(uint16_t);

template <class T, DType dtype, Contiguous a_along, Contiguous b_along>
struct WarpgroupMultiply {
  static constexpr bool asynchronous = true, a_transposed = a_along == Contiguous::output,
                        b_transposed = b_along == Contiguous::output;
  // Bytes of 64 rows or columns of a slice. They are contiguous in memory, whichever way lines run.
  static constexpr uint32_t sixty_four = atom_line * T::slice_depth * sizeof(uint16_t);
  static constexpr uint32_t a_step = (a_transposed ? step_depth * atom_line : step_depth) * sizeof(uint16_t);
  static constexpr uint32_t b_step = (b_transposed ? step_depth * atom_line : step_depth) * sizeof(uint16_t);
  uint32_t first_row_bytes;
  explicit __device__ WarpgroupMultiply(int thread)
      : first_row_bytes(static_cast<uint32_t>(thread) / 128 * sixty_four) {}

  static __device__ void fence_copies() { fence_async_proxy(); }
  template <int groups_left>
  static __device__ void finish() {
    wait_products<groups_left>();
  }

  static __device__ float add(float x, float y) { return volatile_add(x, y); }
  static __device__ void store_inside(const float (&sum)[1][T::fragments_n][4], const Product& out,
                                      const Tile& tile, uint16_t* slices, int thread) {
    store_rows_inside<T, dtype, WarpgroupMultiply>(sum, out, tile, slices, thread);
  }

  template <bool added>
  __device__ void slice(float (&sum)[1][T::fragments_n][4], const uint16_t* a, const uint16_t* b) const {
    begin_products();
    multiply_step<added>(sum, a, b, 0);
    STW_UNROLL
    for (uint32_t step = 1; step < T::slice_steps; ++step) multiply_step<true>(sum, a, b, step);
    commit_products();
  }

 private:
  template <bool added>
  __device__ void multiply_step(float (&sum)[1][T::fragments_n][4], const uint16_t* a, const uint16_t* b,
                                uint32_t step) const {
    const uint64_t rows = matrix_at(shared_address(a) + first_row_bytes, sixty_four, atom_bytes),
                   columns = matrix_at(shared_address(b), sixty_four, atom_bytes);
    multiply_add_async<dtype, a_transposed, b_transposed, added>(sum[0], matrix_after(rows, step * a_step),
                                                                 matrix_after(columns, step * b_step));
  }
};

template <int m, int n, int slices, int blocks_together, int tile_number, bool is_staggered = false>
struct WarpgroupTiles : Tiles<m, n, m / 16, 1, 4, slices, blocks_together> {
  static constexpr int number = tile_number;  // In developer.h.
  static constexpr bool staggered = is_staggered;
  static_assert(!staggered || m == 128);  // Two warpgroups.
  // In the other stages are the slices that a warpgroup may still read.
  static constexpr int ahead = slices - (staggered ? 3 : 2);
  static_assert(ahead > 0);
  // The alignment of the first slice uses up to atom_bytes.
  static constexpr size_t shared_bytes = WarpgroupTiles::slices_bytes + atom_bytes;
  static_assert(WarpgroupTiles::slice_depth == atom_line);
  static __device__ uint16_t* first_slice(uint16_t* memory) {
    return memory + (atom_bytes - shared_address(memory) % atom_bytes) % atom_bytes / sizeof(uint16_t);
  }
  template <int, Contiguous along>
  STW_CLASS_DEVICE int place_of(int line, int c) {
    // `column_elements`: elements of 64 rows or columns.
    constexpr int line_chunks = atom_line / chunk, column_elements = WarpgroupTiles::slice_depth * atom_line;
    if constexpr (along == Contiguous::depth) return line * atom_line + (c ^ line % atom_lines) * chunk;
    else
      return c / line_chunks * column_elements + line * atom_line +
             (c % line_chunks ^ line % atom_lines) * chunk;
  }
  template <DType dtype, Contiguous a_along, Contiguous b_along>
  using Multiply = WarpgroupMultiply<WarpgroupTiles, dtype, a_along, b_along>;
  // The same tile with one block a multiprocessor and `one_block_stages` slices in shared memory.
  template <int one_block_stages>
  using OneBlock = WarpgroupTiles<m, n, one_block_stages, 1, tile_number, staggered>;
};
using Large = WarpgroupTiles<128, 256, 4, 1, wgmma_128x256>;
using Medium = WarpgroupTiles<128, 128, 3, 2, wgmma_128x128>;
using Small = WarpgroupTiles<64, 128, 4, 2, wgmma_64x128>;
// Tiles with totals. Whole warps store rows of 16-bit numbers only if the number of a row's chunks divides
// 32. A row of Wide has 24 chunks, so Wide uses the slower way.
using Wide = WarpgroupTiles<128, 192, 5, 1, wgmma_128x192, true>;
using MediumTotals = WarpgroupTiles<128, 128, 6, 1, wgmma_128x128, true>;

// Estimated cycles of a slice of all tiles on an H100 or H200. Assumes 2048 multiply-adds a cycle in the
// tensor cores. Assumes 64 bytes a cycle from the second-level cache to a multiprocessor that reads alone,
// and about 40 to each if all read. Assumes a latency of about 800 cycles, in which a block has T::ahead
// slices in flight.
template <class T>
double cycles_of(const Products& all, int64_t multiprocessors) {
  constexpr double arithmetic = T::edge_m * T::edge_n * T::slice_depth / 2048.0,
                   bytes = (T::edge_m + T::edge_n) * T::slice_depth * sizeof(uint16_t);
  constexpr double latency = 800.0 / T::ahead;
  const int64_t tiles = tiles_of(all, T::edge_m, T::edge_n);
  const double one = arithmetic > bytes / 64 ? arithmetic : bytes / 64,
               multiprocessors_as_double = static_cast<double>(multiprocessors);
  const double of_all = static_cast<double>(ceil_div(tiles, multiprocessors)) * one;
  const double of_latency = static_cast<double>(ceil_div(tiles, multiprocessors * T::together)) * latency;
  const double of_cache = static_cast<double>(tiles) * bytes / (40.0 * multiprocessors_as_double);
  const double longest = of_all > of_cache ? of_all : of_cache;
  return longest > of_latency ? longest : of_latency;
}

// The number of the tile with the shortest estimated time; of equals, the first.
template <class... T>
int best_of(const Products& all, TilesToChoose<T...>) {
  const int multiprocessors = multiprocessors_of_device();
  int best = -1;
  double fewest = 0;
  const auto consider = [&](int number, double cycles) {
    if (best < 0 || cycles < fewest) best = number, fewest = cycles;
  };
  (consider(T::number, cycles_of<T>(all, multiprocessors)), ...);
  return best;
}
// Rounded totals have no tile of 128 × 192, because rounding would need registers that this tile does not
// have. Products other than weight gradients have no tile of 128 × 128 with totals: a 16-bit output whose k
// is so long that it needs totals is large.
template <Summing summing, bool of_tokens>
using Choice =
    Chosen<summing == Summing::one_chain, TilesToChoose<Large, Medium, Small>,
           Chosen<summing == Summing::rounded, TilesToChoose<MediumTotals, Small>,
                  Chosen<of_tokens, TilesToChoose<Wide, MediumTotals, Small>, TilesToChoose<Wide, Small>>>>;
template <Contiguous a_along, Contiguous b_along, Summing summing, DType dtype>
void product_in_tiles(const Launch& l, const Products& all) {
  constexpr bool of_tokens = counts_tokens<a_along, b_along>;
  using Tiles = Choice<summing, of_tokens>;
  const auto launch_in = [&](auto t) {
    using T = decltype(t);
    launch_tiles<T, dtype, a_along, b_along, summing>(l, tiles_of(all, T::edge_m, T::edge_n), all,
                                                      StoredSums{});
  };
  const int stages = developer_switches().stages;
  Tiles::choose(best_of(all, Tiles{}), [&](auto t) {
    using T = decltype(t);
    if constexpr (of_tokens && summing == Summing::totals) {
      // With at most one tile a multiprocessor, only the block's own slices in flight hide the memory's
      // latency.
      if constexpr (T::number == wgmma_64x128) {
        if (stages == 0 ? tiles_of(all, T::edge_m, T::edge_n) <= multiprocessors_of_device()
                        : stages > T::stages)
          return launch_in(typename T::template OneBlock<6>{});
      } else if constexpr (T::number == wgmma_128x128 && dtype == DType::bf16) {
        // Only when a developer compares four stages with six.
        if (stages > 0 && stages < T::stages) return launch_in(typename T::template OneBlock<4>{});
      }
    }
    launch_in(t);
  });
}

template <Contiguous a_along, Contiguous b_along, bool rounded, DType dtype>
void warpgroup_product_of_type(const Launch& l, const Products& all) {
  for_summing<a_along, b_along, rounded>(all, [&](auto summing, const Products& with_chains) {
    product_in_tiles<a_along, b_along, summing.value, dtype>(l, with_chains);
  });
}

}  // namespace stw::kernels::cuda
