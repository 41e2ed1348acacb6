// Matrix products of 16-bit operands on the tensor cores, sums in fp32. Every element goes through k in steps of 16, one
// after the other: how the 16 products of a step are added to the sum is the device's own affair, the order of the steps is
// not. Neither the tile nor the number of rows has any part in it, nothing is split along k, and the sum starts from what the
// output holds; so a row's bits do not depend on other rows, and a product may be cut at any step and go on (contract E3).
// Where k counts tokens the steps restart in every sample (`restart`), filled up with zeros, so that cuts between samples are
// cuts between steps; so are those inside of one at multiples of a step, where `first` says what lies before. A step that is
// wholly past the end is not done: adding +0 turns -0 into +0. `rounded`: slices restart in every sample too, after which the
// sums are rounded.
//
// A block computes a tile, a warp a part of it in fragments of 16 × 8. Of a large tile that is a quarter, 64 × 64: a step of its four
// warps reads 16 KiB of shared memory, 128 cycles, for 128 instructions of the tensor cores, which take 200 on an H100; eight parts of
// 64 × 32 would read 24 KiB. A slice is some 195 instructions of a warp for 64 of these.
//
// Slices of two steps travel to shared memory without passing through registers, `stages` of them in flight. Lines of a slice are cut
// into chunks of 16 bytes whose order depends on the line, so that the eight lines that ldmatrix reads at once lie in different banks:
// operands that are contiguous along k have lines of 32 numbers of k, the others lines of the tile's edge that ldmatrix turns.
#pragma once
#include "kernels/cuda/product.h"
#include "kernels/cuda/round_gradient.h"

namespace stw::kernels::cuda {

// Three stages are 48 KiB of shared memory: two blocks run together on cards of 100 KiB a multiprocessor (sm_86, sm_89) too.
inline constexpr int step_depth = product_step, slice_depth = 2 * step_depth, stages = 3, chunk = 8;   // chunk: elements of 16 bytes

template <int tile_edge, int m_warps, int n_warps, int blocks_together>
struct WarpTiles {
  static constexpr int edge = tile_edge, warps_m = m_warps, warps_n = n_warps, together = blocks_together;
  static constexpr int threads = 32 * m_warps * n_warps, warp_m = tile_edge / m_warps, warp_n = tile_edge / n_warps;
  static constexpr int fragments_m = warp_m / 16, fragments_n = warp_n / 8;
  static constexpr int slice = tile_edge * slice_depth;   // elements, of one operand
  static constexpr size_t shared_bytes = size_t{stages} * 2 * slice * sizeof(uint16_t);
};
using LargeWarpTiles = WarpTiles<128, 2, 2, 2>;
using SmallWarpTiles = WarpTiles<64, 2, 2, 4>;

// ---- steps
struct Step { int first, end; };   // of k

STW_DEVICE int steps_of(int64_t k, int64_t restart, int64_t first) {
  const int64_t end = first + k, whole_samples = restart > 0 ? end / restart : 0, rest = end - whole_samples * restart;
  return static_cast<int>(whole_samples * ceil_div(restart, step_depth) + ceil_div(rest, step_depth) - first / step_depth);
}
STW_DEVICE Step step_at(int step, int k, int64_t restart, int64_t first) {
  if (restart <= 0) return {step * step_depth, k};
  const int steps = static_cast<int>(ceil_div(restart, step_depth)), in_sample = step + static_cast<int>(first / step_depth);
  const int sample = in_sample / steps * static_cast<int>(restart) - static_cast<int>(first), end = sample + static_cast<int>(restart);
  return {sample + in_sample % steps * step_depth, end < k ? end : k};
}

// ---- slices in shared memory
// Where chunk number c of a line begins. Eight lines are 512 bytes (k is contiguous), or at least 1024.
template <class T, Contiguous along>
STW_DEVICE int place_of(int line, int c) {
  if constexpr (along == Contiguous::depth) return line * slice_depth + (c ^ line / 2 % 4) * chunk;
  else return line * T::edge + (c ^ line % 8) * chunk;
}

// How a thread copies its chunks of one operand's slices: one of a line, of lines that lie so far apart that all have the same place
// in eight. What stays the same from slice to slice is worked out once: addresses would cost more instructions than the products.
template <class T, Contiguous along>
struct SliceCopy {
  static constexpr int line_chunks = (along == Contiguous::depth ? slice_depth : T::edge) / chunk;
  static constexpr int copies = T::slice / chunk / T::threads, lines = T::threads / line_chunks;   // between one copy and the next
  static_assert(lines % 8 == 0 && step_depth % (along == Contiguous::depth ? 8 : lines) == 0);
  const uint16_t* from;   // what this thread would copy first were k 0
  int stride, inside;     // bit i: the line (of depth) of copy i, or this thread's column, is
  static __device__ int first_line() { return static_cast<int>(threadIdx.x) / line_chunks; }
  static __device__ int column() { return static_cast<int>(threadIdx.x) % line_chunks * chunk; }

