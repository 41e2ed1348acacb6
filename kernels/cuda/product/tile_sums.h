// The sums of a tile of a matrix product, which its warps hold in fragments of 16 × 8: their start values,
// and how they are stored. In a tile inside the output, a thread issues all its loads without a branch
// between them, and stores 16 bytes of 16-bit numbers: a quad holds 32 adjacent numbers of a row and
// transposes them in groups of eight. Other tiles go through shared memory, one pair after the other: the
// code for edges, unrolled for all pairs of a thread, would be most of a kernel.
#pragma once
#include "kernels/cuda/elementwise/fast_activation.h"
#include "kernels/cuda/product/product.h"
#include "kernels/cuda/random_words.h"

namespace stw::kernels::cuda {

inline constexpr int step_depth = product_step, chunk = 8;  // chunk: elements of 16 bytes.

// A block computes a tile, a warp a part of it in fragments of 16 × 8.
template <int tile_m, int tile_n, int m_warps, int n_warps, int steps, int slices, int blocks_together>
struct Tiles {
  static constexpr int edge_m = tile_m, edge_n = tile_n, warps_m = m_warps, warps_n = n_warps,
                       together = blocks_together;
  static constexpr int threads = 32 * m_warps * n_warps, warp_m = tile_m / m_warps, warp_n = tile_n / n_warps;
  static constexpr int fragments_m = warp_m / 16, fragments_n = warp_n / 8;
  static constexpr int slice_steps = steps, slice_depth = steps * step_depth, stages = slices;
  static constexpr int slice_a = tile_m * slice_depth, slice_b = tile_n * slice_depth;  // Elements.
  static constexpr size_t slices_bytes = size_t{stages} * (slice_a + slice_b) * sizeof(uint16_t);
  // Slices whose copies are started before their use.
  static constexpr int ahead = stages - 1;
  // Whether the second warpgroup multiplies each slice one interval after the first one (TileChains).
  static constexpr bool staggered = false;
  // Whether store_halves_inside can store the tile. Tiles of other shapes are used for fp32 gradients only.
  static constexpr bool stores_halves = tile_n % 64 == 0 && (tile_n & (tile_n - 1)) == 0;
};

// ---- two adjacent elements of the output, n of them inside
struct Float2 {
  float f[2];
};
STW_DEVICE Float2 load2(const void* data, DType t, int64_t at, int64_t n) {
  if (t == DType::f32 && n >= 2 &&
      reinterpret_cast<uintptr_t>(static_cast<const float*>(data) + at) % 8 == 0) {
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
    const uint32_t low = t == DType::bf16 ? to_bf16(x.f[0]) : to_f16(x.f[0]),
                   high = t == DType::bf16 ? to_bf16(x.f[1]) : to_f16(x.f[1]);
    if (n >= 2 && reinterpret_cast<uintptr_t>(p) % 4 == 0) return store_vector(p, low | high << 16);
  }
  for (int i = 0; i < 2; ++i)
    if (i < n) store1(data, t, at + i, x.f[i]);
}

// Calls body(i, j, k) for number k of every fragment (i, j).
template <class T, class Body>
STW_DEVICE void for_sums(const Body& body) {
  STW_UNROLL
  for (int i = 0; i < T::fragments_m; ++i) STW_UNROLL
  for (int j = 0; j < T::fragments_n; ++j) STW_UNROLL
  for (int k = 0; k < 4; ++k) body(i, j, k);
}
// Replaces pairs by body(i, j, half, pair).
template <class T, class Body>
STW_DEVICE void for_sum_pairs(float (&sum)[T::fragments_m][T::fragments_n][4], const Body& body) {
  STW_UNROLL
  for (int i = 0; i < T::fragments_m; ++i) STW_UNROLL
  for (int j = 0; j < T::fragments_n; ++j) STW_UNROLL
  for (int half = 0; half < 2; ++half) {
    const Float2 x = body(i, j, half, Float2{{sum[i][j][2 * half], sum[i][j][2 * half + 1]}});
    sum[i][j][2 * half] = x.f[0], sum[i][j][2 * half + 1] = x.f[1];
  }
}
// The first row and column of a thread in the tile. Its other row in a fragment is eight rows below, its
// other column the next.
template <class T>
STW_DEVICE int row_of(int thread) {
  return thread / 32 / T::warps_n * T::warp_m + thread % 32 / 4;
}
template <class T>
STW_DEVICE int first_column_of_warp(int thread) {
  return thread / 32 % T::warps_n * T::warp_n;
}
template <class T>
STW_DEVICE int column_of(int thread) {
  return first_column_of_warp<T>(thread) + thread % 4 * 2;
}

// Calls body(i, j, half, row, column, n) for a thread's pairs, which lie in columns `column` and column + 1.
// n is the number of the output's columns from `column` on. It may be negative.
template <class T, class Body>
STW_DEVICE void for_pairs(const Product& out, const Tile& tile, int thread, const Body& body) {
  STW_UNROLL
  for (int j = 0; j < T::fragments_n; ++j) STW_UNROLL
  for (int i = 0; i < T::fragments_m; ++i) STW_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int64_t row = tile.row + row_of<T>(thread) + 16 * i + 8 * half,
                  column = tile.column + column_of<T>(thread) + 8 * j;
    if (row < out.m) body(i, j, half, row, column, out.n - column);
  }
}

