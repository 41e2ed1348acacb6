// Matrix products on the CUDA cores with the CPU's bits. Along k there are chains of at most chain_terms
// fused multiply-adds in fp32, in the order of k from +0. Their results are added in order to the start value
// of an element. Chains restart in every part of a chained product and in every sample (Products::restart).
// So the bits depend neither on tiles nor on the device.
//
// A block of 256 threads computes a tile of the output; a thread has per × per elements of it in registers.
// Slices of `depth` numbers of k go through shared memory, as fp32 and with k outermost, so that a thread
// reads its operands as float4: 16 numbers for 64 multiply-adds. There are two slices: while one is used, the
// next one is loaded into registers. Large tiles are bound by the multiply-adds; small tiles keep more
// multiprocessors busy if the output is small.
//
// A small tile keeps the totals, to which chains are added, in registers. In a large tile, the chains fill
// the registers, so the totals are kept in c, which must be fp32 if there are several chains: 8 bytes of
// memory an element for 256 multiply-adds. `rounded`: totals are rounded at the end of every sample; small
// tiles only.
//
// Slices restart with every chain. After the end of a chain, slices are padded with +0 in a and -0 in b.
// Their product is -0, the only number whose addition changes no number, not even -0.
#pragma once
#include "kernels/cuda/product/product.h"
#include "kernels/cuda/product/round_gradient.h"