  __device__ void begin(const void* operand, int64_t operand_stride, int output, int64_t outputs) {
    const int first = output + (along == Contiguous::depth ? first_line() : column());
    stride = static_cast<int>(operand_stride);
    from = static_cast<const uint16_t*>(operand) + (along == Contiguous::depth ? first * operand_stride : first);
    inside = 0;
    STW_UNROLL
    for (int i = 0; i < copies; ++i) inside |= (first + (along == Contiguous::depth ? i * lines : 0) < outputs ? 1 : 0) << i;
  }
  __device__ void copy(uint16_t* slice, Step even, Step odd) const {
    uint16_t* const to = slice + place_of<T, along>(first_line(), column() / chunk);
    if constexpr (along == Contiguous::depth) {
      const int k = (column() < step_depth ? even : odd).first + column() % step_depth;
      const bool is_there = k < (column() < step_depth ? even : odd).end;
      const uint16_t* p = from + k;
      STW_UNROLL
      for (int i = 0; i < copies; ++i, p += static_cast<int64_t>(lines) * stride)
        copy_async16_or_zeros(to + i * lines * slice_depth, p, is_there && (inside >> i & 1) != 0);
    } else {
      STW_UNROLL
      for (int i = 0; i < copies; ++i) {
        const Step& step = i * lines < step_depth ? even : odd;
        const int k = step.first + i * lines % step_depth + first_line();
        copy_async16_or_zeros(to + i * lines * T::edge, from + static_cast<int64_t>(k) * stride, k < step.end && (inside & 1) != 0);
      }
    }
  }
};

// Fragments of 16 rows of a, or of 16 columns of b, in a slice: number i of a warp's, which begin at `first`, for one of its two steps.
// A place is that of the first fragment and step with some bits turned over and a constant added.
template <class T, Contiguous along>
struct FragmentPlaces {
  int at;   // of this lane's row of ldmatrix
  // upper_o: lanes of the second eight rows or columns, upper_k: of the second eight of k.
  __device__ FragmentPlaces(int first, int upper_o, int upper_k) {
    const int lane = static_cast<int>(threadIdx.x % 8);
    at = along == Contiguous::depth ? place_of<T, along>(first + upper_o * 8 + lane, upper_k) : place_of<T, along>(upper_k * 8 + lane, first / 8 + upper_o);
  }
  __device__ void load(uint32_t (&r)[4], const uint16_t* slice, int i, int step) const {
    if constexpr (along == Contiguous::depth) load_matrix4(r, slice + (at ^ 2 * chunk * step) + i * 16 * slice_depth);
    else load_matrix4_turned(r, slice + (at ^ 2 * chunk * i) + step * step_depth * T::edge);
  }
};

// ---- two neighbouring elements of the output, n of them inside
struct Float2 { float f[2]; };
STW_DEVICE Float2 load2(const void* data, DType t, int64_t at, int64_t n) {
  if (t == DType::f32 && n >= 2 && reinterpret_cast<uintptr_t>(static_cast<const float*>(data) + at) % 8 == 0) {
    const float2 v = load_vector<float2>(static_cast<const float*>(data) + at);
    return {{v.x, v.y}};
  }
  return {{n > 0 ? load1(data, t, at) : 0.0f, n > 1 ? load1(data, t, at + 1) : 0.0f}};
}
STW_DEVICE void store2(void* data, DType t, int64_t at, Float2 x, int64_t n) {
  if (t == DType::f32) {
    auto* p = static_cast<float*>(data) + at;
    if (n >= 2 && reinterpret_cast<uintptr_t>(p) % 8 == 0) return store_vector(p, float2{x.f[0], x.f[1]});
  } else {
    auto* p = static_cast<uint16_t*>(data) + at;
    const uint32_t low = t == DType::bf16 ? to_bf16(x.f[0]) : to_f16(x.f[0]), high = t == DType::bf16 ? to_bf16(x.f[1]) : to_f16(x.f[1]);
    if (n >= 2 && reinterpret_cast<uintptr_t>(p) % 4 == 0) return store_vector(p, low | high << 16);
  }
  for (int i = 0; i < 2; ++i)
    if (i < n) store1(data, t, at + i, x.f[i]);
}

// What becomes of the sums. This one stores them, with the bias. Others have, beside what they need, functions of their own:
// is_idle(ending), whether there is nothing to do, and end_sums(ending, product, row, column, sums, n, mirrored) for two
// neighbouring sums of which n are inside. `triangle`: of one product m = n, tiles above the diagonal are left out; `mirrored`
// says of the others that what they give stands above the diagonal too.
struct StoredSums { static constexpr bool stored = true, triangle = false; };
struct EndedSums { static constexpr bool stored = false, triangle = false; };
struct TriangleSums { static constexpr bool stored = false, triangle = true; };

// Tiles on and below the diagonal, row after row.
inline int64_t tiles_of_triangle(int64_t rows) { return rows * (rows + 1) / 2; }
STW_DEVICE Tile tile_of_triangle(int64_t edge) {
  const auto index = static_cast<int64_t>(blockIdx.x);
  int64_t row = 0;
  while ((row + 1) * (row + 2) / 2 <= index) ++row;
  return {0, static_cast<int>(row * edge), static_cast<int>((index - row * (row + 1) / 2) * edge)};
}
template <class Ending, class T>
STW_DEVICE Tile tile_of(const Products& all) {
  if constexpr (Ending::triangle) return tile_of_triangle(T::edge);
  else return tile_of_block(all, T::edge, T::edge);
}

template <class T, DType dtype, Contiguous a_along, Contiguous b_along, bool rounded, class Ending>
static __global__ void __launch_bounds__(T::threads, T::together) tensor_product_kernel(Products all, Ending ending) {
  STW_DYNAMIC_SHARED(uint16_t, slices);   // of a and b in turn
  if constexpr (!Ending::stored)
    if (is_idle(ending)) return;
  const Tile tile = tile_of<Ending, T>(all);
  const Product& out = all.product[tile.product];
  const int thread = static_cast<int>(threadIdx.x), last = all.chained ? all.count - 1 : tile.product;
  // The first row and column of this thread in its warp's fragments; its other row is eight below, its other column the next.
  const auto row_of = [](int t) { return t / 32 / T::warps_n * T::warp_m + t % 32 / 4; };
  const auto column_of = [](int t) { return t / 32 % T::warps_n * T::warp_n + t % 4 * 2; };

  float sum[T::fragments_m][T::fragments_n][4];
  STW_UNROLL
  for (int i = 0; i < T::fragments_m; ++i)
    STW_UNROLL
    for (int j = 0; j < T::fragments_n; ++j)
      STW_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int64_t row = tile.row + row_of(thread) + 16 * i + 8 * half, column = tile.column + column_of(thread) + 8 * j;
        const bool started = out.start != nullptr && row < out.m;
        const Float2 from = load2(out.start, all.start, row * out.c_stride + column, started ? out.n - column : 0);
        sum[i][j][2 * half] = from.f[0], sum[i][j][2 * half + 1] = from.f[1];
      }