// ---- tiles inside the output
template <class T>
STW_DEVICE bool is_inside(const Product& out, const Tile& tile) {
  return tile.row + T::edge_m <= out.m && tile.column + T::edge_n <= out.n;
}
STW_DEVICE bool is_aligned(const void* p, int64_t stride, int elements, size_t element_bytes) {
  return reinterpret_cast<uintptr_t>(p) % (static_cast<size_t>(elements) * element_bytes) == 0 &&
         stride % elements == 0;
}
// Calls body(i, j, half, element) for a thread's pairs; `element` is the index of the pair's first element in
// the output.
template <class T, class Body>
STW_DEVICE void for_pairs_inside(const Product& out, const Tile& tile, int thread, const Body& body) {
  const int64_t at = (tile.row + row_of<T>(thread)) * out.c_stride + tile.column + column_of<T>(thread);
  STW_UNROLL
  for (int i = 0; i < T::fragments_m; ++i) STW_UNROLL
  for (int half = 0; half < 2; ++half) STW_UNROLL
  for (int j = 0; j < T::fragments_n; ++j) body(i, j, half, at + (16 * i + 8 * half) * out.c_stride + 8 * j);
}
STW_DEVICE uint32_t load_pair(const void* data, int64_t at) {
  return load_vector<uint32_t>(static_cast<const uint16_t*>(data) + at);
}

// ---- other tiles
// As many rows at a time as fit into the memory of the slices: `fragments` for each warp. A row's first
// element lies 8 banks after that of the row before, so that the rows of a fragment's pairs are in different
// banks.
template <class T>
struct Rows {
  static constexpr int stride = T::edge_n + 8,
                       parts = static_cast<int>((T::edge_m * stride * sizeof(float) + T::slices_bytes - 1) /
                                                T::slices_bytes);
  static constexpr int fragments = T::fragments_m / parts, of_warp = 16 * fragments,
                       count = T::edge_m / parts;
  static_assert(fragments * parts == T::fragments_m && parts <= 2);
};
// Calls body(i, j, half, place) for this thread's pairs in a part; `place` is the pair's index in shared
// memory.
template <class T, class Body>
STW_DEVICE void for_pairs_of_part(int part, int thread, const Body& body) {
  const int at = (thread / 32 / T::warps_n * Rows<T>::of_warp + thread % 32 / 4) * Rows<T>::stride +
                 column_of<T>(thread);
  STW_UNROLL
  for (int i = 0; i < Rows<T>::fragments; ++i) STW_UNROLL
  for (int half = 0; half < 2; ++half) STW_UNROLL
  for (int j = 0; j < T::fragments_n; ++j)
    body(part * Rows<T>::fragments + i, j, half, at + (16 * i + 8 * half) * Rows<T>::stride + 8 * j);
}
// Calls body(place, row, column, n) for all pairs of a part, divided among the block's threads. n is as in
// for_pairs, but 0 if the row is outside the output.
template <class T, class Body>
STW_DEVICE void for_places_of_part(int part, int thread, const Product& out, const Tile& tile,
                                   const Body& body) {
  constexpr int pairs = T::edge_n / 2;
  STW_ROLLED
  for (int k = thread; k < Rows<T>::count * pairs; k += T::threads) {
    const int line = k / pairs, in_warp = line % Rows<T>::of_warp;
    const int64_t row = tile.row + line / Rows<T>::of_warp * T::warp_m + part * Rows<T>::of_warp + in_warp,
                  column = tile.column + k % pairs * 2;
    body(line * Rows<T>::stride + k % pairs * 2, row, column, row < out.m ? out.n - column : 0);
  }
}

