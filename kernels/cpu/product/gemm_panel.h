// Packing for the matrix product. `lanes` vectors along k become one panel, panel[k·width + lane], converted
// to fp32. Lanes after the last vector hold arbitrary values: they affect only results that are not stored.
#pragma once
#include "kernels/cpu/product/gemm.h"

namespace stw::kernels::STW_ISA {

#if defined(STW_ISA_AVX2) || defined(STW_ISA_AVX512)
template <DType dtype>
STW_INLINE __m256 load8(const void* p, int64_t at) {
  if constexpr (dtype == DType::f32) return _mm256_loadu_ps((const float*)p + at);
  const __m128i half = _mm_loadu_si128((const __m128i*)((const uint16_t*)p + at));
  if constexpr (dtype == DType::f16) return _mm256_cvtph_ps(half);
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}
// Stores the first `count` of 8 lanes.
template <int count>
STW_INLINE void store_first(float* p, __m256 x) {
  if constexpr (count >= 8) _mm256_storeu_ps(p, x);
  else {
    _mm_storeu_ps(p, _mm256_castps256_ps128(x));
    if constexpr (count == 6) _mm_storel_pi((__m64*)(p + 4), _mm256_extractf128_ps(x, 1));
  }
}
// Interleaves the lower or upper two floats of each 128 bits of two registers, one by one or in pairs.
STW_INLINE __m256 low_ones(__m256 a, __m256 b) { return _mm256_unpacklo_ps(a, b); }
STW_INLINE __m256 high_ones(__m256 a, __m256 b) { return _mm256_unpackhi_ps(a, b); }
STW_INLINE __m256 low_pairs(__m256 a, __m256 b) { return _mm256_shuffle_ps(a, b, 0x44); }
STW_INLINE __m256 high_pairs(__m256 a, __m256 b) { return _mm256_shuffle_ps(a, b, 0xee); }
#if defined(STW_ISA_AVX512)
STW_INLINE __m512 low_ones(__m512 a, __m512 b) { return _mm512_unpacklo_ps(a, b); }
STW_INLINE __m512 high_ones(__m512 a, __m512 b) { return _mm512_unpackhi_ps(a, b); }
STW_INLINE __m512 low_pairs(__m512 a, __m512 b) { return _mm512_shuffle_ps(a, b, 0x44); }
STW_INLINE __m512 high_pairs(__m512 a, __m512 b) { return _mm512_shuffle_ps(a, b, 0xee); }
#endif
// Transposes the 4×4 floats that every four registers hold in the same 128 bits.
template <int count, class Register>
STW_INLINE void transpose_fours(Register* r) {
#pragma GCC unroll 4
  for (int i = 0; i < count; i += 4) {
    const Register low = low_ones(r[i], r[i + 1]), high = high_ones(r[i], r[i + 1]);
    const Register next_low = low_ones(r[i + 2], r[i + 3]), next_high = high_ones(r[i + 2], r[i + 3]);
    r[i] = low_pairs(low, next_low);
    r[i + 1] = high_pairs(low, next_low);
    r[i + 2] = low_pairs(high, next_high);
    r[i + 3] = high_pairs(high, next_high);
  }
}
// Eight lanes, eight steps of k: to[step·width + lane].
template <DType dtype, int width, int count>
STW_INLINE void transpose_block(const void* from, const int64_t* lane_at, int64_t k, float* to) {
  __m256 r[8];  // All loops are unrolled, so that r is in registers.
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) r[i] = load8<dtype>(from, lane_at[i] + k);
  transpose_fours<8>(r);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    store_first<count>(to + i * width, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    store_first<count>(to + (i + 4) * width, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}
#if defined(STW_ISA_AVX512)
// Sixteen lanes, sixteen steps of k: to[step·width + lane].
template <DType dtype, int width>
STW_INLINE void transpose_square(const void* from, const int64_t* lane_at, int64_t k, float* to) {
  __m512 r[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) r[i] = load16(from, dtype, lane_at[i] + k).v;
  transpose_fours<16>(r);  // r[4q + s]: steps s, 4 + s, 8 + s, 12 + s of lanes 4q to 4q + 3.
#pragma GCC unroll 4
  for (int s = 0; s < 4; ++s) {
    const __m512 even_low = _mm512_shuffle_f32x4(r[s], r[4 + s], 0x88);
    const __m512 odd_low = _mm512_shuffle_f32x4(r[s], r[4 + s], 0xdd);
    const __m512 even_high = _mm512_shuffle_f32x4(r[8 + s], r[12 + s], 0x88);
    const __m512 odd_high = _mm512_shuffle_f32x4(r[8 + s], r[12 + s], 0xdd);
    _mm512_storeu_ps(to + s * width, _mm512_shuffle_f32x4(even_low, even_high, 0x88));
    _mm512_storeu_ps(to + (4 + s) * width, _mm512_shuffle_f32x4(odd_low, odd_high, 0x88));
    _mm512_storeu_ps(to + (8 + s) * width, _mm512_shuffle_f32x4(even_low, even_high, 0xdd));
    _mm512_storeu_ps(to + (12 + s) * width, _mm512_shuffle_f32x4(odd_low, odd_high, 0xdd));
  }
}
#endif
#else
template <DType dtype, int width, int count>
STW_INLINE void transpose_block(const void* from, const int64_t* lane_at, int64_t k, float* to) {
  for (int lane = 0; lane < count; ++lane)
    for (int i = 0; i < 8; ++i) to[i * width + lane] = load1(from, dtype, lane_at[lane] + k + i);
}
#endif

// Vectors that are contiguous along k: transposed in blocks of 8×8 or 16×16. `lane_at`: where each begins,
// for places<width> lanes.
template <int width>
static constexpr int places = (width + 7) / 8 * 8;
template <DType dtype, int width>
STW_INLINE void pack_from(const void* from, const int64_t* lane_at, int64_t lanes, int64_t depth,
                          float* panel) {
  int64_t k = 0;
#if defined(STW_ISA_AVX512)
  if constexpr (width % 16 == 0)
    for (; k + 16 <= depth; k += 16)
      for (int lane = 0; lane < width && lane < lanes; lane += 16)
        transpose_square<dtype, width>(from, lane_at + lane, k, panel + k * width + lane);
#endif
  for (; k + 8 <= depth; k += 8)
    for (int lane = 0; lane < width && lane < lanes; lane += 8) {
      float* to = panel + k * width + lane;
      if (width - lane >= 8) transpose_block<dtype, width, 8>(from, lane_at + lane, k, to);
      else transpose_block<dtype, width, width % 8>(from, lane_at + lane, k, to);
    }
  for (; k < depth; ++k)
    for (int lane = 0; lane < width; ++lane) panel[k * width + lane] = load1(from, dtype, lane_at[lane] + k);
}
template <DType dtype, int width>
STW_INLINE void pack_along(const void* from, int64_t lane_stride, int64_t lanes, int64_t depth,
                           float* panel) {
  int64_t lane_at[places<width>];
  for (int lane = 0; lane < places<width>; ++lane) lane_at[lane] = min(lane, lanes - 1) * lane_stride;
  pack_from<dtype, width>(from, lane_at, lanes, depth, panel);
}

// Vectors whose elements of one k are adjacent in memory: the elements are copied.
template <DType dtype, int width>
STW_INLINE void pack_across(const void* from, int64_t depth_stride, int64_t lanes, int64_t depth,
                            float* panel) {
  if (lanes == width) {
    for (int64_t k = 0; k < depth; ++k) {
      if constexpr (dtype == DType::f32) {
        memcpy(panel + k * width, (const float*)from + k * depth_stride, width * sizeof(float));
        continue;
      }
      int lane = 0;
      for (; lane + 16 <= width; lane += 16)
        store(panel + k * width + lane, load16(from, dtype, k * depth_stride + lane));
      for (; lane < width; ++lane) panel[k * width + lane] = load1(from, dtype, k * depth_stride + lane);
    }
    return;
  }
  for (int64_t k = 0; k < depth; ++k)
    for (int lane = 0; lane < width; ++lane)
      panel[k * width + lane] = lane < lanes ? load1(from, dtype, k * depth_stride + lane) : 0.0f;
}

// The same for several whole panels. The elements of a row for all panels, three cache lines in fp32, are
// read at once. If one panel were packed after the other, the same lines would be read again after they left
// the cache, which holds few rows of such a stride.
static constexpr int lanes_side_by_side = 48;
template <DType dtype, int width>
STW_INLINE void pack_side_by_side(const void* from, int64_t depth_stride, int64_t depth, float* panels) {
  static_assert(lanes_side_by_side % width == 0 && lanes_side_by_side % 16 == 0);
  constexpr int64_t at_once = 8;
  float wide[at_once * lanes_side_by_side];  // For types other than fp32.
  for (int64_t k0 = 0; k0 < depth; k0 += at_once) {
    const int64_t steps = min(at_once, depth - k0);
    const float* rows = (const float*)from + k0 * depth_stride;
    int64_t stride = depth_stride;
    if constexpr (dtype != DType::f32) {
      for (int64_t i = 0; i < steps; ++i)
        for (int lane = 0; lane < lanes_side_by_side; lane += 16)
          store(wide + i * lanes_side_by_side + lane, load16(from, dtype, (k0 + i) * depth_stride + lane));
      rows = wide;
      stride = lanes_side_by_side;
    }
    for (int64_t i = 0; i < steps; ++i)
#pragma GCC unroll 12
      for (int p = 0; p < lanes_side_by_side / width; ++p)
        memcpy(panels + p * width * depth + (k0 + i) * width, rows + i * stride + p * width,
               width * sizeof(float));
  }
}

template <DType dtype, int width>
STW_INLINE void pack_typed(const void* from, int64_t lane_stride, int64_t depth_stride, int64_t lanes,
                           int64_t depth, float* panel) {
  if (depth_stride == 1) return pack_along<dtype, width>(from, lane_stride, lanes, depth, panel);
  if (lane_stride == 1) return pack_across<dtype, width>(from, depth_stride, lanes, depth, panel);
  for (int64_t k = 0; k < depth; ++k)
    for (int lane = 0; lane < width; ++lane)
      panel[k * width + lane] = load1(from, dtype, min(lane, lanes - 1) * lane_stride + k * depth_stride);
}

// One panel.
template <int width>
void pack_panel(const void* from, DType dtype, int64_t lane_stride, int64_t depth_stride, int64_t lanes,
                int64_t depth, float* panel) {
  with_dtype(dtype, [&](auto stored) {
    pack_typed<stored.dtype, width>(from, lane_stride, depth_stride, lanes, depth, panel);
  });
}

// Consecutive panels; the last one may have fewer lanes.
template <int width>
void pack_panels(const void* from, DType dtype, int64_t lane_stride, int64_t depth_stride, int64_t lanes,
                 int64_t depth, float* panels) {
  with_dtype(dtype, [&](auto stored) {
    const int64_t bytes = element_bytes(stored.dtype);
    int64_t lane = 0;
    if (lane_stride == 1 && depth_stride != 1)
      for (; lane + lanes_side_by_side <= lanes; lane += lanes_side_by_side)
        pack_side_by_side<stored.dtype, width>((const char*)from + lane * bytes, depth_stride, depth,
                                               panels + lane * depth);
    for (; lane < lanes; lane += width)
      pack_typed<stored.dtype, width>((const char*)from + lane * lane_stride * bytes, lane_stride,
                                      depth_stride, min(width, lanes - lane), depth, panels + lane * depth);
  });
}

}  // namespace stw::kernels::STW_ISA