  int slices_left = 0;   // to be used
  if constexpr (rounded) slices_left = static_cast<int>(ceil_div(out.k, all.restart) * ((steps_of(all.restart, 0, 0) + 1) / 2));
  else
    for (int i = tile.product; i <= last; ++i) slices_left += (steps_of(all.product[i].k, all.restart, all.first) + 1) / 2;
  int slices_to_copy = slices_left;
  // The steps of the products (rounded: of the samples) in turn: where copying is, and where using is.
  struct Cursor { int part, step, steps; };
  Cursor copying = {rounded ? 0 : tile.product, 0, rounded ? steps_of(all.restart, 0, 0) : steps_of(out.k, all.restart, all.first)}, in_use = copying;
  SliceCopy<T, a_along> copy_a;
  SliceCopy<T, b_along> copy_b;
  int depth = 0;   // k of the product that is copied
  const auto begin_copying = [&](const Product& p) {
    copy_a.begin(p.a, p.a_stride, tile.row, p.m);
    copy_b.begin(p.b, p.b_stride, tile.column, p.n);
    depth = static_cast<int>(p.k);
  };
  begin_copying(out);
  const auto advance = [&](Cursor& c) {
    c.step += 2;
    if constexpr (rounded) {
      if (c.step >= c.steps) c = {c.part + 1, 0, c.steps};
    } else if (c.step >= c.steps && c.part < last) {
      c = {c.part + 1, 0, steps_of(all.product[c.part + 1].k, all.restart, all.first)};
    }
  };
  const auto step_of = [&](const Cursor& c, int step) -> Step {
    if constexpr (!rounded) return step_at(step, depth, all.restart, all.first);
    const int sample = c.part * static_cast<int>(all.restart), end = sample + static_cast<int>(all.restart);
    return {sample + step * step_depth, end < depth ? end : depth};
  };
  const auto copy_next = [&](int stage) {
    if (slices_to_copy > 0) {
      const Step even = step_of(copying, copying.step);
      const Step odd = copying.step + 1 < copying.steps ? step_of(copying, copying.step + 1) : Step{0, 0};
      uint16_t* const slice = slices + stage * 2 * T::slice;
      copy_a.copy(slice, even, odd);
      copy_b.copy(slice + T::slice, even, odd);
      const int part = copying.part;
      advance(copying);
      if (!rounded && copying.part != part) begin_copying(all.product[copying.part]);
      --slices_to_copy;
    }
    commit_copies();   // an empty group too: groups are counted
  };

