// Matrix products as data, independent of how they are computed (chain_product.h, tensor_product.h): up to
// max_parts products in one launch, each with its own tiles, or one output whose chains run through all of
// them in order.
#pragma once
#include "kernels/cuda/kernels_cuda.h"

namespace stw::kernels::cuda {

// The direction in which an operand is contiguous in memory: along k (the depth), or along a side of the
// output.
enum class Contiguous : uint8_t { depth, output };

// c (m, n) = (start, or +0) + a (m, k) · b (k, n) + bias, rounded to c's type; then the residual is added,
// and the sum is rounded again. Strides count elements, from one contiguous line to the next.
struct Product {
  int64_t m, n, k;
  const void *a, *b;
  int64_t a_stride, b_stride, c_stride;
  void* c;
  const void* start;               // c's stride; may be c. Null: +0.
  const void* bias;                // (n), added last. Null: none.
  uint32_t stream = 0;             // Random stream, if c is rounded stochastically.
  const void* residual = nullptr;  // c's stride and type; not c. Null: none.
  // Epilogues of tensor-core products with a 16-bit c; all have c's stride and type.
  void* activated = nullptr;  // Gets gelu(c as stored); c may then be null. Null: none.
  // GELU's input: c = the product as stored times GELU's derivative there. May be c. Null: none.
  const void* before_gelu = nullptr;
  // (tiles of token_tile rows, n): sums of c as stored, from +0 in row order. Null: none.
  float* column_sums = nullptr;
};
struct Products {
  DType a, b, c, start, bias;
  bool chained;  // All products have the m, n, c, start and bias of the first one, and are added up.
  int count;
  int64_t restart;  // Chains restart at every multiple of it if k counts tokens; 0: k is one sample.
  Product product[max_parts];
  const StepState* state = nullptr;  // For stochastic rounding.
  int64_t first = 0;  // Place of k = 0 in its sample (`restart`): a multiple of chain_terms, 0 if rounded.
  bool padded_a = false;        // a is 0 after its contiguous extent, up to the next multiple of 8.
  int64_t chain = chain_terms;  // Tensor cores: terms of a chain if there are totals.
  bool fence = true;            // Tensor cores: DeveloperSwitches::fence.
};

// With fewer tiles, a device of a hundred or more multiprocessors has idle ones, and smaller tiles keep more
// of them busy. No bit depends on it. The emulated machine uses both kinds of tiles.
#if defined(__CUDACC__)
inline constexpr int64_t enough_tiles = 192;
#else
inline constexpr int64_t enough_tiles = 6;
#endif

// ---- tiles of edge_m × edge_n
struct Tile {
  int product, row, column;
};  // Rows, columns and k are below 2^31.

static __host__ __device__ inline int64_t tiles_in(int64_t extent, int64_t edge) {
  return (extent + edge - 1) / edge;
}
static __host__ __device__ inline int64_t tiles_of(const Product& p, int64_t edge_m, int64_t edge_n) {
  return tiles_in(p.m, edge_m) * tiles_in(p.n, edge_n);
}
inline int64_t tiles_of(const Products& p, int64_t edge_m, int64_t edge_n) {
  int64_t sum = 0;
  for (int i = 0; i < (p.chained ? 1 : p.count); ++i) sum += tiles_of(p.product[i], edge_m, edge_n);
  return sum;
}
// Blocks that run together take bands of eight rows of tiles, column after column. Their operands are few
// enough lines of a and b to stay in the second-level cache.
STW_DEVICE Tile tile_of_block(const Products& p, int edge_m, int edge_n) {
  constexpr int band_rows = 8;
  const auto tiles_along = [](int64_t extent, int edge) {
    return (static_cast<int>(extent) + edge - 1) / edge;
  };
  int index = static_cast<int>(blockIdx.x), product = 0, rows = 0, columns = 0;
  for (;; ++product, index -= rows * columns) {
    rows = tiles_along(p.product[product].m, edge_m), columns = tiles_along(p.product[product].n, edge_n);
    if (p.chained || index < rows * columns) break;
  }
  const int of_band = band_rows * columns, band = index / of_band, in_band = index - band * of_band;
  const int height = min(band_rows, rows - band * band_rows), column = in_band / height;
  return {product, (band * band_rows + in_band - column * height) * edge_m, column * edge_n};
}

// ---- four adjacent elements, by one thread
// They are kept in their storage format, so that a load can be in flight while others are used: fp32 words,
// or two 16-bit numbers in a word.
struct Raw4 {
  uint32_t word[4];
};
struct Float4 {
  float f[4];
};

STW_DEVICE int four_at_most(int64_t n) { return n < 4 ? static_cast<int>(n) : 4; }
// Elements [first, first + n). The rest is padding: -0 if negative_padding, else +0.
STW_DEVICE Raw4 load_raw4(const void* data, DType t, int64_t first, int n, bool negative_padding) {
  const int64_t at = n > 0 ? first : 0;  // `data` may be null if n <= 0.
  if (t == DType::f32) {
    const auto* p = static_cast<const uint32_t*>(data) + at;
    if (n >= 4 && reinterpret_cast<uintptr_t>(p) % 16 == 0) {
      const uint4 v = load_vector<uint4>(p);
      return {{v.x, v.y, v.z, v.w}};
    }
    Raw4 r;
    for (int i = 0; i < 4; ++i) r.word[i] = i < n ? p[i] : negative_padding ? 0x80000000u : 0u;
    return r;
  }
  const auto* p = static_cast<const uint16_t*>(data) + at;
  if (n >= 4 && reinterpret_cast<uintptr_t>(p) % 8 == 0) {
    const uint2 v = load_vector<uint2>(p);
    return {{v.x, v.y, 0, 0}};
  }
  Raw4 r = {{0, 0, 0, 0}};
  for (int i = 0; i < 4; ++i)
    r.word[i / 2] |= (i < n ? p[i] : negative_padding ? 0x8000u : 0u) << (i % 2 * 16);
  return r;
}
STW_DEVICE Float4 floats_of(Raw4 raw, DType t) {
  Float4 r;
  for (int i = 0; i < 4; ++i) {
    const auto half = static_cast<uint16_t>(raw.word[i / 2] >> (i % 2 * 16));
    r.f[i] = t == DType::f32 ? float_of(raw.word[i]) : t == DType::bf16 ? from_bf16(half) : from_f16(half);
  }
  return r;
}
STW_DEVICE float as_stored(DType t, float x) {
  return t == DType::f32 ? x : t == DType::bf16 ? from_bf16(to_bf16(x)) : from_f16(to_f16(x));
}
STW_DEVICE Float4 load4(const void* data, DType t, int64_t at, int64_t n) {
  return floats_of(load_raw4(data, t, at, four_at_most(n), false), t);
}
STW_DEVICE void store4(void* data, DType t, int64_t at, Float4 x, int64_t n) {
  if (t == DType::f32) {
    auto* p = static_cast<float*>(data) + at;
    if (n >= 4 && reinterpret_cast<uintptr_t>(p) % 16 == 0)
      return store_vector(p, float4{x.f[0], x.f[1], x.f[2], x.f[3]});
  } else if (n >= 4 && reinterpret_cast<uintptr_t>(static_cast<uint16_t*>(data) + at) % 8 == 0) {
    uint32_t h[4];
    for (int i = 0; i < 4; ++i) h[i] = t == DType::bf16 ? to_bf16(x.f[i]) : to_f16(x.f[i]);
    return store_vector(static_cast<uint16_t*>(data) + at, uint2{h[0] | h[1] << 16, h[2] | h[3] << 16});
  }
  for (int i = 0; i < 4; ++i)
    if (i < n) store1(data, t, at + i, x.f[i]);
}

}  // namespace stw::kernels::cuda
