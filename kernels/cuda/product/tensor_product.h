// Tiles of matrix products (tile_product.h) by mma.sync, which every card from compute capability 8.0 on has.
//
// In a large tile, a warp computes a quarter, 64 × 64. A step of the four warps reads 16 KiB of shared memory
// in 128 cycles, for 128 tensor-core instructions, which take 200 cycles on an H100. Eight parts of 64 × 32,
// as with totals, read 24 KiB. A slice is about 195 instructions of a warp, 64 of them products. Data that
// are contiguous along the tile's edge are transposed by ldmatrix.
#pragma once
#include "kernels/cuda/product/tile_product.h"

namespace stw::kernels::cuda {

// The places of a warp's fragments in a slice. A fragment is 16 rows of a, or 16 columns of b, for one of the
// two steps of the slice; the first one begins at row or column `first`. If edges are powers of two, the
// place of any fragment and step follows from the first place by an xor and an addition of constants.
template <class T, int edge, int fragments, Contiguous along>
struct FragmentPlaces {
  static constexpr bool from_first = along == Contiguous::depth || (edge & (edge - 1)) == 0;
  int at[from_first ? 1 : fragments];  // Places of this lane's row of ldmatrix.
  // upper_o: lanes of the second eight rows or columns. upper_k: lanes of the second eight of k.
  __device__ FragmentPlaces(int first, int upper_o, int upper_k) {
    const int lane = static_cast<int>(threadIdx.x % 8);
    if constexpr (along == Contiguous::depth)
      at[0] = T::template place_of<edge, along>(first + upper_o * 8 + lane, upper_k);
    else STW_UNROLL
    for (int i = 0; i < (from_first ? 1 : fragments); ++i)
      at[i] = T::template place_of<edge, along>(upper_k * 8 + lane, first / 8 + upper_o + 2 * i);
  }
  __device__ void load(uint32_t (&r)[4], const uint16_t* slice, int i, int step) const {
    if constexpr (along == Contiguous::depth)
      load_matrix4(r, slice + (at[0] ^ 2 * chunk * step) + i * 16 * T::slice_depth);
    else
      load_matrix4_transposed(
          r, slice + (from_first ? at[0] ^ 2 * chunk * i : at[i]) + step * step_depth * edge);
  }
};

template <class T, DType dtype, Contiguous a_along, Contiguous b_along>
struct WarpMultiply {
  static constexpr bool asynchronous = false;
  STW_CLASS_DEVICE float add(float x, float y) { return x + y; }
  static __device__ void store_inside(float (&sum)[T::fragments_m][T::fragments_n][4], const Product& out,
                                      const Tile& tile, uint16_t* slices, int thread) {
    store_halves_inside<T, dtype>(sum, out, tile, slices, thread);
  }
  FragmentPlaces<T, T::edge_m, T::fragments_m, a_along> places_a;
  FragmentPlaces<T, T::edge_n, T::fragments_n / 2, b_along> places_b;
  explicit __device__ WarpMultiply(int thread)
      : places_a(thread / 32 / T::warps_n * T::warp_m, thread / 8 % 2, thread / 16 % 2),
        places_b(thread / 32 % T::warps_n * T::warp_n, thread / 16 % 2, thread / 8 % 2) {}

  // Calls `copy`, which starts to load another slice, while products run.
  template <class Copy>
  __device__ void operator()(float (&sum)[T::fragments_m][T::fragments_n][4], const uint16_t* a,
                             const uint16_t* b, const Copy& copy) const {
    static_assert(T::slice_steps == 2);
    Fragments first, second;
    load(first, a, b, 0);
    multiply_row(sum, first, 0);
    load(second, a, b, 1);
    STW_UNROLL
    for (int i = 1; i < T::fragments_m; ++i) multiply_row(sum, first, i);
    copy();
    STW_UNROLL
    for (int i = 0; i < T::fragments_m; ++i) multiply_row(sum, second, i);
  }