  // Four fragments side by side are four blocks of random numbers, one for each thread of a quad. Operands of which tensor cores
  // take whole chunks have blocks that begin with a fragment (fits_tensor_cores).
  const auto round_sample = [&](int sample) {
    static_assert(T::fragments_n % 4 == 0);
    const GradientRounding rounding = gradient_rounding_of(*all.state, out.stream, sample);
    const int t = forgotten(thread);
    STW_UNROLL
    for (int i = 0; i < T::fragments_m; ++i)
      STW_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int64_t row = tile.row + row_of(t) + 16 * i + 8 * half, column = tile.column + t / 32 % T::warps_n * T::warp_n;
        STW_UNROLL
        for (int four = 0; four < T::fragments_n; four += 4) {
          const Philox4 random = turned_in_quad(rounding_block(rounding, row * out.c_stride + column + 8 * (four + t % quad)));
          STW_UNROLL
          for (int j = 0; j < 4; ++j) {
            sum[i][four + j][2 * half] = rounded_gradient(sum[i][four + j][2 * half], random.w[j] & 0xffffu);
            sum[i][four + j][2 * half + 1] = rounded_gradient(sum[i][four + j][2 * half + 1], random.w[j] >> 16);
          }
        }
      }
  };

  const FragmentPlaces<T, a_along> places_a(thread / 32 / T::warps_n * T::warp_m, thread / 8 % 2, thread / 16 % 2);
  const FragmentPlaces<T, b_along> places_b(thread / 32 % T::warps_n * T::warp_n, thread / 16 % 2, thread / 8 % 2);
  STW_UNROLL
  for (int stage = 0; stage < stages - 1; ++stage) copy_next(stage);
  for (int stage = 0; slices_left > 0; --slices_left, stage = (stage + 1) % stages) {
    wait_copies<stages - 2>();
    __syncthreads();   // this slice is there for all, and nobody uses the one before any more
    copy_next((stage + stages - 1) % stages);
    const uint16_t *a = slices + stage * 2 * T::slice, *b = a + T::slice;
    STW_UNROLL
    for (int step = 0; step < 2; ++step) {
      if (in_use.step + step >= in_use.steps) break;
      uint32_t x[T::fragments_m][4], y[T::fragments_n][2];
      STW_UNROLL
      for (int i = 0; i < T::fragments_m; ++i) places_a.load(x[i], a, i, step);
      STW_UNROLL
      for (int j = 0; j < T::fragments_n; j += 2) {
        uint32_t r[4];
        places_b.load(r, b, j / 2, step);
        y[j][0] = r[0], y[j][1] = r[1], y[j + 1][0] = r[2], y[j + 1][1] = r[3];
      }
      STW_UNROLL
      for (int i = 0; i < T::fragments_m; ++i)
        STW_UNROLL
        for (int j = 0; j < T::fragments_n; ++j) multiply_add<dtype>(sum[i][j], x[i], y[j]);
    }
    const int part = in_use.part;
    advance(in_use);
    if constexpr (rounded)
      if (in_use.part != part) round_sample(part);
  }

  const int t = forgotten(thread);
  STW_UNROLL
  for (int j = 0; j < T::fragments_n; ++j) {
    const int64_t column = tile.column + column_of(t) + 8 * j, n = out.n - column;
    const Float2 bias = load2(out.bias, all.bias, column, out.bias != nullptr ? n : 0);
    STW_UNROLL
    for (int i = 0; i < T::fragments_m; ++i)
      STW_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int64_t row = tile.row + row_of(t) + 16 * i + 8 * half;
        if (row >= out.m) continue;
        Float2 y = {{sum[i][j][2 * half], sum[i][j][2 * half + 1]}};
        if constexpr (Ending::stored) {
          if (out.bias != nullptr) y = {{y.f[0] + bias.f[0], y.f[1] + bias.f[1]}};
          if (out.residual != nullptr) {
            const Float2 before = load2(out.residual, all.c, row * out.c_stride + column, n);
            y = {{before.f[0] + as_stored(all.c, y.f[0]), before.f[1] + as_stored(all.c, y.f[1])}};
          }
          store2(out.c, all.c, row * out.c_stride + column, y, n);
        } else if (n > 0) {
          end_sums(ending, out, row, column, y, n, tile.row != tile.column);
        }
      }
  }
}