namespace stw::kernels::cuda {

struct LargeTile {
  static constexpr int edge = 128, depth = 8, per = 8;
};
struct SmallTile {
  static constexpr int edge = 64, depth = 16, per = 4;
};
static_assert(chain_terms % LargeTile::depth == 0 && chain_terms % SmallTile::depth == 0);
template <class T>
inline constexpr bool holds_totals = T::per == SmallTile::per;
// A slice has four numbers of each operand for each thread. Lines are aligned to 16 bytes, and not 32 banks
// apart.
template <class T>
inline constexpr int slice_line = T::edge + 4;

// The four numbers of a slice that this thread loads: [first, first + 4) of line `line`. A line is a row or
// column of the output, and its numbers follow k; or the reverse.
struct Place4 {
  int line, first;
};
template <class T, Contiguous along>
STW_DEVICE Place4 place4() {
  constexpr int groups = (along == Contiguous::depth ? T::depth : T::edge) / 4;
  const int t = opaque(static_cast<int>(threadIdx.x));  // No addresses are kept during the multiply-adds.
  return {t / groups, t % groups * 4};
}

template <class T, Contiguous along, bool negative_padding>
STW_DEVICE Raw4 load_slice(const void* data, DType t, int64_t stride, int output, int64_t outputs, int k,
                           int64_t depth) {
  const Place4 place = place4<T, along>();
  const int64_t o = output + (along == Contiguous::depth ? place.line : place.first);
  const int64_t d = k + (along == Contiguous::depth ? place.first : place.line);
  // Lines after the end are not read. Outputs after the end are never stored.
  if constexpr (along == Contiguous::depth)
    return load_raw4(data, t, o * stride + d, o < outputs ? four_at_most(depth - d) : 0, negative_padding);
  else return load_raw4(data, t, d * stride + o, d < depth ? four_at_most(outputs - o) : 0, negative_padding);
}
template <class T, Contiguous along>
STW_DEVICE void put_slice(float* slice, Raw4 raw, DType t) {
  const Place4 place = place4<T, along>();
  const Float4 x = floats_of(raw, t);
  if constexpr (along == Contiguous::depth)
    for (int i = 0; i < 4; ++i) slice[(place.first + i) * slice_line<T> + place.line] = x.f[i];
  else store_vector(slice + place.line * slice_line<T> + place.first, float4{x.f[0], x.f[1], x.f[2], x.f[3]});
}

// The first row and column of group g of the groups of four rows and four columns that a thread computes. A
// warp reads four different groups of rows and eight of columns.
template <class T>
STW_DEVICE int group_row(int t, int g) {
  return g * (T::edge / 2) + (t / 64 * 4 + t % 32 / 8) * 4;
}
template <class T>
STW_DEVICE int group_column(int t, int g) {
  return g * (T::edge / 2) + (t / 32 % 2 * 8 + t % 8) * 4;
}

// The sums that a thread computes: those of the chain in progress, and the totals to which chains are added.
template <class T>
struct ChainSums {
  float sum[T::per][T::per];
  float total[holds_totals<T> ? T::per : 1][T::per];
  // Large tiles: the start of the next chain's total; null: +0.
  const void* from;
  DType from_dtype;
};
template <class T>
STW_DEVICE void begin_sums(ChainSums<T>& sums, const Products& all, const Product& out, const Tile& tile) {
  const int thread = static_cast<int>(threadIdx.x);
  STW_UNROLL
  for (int i = 0; i < T::per; ++i) STW_UNROLL
  for (int j = 0; j < T::per; ++j) sums.sum[i][j] = 0.0f;
  if constexpr (holds_totals<T>) {
    STW_UNROLL
    for (int i = 0; i < T::per; ++i) STW_UNROLL
    for (int g = 0; g < T::per / 4; ++g) {
      const int64_t row = tile.row + group_row<T>(thread, i / 4) + i % 4,
                    column = tile.column + group_column<T>(thread, g);
      const Float4 from = load4(out.start, all.start, row * out.c_stride + column,
                                out.start != nullptr && row < out.m ? out.n - column : 0);
      for (int j = 0; j < 4; ++j) sums.total[i][4 * g + j] = from.f[j];
    }
  }
  sums.from = out.start;
  sums.from_dtype = all.start;
}

// The slices of a tile in order, each loaded while the one before it is used.
enum ChainEnd : int { inside, of_chain, of_sample };
struct SliceLoader {
  int current, k, last;           // The product and the place in it of the next slice; the last product.
  int64_t sample_end, chain_end;  // Where the chain and the sample of the next slice end.
  Raw4 next_a, next_b;
  ChainEnd next_ends;
};
STW_DEVICE SliceLoader slice_loader(const Products& all, int product) {
  SliceLoader s;
  s.current = product, s.k = 0;
  s.sample_end = all.restart > 0 ? all.restart - all.first : INT64_MAX;
  s.chain_end = min(s.sample_end, chain_terms);
  s.last = all.chained ? all.count - 1 : s.current;
  s.next_ends = inside;
  return s;
}
// Loads the next slice into registers. False if there is none.
template <class T, Contiguous a_along, Contiguous b_along>
STW_DEVICE bool load_next(SliceLoader& s, const Products& all, const Tile& tile) {
  while (s.k >= all.product[s.current].k) {
    if (s.current == s.last) return false;
    ++s.current, s.k = 0;
    s.chain_end = chain_terms;
  }
  const Product& p = all.product[s.current];
  const int64_t end = min(s.chain_end, p.k);
  s.next_a = load_slice<T, a_along, false>(p.a, all.a, p.a_stride, tile.row, p.m, s.k, end);
  s.next_b = load_slice<T, b_along, true>(p.b, all.b, p.b_stride, tile.column, p.n, s.k, end);
  s.k += T::depth;
  s.next_ends = inside;
  if (s.k >= end) {
    s.k = static_cast<int>(end);
    s.next_ends = end == s.sample_end ? of_sample : of_chain;
    if (end == s.sample_end) s.sample_end += all.restart;
    s.chain_end = min(s.sample_end, end + chain_terms);
  }
  return true;
}

// Adds the products of a slice to the sums. Lines of a and b begin at these addresses.
template <class T>
STW_DEVICE void multiply_slice(float (&sum)[T::per][T::per], const float* a, const float* b) {
  const int thread = static_cast<int>(threadIdx.x);
  STW_UNROLL
  for (int d = 0; d < T::depth; ++d) {
    float x[T::per], y[T::per];
    for (int g = 0; g < T::per / 4; ++g) {
      const float4 v = load_vector<float4>(a + d * slice_line<T> + group_row<T>(thread, g));
      const float4 w = load_vector<float4>(b + d * slice_line<T> + group_column<T>(thread, g));
      x[4 * g] = v.x, x[4 * g + 1] = v.y, x[4 * g + 2] = v.z, x[4 * g + 3] = v.w;
      y[4 * g] = w.x, y[4 * g + 1] = w.y, y[4 * g + 2] = w.z, y[4 * g + 3] = w.w;
    }
    STW_UNROLL
    for (int i = 0; i < T::per; ++i) STW_UNROLL
    for (int j = 0; j < T::per; ++j) sum[i][j] = fma1(x[i], y[j], sum[i][j]);
  }
}

// Rounds the totals at the end of a sample.
template <class T>
STW_DEVICE void round_totals(ChainSums<T>& sums, const Products& all, const Product& out, const Tile& tile,
                             int sample) {
  const GradientRounding rounding = gradient_rounding_of(*all.state, out.stream, sample);
  const int t = opaque(static_cast<int>(threadIdx.x));
  STW_UNROLL
  for (int i = 0; i < T::per; ++i) STW_UNROLL
  for (int g = 0; g < T::per / 4; ++g) {
    const int64_t row = tile.row + group_row<T>(t, i / 4) + i % 4,
                  column = tile.column + group_column<T>(t, g);
    Float4 x;
    for (int j = 0; j < 4; ++j) x.f[j] = sums.total[i][4 * g + j];
    x = rounded4(rounding, row * out.c_stride + column, x);
    for (int j = 0; j < 4; ++j) sums.total[i][4 * g + j] = x.f[j];
  }
}

// The four totals at row i and group g. In a large tile, the chain that has just ended is not yet added.
template <class T>
STW_DEVICE Float4 total_of(const ChainSums<T>& sums, const Product& out, int i, int g, int64_t row,
                           int64_t column) {
  Float4 x;
  if constexpr (holds_totals<T>) {
    for (int j = 0; j < 4; ++j) x.f[j] = sums.total[i][4 * g + j];
  } else {
    x = load4(sums.from, sums.from_dtype, row * out.c_stride + column,
              sums.from != nullptr ? out.n - column : 0);
  }
  return x;
}

// Adds the chain that has ended to the totals.
template <class T>
STW_DEVICE void add_chain(ChainSums<T>& sums, const Product& out, const Tile& tile) {
  const int t = opaque(static_cast<int>(threadIdx.x));
  STW_UNROLL
  for (int i = 0; i < T::per; ++i) STW_UNROLL
  for (int g = 0; g < T::per / 4; ++g) {
    const int64_t row = tile.row + group_row<T>(t, i / 4) + i % 4,
                  column = tile.column + group_column<T>(t, g);
    if constexpr (holds_totals<T>) {
      for (int j = 0; j < 4; ++j)
        sums.total[i][4 * g + j] = sums.total[i][4 * g + j] + sums.sum[i][4 * g + j];
    } else if (row < out.m) {
      Float4 x = total_of(sums, out, i, g, row, column);
      for (int j = 0; j < 4; ++j) x.f[j] = x.f[j] + sums.sum[i][4 * g + j];
      store4(out.c, DType::f32, row * out.c_stride + column, x, out.n - column);
    }
    for (int j = 0; j < 4; ++j) sums.sum[i][4 * g + j] = 0.0f;
  }
  sums.from = out.c;
  sums.from_dtype = DType::f32;
}

// Stores the totals with bias and residual. `has_chain`: a large tile's last chain is not yet added.
template <class T>
STW_DEVICE void store_totals(const ChainSums<T>& sums, const Products& all, const Product& out,
                             const Tile& tile, bool has_chain) {
  const int t = opaque(static_cast<int>(threadIdx.x));
  STW_UNROLL
  for (int g = 0; g < T::per / 4; ++g) {
    const int64_t column = tile.column + group_column<T>(t, g), n = out.n - column;
    const Float4 bias = load4(out.bias, all.bias, column, out.bias != nullptr ? n : 0);
    STW_UNROLL
    for (int i = 0; i < T::per; ++i) {
      const int64_t row = tile.row + group_row<T>(t, i / 4) + i % 4;
      if (row >= out.m) continue;
      Float4 y = total_of(sums, out, i, g, row, column);
      if (!holds_totals<T> && has_chain)
        for (int j = 0; j < 4; ++j) y.f[j] = y.f[j] + sums.sum[i][4 * g + j];
      for (int j = 0; j < 4; ++j) y.f[j] = out.bias != nullptr ? y.f[j] + bias.f[j] : y.f[j];
      if (out.residual != nullptr) {
        const Float4 before = load4(out.residual, all.c, row * out.c_stride + column, n);
        for (int j = 0; j < 4; ++j) y.f[j] = before.f[j] + as_stored(all.c, y.f[j]);
      }
      store4(out.c, all.c, row * out.c_stride + column, y, n);
    }
  }
}

template <class T, Contiguous a_along, Contiguous b_along, bool rounded>
static __global__ void __launch_bounds__(block_threads, 2) chain_product_kernel(Products all) {
  constexpr int slice = T::depth * slice_line<T>;
  STW_SHARED(float4, shared, slice);  // Two slices of each operand.
  float* const slices = reinterpret_cast<float*>(shared);
  const Tile tile = tile_of_block(all, T::edge, T::edge);
  const Product& out = all.product[tile.product];
  static_assert(!rounded || holds_totals<T>);
  ChainSums<T> sums;
  begin_sums(sums, all, out, tile);
  SliceLoader loader = slice_loader(all, tile.product);
  const auto put_next = [&](int at) {
    put_slice<T, a_along>(slices + at * slice, loader.next_a, all.a);
    put_slice<T, b_along>(slices + (2 + at) * slice, loader.next_b, all.b);
    __syncthreads();
  };
  int sample = 0;
  bool more = load_next<T, a_along, b_along>(loader, all, tile);
  const bool has_chain = more;
  if (more) put_next(0);
  for (int at = 0; more; at ^= 1) {
    const ChainEnd ends = loader.next_ends;
    more = load_next<T, a_along, b_along>(loader, all, tile);
    multiply_slice<T>(sums.sum, slices + at * slice, slices + (2 + at) * slice);
    if (more) put_next(at ^ 1);  // All threads have finished with that slice since the last barrier.
    // A large tile's last chain is added below.
    if (ends != inside && (more || holds_totals<T>)) add_chain(sums, out, tile);
    if constexpr (rounded)
      if (ends == of_sample) round_totals(sums, all, out, tile, sample++);
  }
  store_totals(sums, all, out, tile, has_chain);
}

// Whether an element may have more than one chain.
inline bool has_several_chains(const Products& all) {
  for (int i = 0; i < all.count; ++i)
    if (all.product[i].k > chain_terms || (all.restart > 0 && all.product[i].k > all.restart - all.first))
      return true;
  return all.chained && all.count > 1;
}

template <Contiguous a_along, Contiguous b_along, bool rounded>
void chain_product(const Launch& l, const Products& all) {
  const int64_t large = tiles_of(all, LargeTile::edge, LargeTile::edge),
                small = tiles_of(all, SmallTile::edge, SmallTile::edge);
  if (small == 0) return;
  if constexpr (!rounded)
    if (large >= enough_tiles && (all.c == DType::f32 || !has_several_chains(all)))
      return launch(l, chain_product_kernel<LargeTile, a_along, b_along, false>, static_cast<unsigned>(large),
                    block_threads, 0, all);
  launch(l, chain_product_kernel<SmallTile, a_along, b_along, rounded>, static_cast<unsigned>(small),
         block_threads, 0, all);
}

}  // namespace stw::kernels::cuda