template <class T, DType dtype>
STW_DEVICE void load_sums(float (&sum)[T::fragments_m][T::fragments_n][4], const Products& all,
                          const Product& out, const Tile& tile, float* shared, int thread) {
  if (out.start == nullptr) {
    for_sums<T>([&](int i, int j, int k) { sum[i][j][k] = 0; });
  } else if (is_inside<T>(out, tile) && all.start == DType::f32 &&
             is_aligned(out.start, out.c_stride, 2, sizeof(float))) {
    for_pairs_inside<T>(out, tile, thread, [&](int i, int j, int half, int64_t at) {
      const float2 v = load_vector<float2>(static_cast<const float*>(out.start) + at);
      sum[i][j][2 * half] = v.x, sum[i][j][2 * half + 1] = v.y;
    });
  } else if (is_inside<T>(out, tile) && all.start == dtype &&
             is_aligned(out.start, out.c_stride, 2, sizeof(uint16_t))) {
    uint32_t words[T::fragments_m][2][T::fragments_n];
    for_pairs_inside<T>(out, tile, thread, [&](int i, int j, int half, int64_t at) {
      words[i][half][j] = load_pair(out.start, at);
    });
    for_sum_pairs<T>(sum, [&](int i, int j, int half, Float2) {
      const float2 x = unpack_halves<dtype>(words[i][half][j]);
      return Float2{{x.x, x.y}};
    });
  } else {
    STW_UNROLL
    for (int part = 0; part < Rows<T>::parts; ++part) {
      for_places_of_part<T>(part, thread, out, tile, [&](int place, int64_t row, int64_t column, int64_t n) {
        const Float2 from = load2(out.start, all.start, row * out.c_stride + column, n);
        store_vector(shared + place, float2{from.f[0], from.f[1]});
      });
      __syncthreads();
      for_pairs_of_part<T>(part, thread, [&](int i, int j, int half, int place) {
        const float2 from = load_vector<float2>(shared + place);
        sum[i][j][2 * half] = from.x, sum[i][j][2 * half + 1] = from.y;
      });
      __syncthreads();
    }
  }
}

// The bias of a thread's columns; without a bias -0, which changes no sum.
template <class T>
STW_DEVICE void load_bias(uint32_t (&bias)[T::fragments_n], const Product& out, const Tile& tile,
                          int thread) {
  if (out.bias != nullptr) {
    STW_UNROLL
    for (int j = 0; j < T::fragments_n; ++j)
      bias[j] = load_pair(out.bias, tile.column + column_of<T>(thread) + 8 * j);
  } else {
    STW_UNROLL
    for (int j = 0; j < T::fragments_n; ++j) bias[j] = 0x80008000u;
  }
}
// For a pair: residual + product, as stored.
template <DType dtype>
STW_DEVICE float2 added_as_stored(uint32_t residual, uint32_t stored) {
  const float2 a = unpack_halves<dtype>(residual), b = unpack_halves<dtype>(stored);
  return {a.x + b.x, a.y + b.y};
}

// For a pair of elements. times_slope: the product as stored, times GELU's derivative. gelu_of_stored: GELU
// of the stored value.
template <DType dtype>
STW_DEVICE float2 times_slope(uint32_t before_gelu, uint32_t stored) {
  const float2 h = unpack_halves<dtype>(before_gelu), dy = unpack_halves<dtype>(stored);
  return {dy.x * fast_gelu_gradient1(h.x), dy.y * fast_gelu_gradient1(h.y)};
}
template <DType dtype>
STW_DEVICE float2 gelu_of_stored(uint32_t stored) {
  const float2 h = unpack_halves<dtype>(stored);
  return {fast_gelu1(h.x), fast_gelu1(h.y)};
}