 private:
  struct Fragments {
    uint32_t a[T::fragments_m][4], b[T::fragments_n][2];
  };  // The fragments of a step.
  __device__ void load(Fragments& f, const uint16_t* a, const uint16_t* b, int step) const {
    STW_UNROLL
    for (int i = 0; i < T::fragments_m; ++i) places_a.load(f.a[i], a, i, step);
    STW_UNROLL
    for (int j = 0; j < T::fragments_n; j += 2) {
      uint32_t r[4];
      places_b.load(r, b, j / 2, step);
      f.b[j][0] = r[0], f.b[j][1] = r[1], f.b[j + 1][0] = r[2], f.b[j + 1][1] = r[3];
    }
  }
  static __device__ void multiply_row(float (&sum)[T::fragments_m][T::fragments_n][4], const Fragments& f,
                                      int i) {
    STW_UNROLL
    for (int j = 0; j < T::fragments_n; ++j) multiply_add<dtype>(sum[i][j], f.a[i], f.b[j]);
  }
};

template <int edge, int n_warps, int slices, int blocks_together, int tile_number>
struct WarpTiles : Tiles<edge, edge, 2, n_warps, 2, slices, blocks_together> {
  static constexpr int number = tile_number;  // In developer.h.
  static constexpr size_t shared_bytes = WarpTiles::slices_bytes;
  STW_CLASS_DEVICE uint16_t* first_slice(uint16_t* memory) { return memory; }
  // The swizzle puts chunk c of eight lines into different banks. Eight lines are 512 bytes if contiguous
  // along k, otherwise at least 1024.
  template <int, Contiguous along>
  STW_CLASS_DEVICE int place_of(int line, int c) {
    if constexpr (along == Contiguous::depth)
      return line * WarpTiles::slice_depth + (c ^ line / 2 % 4) * chunk;
    else return line * edge + (c ^ line % 8) * chunk;
  }
  template <DType dtype, Contiguous a_along, Contiguous b_along>
  using Multiply = WarpMultiply<WarpTiles, dtype, a_along, b_along>;
};
// Three stages are 48 KiB of shared memory: two blocks run together even on cards of 100 KiB a multiprocessor
// (sm_86, sm_89).
using LargeWarpTiles = WarpTiles<128, 2, 3, 2, mma_128x128>;
// With totals, a warp has registers for 64 × 32 sums and their totals, and a multiprocessor has registers for
// one block.
using LargeWarpTotals = WarpTiles<128, 4, 4, 1, mma_128x128>;
using SmallWarpTiles = WarpTiles<64, 2, 3, 4, mma_64x64>;

// For weight gradients, which have few tiles and a long k. k is not split, so some SMs have a tile all the
// time and others have none. For 768 × 3072 (GPT-2) there are 144 large tiles, or 576 small ones that read
// 2.4 GB from the second-level cache at 16384 tokens. There are 128 tiles of 96 × 192 for the 132 SMs of an
// H100, and they read 1.2 GB. An SM has only one such tile, so eight warps compute 48 × 48 each: a step reads
// 24 KiB of shared memory in 192 cycles, for 144 tensor-core instructions, which take 229 cycles on an H100.
struct GradientWarpTiles : Tiles<96, 192, 2, 4, 2, 4, 1> {
  static constexpr int number = mma_96x192;
  // Large enough for all sums at once (Rows).
  static constexpr size_t slices_bytes = size_t{edge_m} * (edge_n + 8) * sizeof(float),
                          shared_bytes = slices_bytes;
  static_assert(slices_bytes >= Tiles::slices_bytes);
  STW_CLASS_DEVICE uint16_t* first_slice(uint16_t* memory) { return memory; }
  // A swizzle for an edge of 96: two lines cover the banks three times, and a line has three times four
  // chunks.
  template <int edge, Contiguous along>
  STW_CLASS_DEVICE int place_of(int line, int c) {
    static_assert(along == Contiguous::output && (edge % 64 == 0 || edge % 64 == 32));
    return line * edge + (c ^ (edge % 64 == 0 ? line % 8 : line / 2 % 4)) * chunk;
  }
  template <DType dtype, Contiguous a_along, Contiguous b_along>
  using Multiply = WarpMultiply<GradientWarpTiles, dtype, a_along, b_along>;
};

// Estimated cycles of a step of all tiles. Assumes that tensor cores do 1024 multiply-adds a cycle (an A100;
// an H100 does 1290). Also assumes that the second-level cache delivers 64 bytes a cycle to a multiprocessor
// that reads alone, and about 40 bytes a cycle to each if all read. No bit depends on it.
template <class T>
double step_cycles(const Products& all, int64_t multiprocessors) {
  constexpr double arithmetic = T::edge_m * T::edge_n * step_depth / 1024.0,
                   bytes = (T::edge_m + T::edge_n) * step_depth * sizeof(uint16_t);
  const int64_t tiles = tiles_of(all, T::edge_m, T::edge_n);
  const double of_one = static_cast<double>(ceil_div(tiles, multiprocessors)) *
                        (arithmetic > bytes / 64 ? arithmetic : bytes / 64);
  const double of_cache = static_cast<double>(tiles) * bytes / (40.0 * static_cast<double>(multiprocessors));
  return of_one > of_cache ? of_one : of_cache;
}

template <Contiguous a_along, Contiguous b_along, Summing summing, DType dtype, class Epilogue = StoredSums>
void tensor_product_of(const Launch& l, const Products& all, const Epilogue& epilogue = {}) {
  using Large = Chosen<summing == Summing::one_chain, LargeWarpTiles, LargeWarpTotals>;
  const auto tiles_in_all = [&](auto t) {
    using T = decltype(t);
    if constexpr (Epilogue::triangle) return tiles_of_triangle(tiles_in(all.product[0].m, T::edge_m));
    else return tiles_of(all, T::edge_m, T::edge_n);
  };
  const auto in_tile = [&](auto t) {
    launch_tiles<decltype(t), dtype, a_along, b_along, summing>(l, tiles_in_all(t), all, epilogue);
  };
  const bool are_enough = tiles_in_all(Large{}) >= enough_tiles;
  if constexpr (counts_tokens<a_along, b_along> && summing == Summing::totals && Epilogue::stored) {
    const int multiprocessors = multiprocessors_of_device();
    const bool gradient = step_cycles<GradientWarpTiles>(all, multiprocessors) <
                          step_cycles<SmallWarpTiles>(all, multiprocessors);
    TilesToChoose<Large, GradientWarpTiles, SmallWarpTiles>::choose(are_enough ? mma_128x128
                                                                    : gradient ? mma_96x192
                                                                               : mma_64x64,
                                                                    in_tile);
  } else {
    TilesToChoose<Large, SmallWarpTiles>::choose(are_enough ? mma_128x128 : mma_64x64, in_tile);
  }
}
template <Contiguous a_along, Contiguous b_along, bool rounded>
void tensor_product(const Launch& l, const Products& all) {
  for_summing<a_along, b_along, rounded>(all, [&](auto summing, const Products& with_chains) {
    if (all.a == DType::bf16) tensor_product_of<a_along, b_along, summing.value, DType::bf16>(l, with_chains);
    else tensor_product_of<a_along, b_along, summing.value, DType::f16>(l, with_chains);
  });
}

}  // namespace stw::kernels::cuda