// Whether all chunks of 16 bytes are aligned, and inside of their operand, of zeros behind it, or outside. The number of rows never
// decides.
inline bool whole_chunks(const void* operand, int64_t stride, int64_t contiguous, bool padded) {
  return reinterpret_cast<uintptr_t>(operand) % 16 == 0 && stride % chunk == 0 && (padded || contiguous % chunk == 0);
}
template <Contiguous a_along, Contiguous b_along>
bool fits_tensor_cores(const Products& all) {
  if (all.a != all.b || all.a == DType::f32) return false;
  for (int i = 0; i < all.count; ++i) {
    const Product& p = all.product[i];
    if (!whole_chunks(p.a, p.a_stride, a_along == Contiguous::depth ? p.k : p.m, all.padded_a)) return false;
    if (!whole_chunks(p.b, p.b_stride, b_along == Contiguous::depth ? p.k : p.n, false)) return false;
  }
  return true;
}

template <Contiguous a_along, Contiguous b_along, bool rounded, DType dtype, class Ending = StoredSums>
void tensor_product_of(const Launch& l, const Products& all, const Ending& ending = {}) {
  const auto tiles_of_edge = [&](int edge) {
    if constexpr (Ending::triangle) return tiles_of_triangle(tiles_in(all.product[0].m, edge));
    else return tiles_of(all, edge, edge);
  };
  const auto in_tiles = [&](auto t) {
    using T = decltype(t);
    const int64_t tiles = tiles_of_edge(T::edge);
    if (tiles > 0)
      launch(l, tensor_product_kernel<T, dtype, a_along, b_along, rounded, Ending>, static_cast<unsigned>(tiles), T::threads, T::shared_bytes, all, ending);
  };
  if (tiles_of_edge(LargeWarpTiles::edge) >= enough_tiles) in_tiles(LargeWarpTiles{});
  else in_tiles(SmallWarpTiles{});
}
template <Contiguous a_along, Contiguous b_along, bool rounded>
void tensor_product(const Launch& l, const Products& all) {
  if (all.a == DType::bf16) tensor_product_of<a_along, b_along, rounded, DType::bf16>(l, all);
  else tensor_product_of<a_along, b_along, rounded, DType::f16>(l, all);
}

}  // namespace stw::kernels::cuda