// Sums of a tile's columns over each token_tile rows, from +0 in row order (Product::column_sums), by all
// threads. The tile lies inside the output. Its rows lie in shared memory as they are stored, `stride` apart.
// A thread has two columns.
template <class T, DType dtype>
STW_DEVICE void sum_columns_inside(const uint16_t* rows, int stride, const Product& out, const Tile& tile,
                                   int thread) {
  constexpr int pairs = T::edge_n / 2, groups = static_cast<int>(T::edge_m / token_tile);
  static_assert(T::edge_m % token_tile == 0);
  __syncthreads();  // All rows have arrived.
  STW_ROLLED
  for (int task = thread; task < groups * pairs; task += T::threads) {
    const int group = task / pairs, column = task % pairs * 2;
    const uint16_t* const from = rows + group * static_cast<int>(token_tile) * stride + column;
    float2 sum = {0.0f, 0.0f};
    STW_ROLLED
    for (int row = 0; row < token_tile; row += 8) {
      uint32_t words[8];
      STW_UNROLL
      for (int k = 0; k < 8; ++k) words[k] = load_vector<uint32_t>(from + (row + k) * stride);
      STW_UNROLL
      for (int k = 0; k < 8; ++k) {
        const float2 x = unpack_halves<dtype>(words[k]);
        sum = {sum.x + x.x, sum.y + x.y};
      }
    }
    store_vector(out.column_sums + (tile.row / token_tile + group) * out.n + tile.column + column, sum);
  }
}
// The same for any other tile, which the block has just stored in global memory.
template <class T>
STW_DEVICE void sum_columns_stored(const Products& all, const Product& out, const Tile& tile, int thread) {
  constexpr int groups = static_cast<int>(T::edge_m / token_tile);
  __syncthreads();
  STW_ROLLED
  for (int task = thread; task < groups * T::edge_n; task += T::threads) {
    const int64_t column = tile.column + task % T::edge_n, first = tile.row + task / T::edge_n * token_tile;
    if (first >= out.m || column >= out.n) continue;
    const int64_t end = first + token_tile < out.m ? first + token_tile : out.m;
    float sum = 0.0f;
    STW_ROLLED
    for (int64_t row = first; row < end; ++row) sum = sum + load1(out.c, all.c, row * out.c_stride + column);
    out.column_sums[first / token_tile * out.n + column] = sum;
  }
}

// Stores 16-bit numbers in a tile inside the output. Sums are packed first, because all later code uses the
// registers that this frees.
template <class T, DType dtype>
STW_DEVICE void store_halves_inside(const float (&sum)[T::fragments_m][T::fragments_n][4], const Product& out,
                                    const Tile& tile, uint16_t* shared, int thread) {
  uint32_t words[T::fragments_m][2][T::fragments_n];
  const auto for_words = [&](const auto& body) {  // body(i, half, j, word).
    STW_UNROLL
    for (int i = 0; i < T::fragments_m; ++i) STW_UNROLL
    for (int half = 0; half < 2; ++half) STW_UNROLL
    for (int j = 0; j < T::fragments_n; ++j) body(i, half, j, words[i][half][j]);
  };
  if (out.bias != nullptr) {
    uint32_t bias[T::fragments_n];
    load_bias<T>(bias, out, tile, thread);
    for_words([&](int i, int half, int j, uint32_t& word) {
      const float2 b = unpack_halves<dtype>(bias[j]);
      word = pack_halves<dtype>(sum[i][j][2 * half] + b.x, sum[i][j][2 * half + 1] + b.y);
    });
  } else {
    for_words([&](int i, int half, int j, uint32_t& word) {
      word = pack_halves<dtype>(sum[i][j][2 * half], sum[i][j][2 * half + 1]);
    });
  }
  const auto combine = [&](const void* other, const auto& of_pair) {
    uint32_t before[T::fragments_m][2][T::fragments_n];
    for_pairs_inside<T>(out, tile, thread, [&](int i, int j, int half, int64_t at) {
      before[i][half][j] = load_pair(other, at);
    });
    for_words([&](int i, int half, int j, uint32_t& word) {
      const float2 y = of_pair(before[i][half][j], word);
      word = pack_halves<dtype>(y.x, y.y);
    });
  };
  if (out.residual != nullptr)
    combine(out.residual, [](uint32_t x, uint32_t y) { return added_as_stored<dtype>(x, y); });
  if (out.before_gelu != nullptr)
    combine(out.before_gelu, [](uint32_t x, uint32_t y) { return times_slope<dtype>(x, y); });
  const int64_t at = (tile.row + row_of<T>(thread)) * out.c_stride + tile.column +
                     first_column_of_warp<T>(thread) + 8 * (thread % quad);
  const auto store = [&](void* to) {
    STW_UNROLL
    for (int i = 0; i < T::fragments_m; ++i) STW_UNROLL
    for (int half = 0; half < 2; ++half) {
      static_assert(T::fragments_n % 4 == 0);
      STW_UNROLL
      for (int four = 0; four < T::fragments_n; four += 4) {
        const uint32_t* const w = words[i][half] + four;
        const Philox4 transposed = transposed_in_quad({{w[0], w[1], w[2], w[3]}});
        store_global16(static_cast<uint16_t*>(to) + at + (16 * i + 8 * half) * out.c_stride + 8 * four,
                       uint4{transposed.w[0], transposed.w[1], transposed.w[2], transposed.w[3]});
      }
    }
  };
  if (out.c != nullptr) store(out.c);
  if constexpr (T::edge_m % token_tile == 0)
    if (out.column_sums != nullptr) {
      constexpr int stride = T::edge_n + chunk;
      static_assert(T::edge_m * stride * sizeof(uint16_t) <= T::slices_bytes);
      __syncthreads();  // All threads have finished with the slices.
      const int first = row_of<T>(thread) * stride + column_of<T>(thread);
      for_words([&](int i, int half, int j, uint32_t& word) {
        store_vector(shared + first + (16 * i + 8 * half) * stride + 8 * j, word);
      });
      sum_columns_inside<T, dtype>(shared, stride, out, tile, thread);
    }
  if (out.activated == nullptr) return;
  for_words([](int, int, int, uint32_t& word) {
    const float2 y = gelu_of_stored<dtype>(word);
    word = pack_halves<dtype>(y.x, y.y);
  });
  store(out.activated);
}

// Makes the sums of a Multiply readable (tile_product.h).
template <class T, class Multiply>
STW_DEVICE void make_sums_readable(float (&sum)[T::fragments_m][T::fragments_n][4]) {
  if constexpr (Multiply::asynchronous)
    for_sums<T>([&](int i, int j, int k) { sum[i][j][k] = Multiply::add(sum[i][j][k], -0.0f); });
}

template <class T, DType dtype, class Multiply>
STW_DEVICE void store_sums(float (&sum)[T::fragments_m][T::fragments_n][4], const Products& all,
                           const Product& out, const Tile& tile, uint16_t* slices, int thread) {
  const bool inside = is_inside<T>(out, tile);
  if constexpr (T::stores_halves)
    if (inside && all.c == dtype && is_aligned(out.c, out.c_stride, 8, sizeof(uint16_t)) &&
        (reinterpret_cast<uintptr_t>(out.residual) | reinterpret_cast<uintptr_t>(out.activated) |
         reinterpret_cast<uintptr_t>(out.before_gelu)) %
                16 ==
            0 &&
        (out.bias == nullptr || (all.bias == dtype && reinterpret_cast<uintptr_t>(out.bias) % 4 == 0)))
      return Multiply::store_inside(sum, out, tile, slices, thread);
  make_sums_readable<T, Multiply>(sum);
  if (inside && all.c == DType::f32 && out.bias == nullptr && out.residual == nullptr &&
      is_aligned(out.c, out.c_stride, 2, sizeof(float)))
    return for_pairs_inside<T>(out, tile, thread, [&](int i, int j, int half, int64_t at) {
      store_vector(static_cast<float*>(out.c) + at, float2{sum[i][j][2 * half], sum[i][j][2 * half + 1]});
    });
  float* const shared = reinterpret_cast<float*>(slices);
  STW_UNROLL
  for (int part = 0; part < Rows<T>::parts; ++part) {
    __syncthreads();  // All threads have finished with the slices and with the part before.
    for_pairs_of_part<T>(part, thread, [&](int i, int j, int half, int place) {
      store_vector(shared + place, float2{sum[i][j][2 * half], sum[i][j][2 * half + 1]});
    });
    __syncthreads();
    for_places_of_part<T>(part, thread, out, tile, [&](int place, int64_t row, int64_t column, int64_t n) {
      if (n <= 0) return;
      const float2 x = load_vector<float2>(shared + place);
      Float2 y = {{x.x, x.y}};
      if (out.bias != nullptr) {
        const Float2 bias = load2(out.bias, all.bias, column, n);
        y = {{y.f[0] + bias.f[0], y.f[1] + bias.f[1]}};
      }
      if (out.residual != nullptr) {
        const Float2 before = load2(out.residual, all.c, row * out.c_stride + column, n);
        y = {{before.f[0] + as_stored(all.c, y.f[0]), before.f[1] + as_stored(all.c, y.f[1])}};
      }
      const int64_t at = row * out.c_stride + column;
      if (out.before_gelu != nullptr) {
        const Float2 h = load2(out.before_gelu, all.c, at, n);
        y = {{as_stored(all.c, y.f[0]) * fast_gelu_gradient1(h.f[0]),
              as_stored(all.c, y.f[1]) * fast_gelu_gradient1(h.f[1])}};
      }
      if (out.c != nullptr) store2(out.c, all.c, at, y, n);
      if (out.activated != nullptr)
        store2(out.activated, all.c, at,
               {{fast_gelu1(as_stored(all.c, y.f[0])), fast_gelu1(as_stored(all.c, y.f[1]))}}, n);
    });
  }
  if constexpr (T::edge_m % token_tile == 0)
    if (out.column_sums != nullptr) sum_columns_stored<T>(all, out, tile, thread);
}

}  // namespace stw::kernels::cuda
