// Sixteen lanes of fp32 on every instruction set. They are the reason why all CPU kernels give the same bits.
//
// A kernel is written once over `F16` (16 lanes, whatever the register width) and compiled once for each
// instruction set, in a namespace of its own (STW_ISA). Lane-wise operations round alike on all sets, `fma`
// is always fused, and a sum over lanes folds 16 → 8 → 4 → 2 → 1 (`fold`). Neither this file nor a kernel may
// use templates of the standard library: the linker keeps one copy of an instance, and a copy compiled for
// AVX-512 must not run on other processors.
#pragma once
#include <stdint.h>
#include <string.h>

#include "kernels/contract/kernels.h"

#if defined(STW_ISA_AVX512)
#if defined(__GNUC__) && !defined(__clang__)  // GCC 12 warns about its own _mm512_undefined_*.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#else
#include <immintrin.h>
#endif
#define STW_ISA avx512
#elif defined(STW_ISA_AVX2)
#include <immintrin.h>
#define STW_ISA avx2
#elif defined(STW_ISA_NEON)
#include <arm_neon.h>
#define STW_ISA neon
#else
#define STW_ISA scalar
#endif

// A sanitizer instruments every inlined lane, and compiling that would take minutes.
#if defined(STW_ISA_SCALAR_CALLS)
#define STW_INLINE static inline __attribute__((unused))
#else
#define STW_INLINE static inline __attribute__((always_inline, unused))
#endif

namespace stw::kernels::STW_ISA {

STW_INLINE int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
STW_INLINE int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }
STW_INLINE int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
STW_INLINE int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }
STW_INLINE float fma1(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
STW_INLINE float sqrt1(float x) { return __builtin_sqrtf(x); }
STW_INLINE double sqrt1(double x) { return __builtin_sqrt(x); }
STW_INLINE uint32_t bits_of(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  return u;
}
STW_INLINE float float_of(uint32_t u) {
  float x;
  memcpy(&x, &u, 4);
  return x;
}

}  // namespace stw::kernels::STW_ISA

#include "kernels/lanes/half.h"

namespace stw::kernels::STW_ISA {

#if defined(STW_ISA_AVX512)
struct F16 {
  __m512 v;
};
STW_INLINE F16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
STW_INLINE void store(float* p, F16 a) { _mm512_storeu_ps(p, a.v); }
STW_INLINE F16 splat(float x) { return {_mm512_set1_ps(x)}; }
STW_INLINE F16 add(F16 a, F16 b) { return {_mm512_add_ps(a.v, b.v)}; }
STW_INLINE F16 sub(F16 a, F16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
STW_INLINE F16 mul(F16 a, F16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
STW_INLINE F16 div(F16 a, F16 b) { return {_mm512_div_ps(a.v, b.v)}; }
STW_INLINE F16 sqrt(F16 a) { return {_mm512_sqrt_ps(a.v)}; }
STW_INLINE F16 fma(F16 a, F16 b, F16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
STW_INLINE F16 maximum(F16 a, F16 b) { return {_mm512_max_ps(a.v, b.v)}; }  // a > b ? a : b
STW_INLINE F16 minimum(F16 a, F16 b) { return {_mm512_min_ps(a.v, b.v)}; }  // a < b ? a : b
STW_INLINE F16 round_even(F16 a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
STW_INLINE F16 scale_by_power(F16 a, F16 n) {  // a · 2^n; n is an integer and 2^n normal.
  __m512i i = _mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n.v), _mm512_set1_epi32(127)), 23);
  return {_mm512_mul_ps(a.v, _mm512_castsi512_ps(i))};
}
STW_INLINE F16 select_less(F16 a, F16 b, F16 yes, F16 no) {  // a < b ? yes : no
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), no.v, yes.v)};
}
// a = m · 2^exponent, returns m in [2/3, 4/3); a is normal and above 0.
STW_INLINE F16 split_exponent(F16 a, F16* exponent) {
  __m512i i = _mm512_castps_si512(a.v);
  __m512i e = _mm512_srai_epi32(_mm512_sub_epi32(i, _mm512_set1_epi32(0x3f2aaaab)), 23);
  exponent->v = _mm512_cvtepi32_ps(e);
  return {_mm512_castsi512_ps(_mm512_sub_epi32(i, _mm512_slli_epi32(e, 23)))};
}
STW_INLINE F16 load_bf16(const uint16_t* p) {
  return {_mm512_castsi512_ps(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p)), 16))};
}
STW_INLINE void store_bf16(uint16_t* p, F16 a) {
  const __m512i u = _mm512_castps_si512(a.v), high = _mm512_srli_epi32(u, 16);
  const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
  const __m512i nearest =
      _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd), 16);
  const __m512i quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
  const __m512i r = _mm512_mask_blend_epi32(_mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q), nearest, quiet);
  _mm256_storeu_si256((__m256i*)p, _mm512_cvtepi32_epi16(r));
}
STW_INLINE F16 load_f16(const uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p))};
}
STW_INLINE void store_f16(uint16_t* p, F16 a) {
  _mm256_storeu_si256((__m256i*)p, _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}
#elif defined(STW_ISA_AVX2)
struct F16 {
  __m256 a, b;
};
STW_INLINE F16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
STW_INLINE void store(float* p, F16 x) {
  _mm256_storeu_ps(p, x.a);
  _mm256_storeu_ps(p + 8, x.b);
}
STW_INLINE F16 splat(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
STW_INLINE F16 add(F16 x, F16 y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
STW_INLINE F16 sub(F16 x, F16 y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
STW_INLINE F16 mul(F16 x, F16 y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
STW_INLINE F16 div(F16 x, F16 y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
STW_INLINE F16 sqrt(F16 x) { return {_mm256_sqrt_ps(x.a), _mm256_sqrt_ps(x.b)}; }
STW_INLINE F16 fma(F16 x, F16 y, F16 z) {
  return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
STW_INLINE F16 maximum(F16 x, F16 y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
STW_INLINE F16 minimum(F16 x, F16 y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
STW_INLINE F16 round_even(F16 x) {
  return {_mm256_round_ps(x.a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
          _mm256_round_ps(x.b, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
STW_INLINE F16 scale_by_power(F16 x, F16 n) {
  __m256i bias = _mm256_set1_epi32(127);
  __m256i i = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n.a), bias), 23);
  __m256i j = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n.b), bias), 23);
  return {_mm256_mul_ps(x.a, _mm256_castsi256_ps(i)), _mm256_mul_ps(x.b, _mm256_castsi256_ps(j))};
}
STW_INLINE F16 select_less(F16 x, F16 y, F16 yes, F16 no) {
  return {_mm256_blendv_ps(no.a, yes.a, _mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ)),
          _mm256_blendv_ps(no.b, yes.b, _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ))};
}
STW_INLINE __m256 split_exponent8(__m256 x, __m256* exponent) {
  __m256i i = _mm256_castps_si256(x);
  __m256i e = _mm256_srai_epi32(_mm256_sub_epi32(i, _mm256_set1_epi32(0x3f2aaaab)), 23);
  *exponent = _mm256_cvtepi32_ps(e);
  return _mm256_castsi256_ps(_mm256_sub_epi32(i, _mm256_slli_epi32(e, 23)));
}
STW_INLINE F16 split_exponent(F16 x, F16* exponent) {
  return {split_exponent8(x.a, &exponent->a), split_exponent8(x.b, &exponent->b)};
}
STW_INLINE F16 load_bf16(const uint16_t* p) {
  __m256i lo = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p));
  __m256i hi = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)(p + 8)));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(lo, 16)), _mm256_castsi256_ps(_mm256_slli_epi32(hi, 16))};
}
STW_INLINE __m256i to_bf16_8(__m256 x) {  // In the lower halves of 8 words.
  const __m256i u = _mm256_castps_si256(x), high = _mm256_srli_epi32(u, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i nearest =
      _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd), 16);
  const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  return _mm256_blendv_epi8(nearest, quiet, _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
}
STW_INLINE void store_bf16(uint16_t* p, F16 x) {
  const __m256i mixed = _mm256_packus_epi32(to_bf16_8(x.a), to_bf16_8(x.b));  // Quarters 0, 2, 1, 3.
  _mm256_storeu_si256((__m256i*)p, _mm256_permute4x64_epi64(mixed, 0xd8));
}
STW_INLINE F16 load_f16(const uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p)),
          _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(p + 8)))};
}
STW_INLINE void store_f16(uint16_t* p, F16 x) {
  _mm_storeu_si128((__m128i*)p, _mm256_cvtps_ph(x.a, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128((__m128i*)(p + 8), _mm256_cvtps_ph(x.b, _MM_FROUND_TO_NEAREST_INT));
}
#elif defined(STW_ISA_NEON)
struct F16 {
  float32x4_t q[4];
};
#define STW_LANES(expression)                        \
  F16 r;                                             \
  for (int i = 0; i < 4; ++i) r.q[i] = (expression); \
  return r
STW_INLINE F16 load(const float* p) { STW_LANES(vld1q_f32(p + 4 * i)); }
STW_INLINE void store(float* p, F16 x) {
  for (int i = 0; i < 4; ++i) vst1q_f32(p + 4 * i, x.q[i]);
}
STW_INLINE F16 splat(float x) { STW_LANES(vdupq_n_f32(x)); }
STW_INLINE F16 add(F16 x, F16 y) { STW_LANES(vaddq_f32(x.q[i], y.q[i])); }
STW_INLINE F16 sub(F16 x, F16 y) { STW_LANES(vsubq_f32(x.q[i], y.q[i])); }
STW_INLINE F16 mul(F16 x, F16 y) { STW_LANES(vmulq_f32(x.q[i], y.q[i])); }
STW_INLINE F16 div(F16 x, F16 y) { STW_LANES(vdivq_f32(x.q[i], y.q[i])); }
STW_INLINE F16 sqrt(F16 x) { STW_LANES(vsqrtq_f32(x.q[i])); }
STW_INLINE F16 fma(F16 x, F16 y, F16 z) { STW_LANES(vfmaq_f32(z.q[i], x.q[i], y.q[i])); }
STW_INLINE F16 maximum(F16 x, F16 y) { STW_LANES(vbslq_f32(vcgtq_f32(x.q[i], y.q[i]), x.q[i], y.q[i])); }
STW_INLINE F16 minimum(F16 x, F16 y) { STW_LANES(vbslq_f32(vcltq_f32(x.q[i], y.q[i]), x.q[i], y.q[i])); }
STW_INLINE F16 round_even(F16 x) { STW_LANES(vrndnq_f32(x.q[i])); }
STW_INLINE F16 scale_by_power(F16 x, F16 n) {
  STW_LANES(vmulq_f32(
      x.q[i], vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtnq_s32_f32(n.q[i]), vdupq_n_s32(127)), 23))));
}
STW_INLINE F16 select_less(F16 x, F16 y, F16 yes, F16 no) {
  STW_LANES(vbslq_f32(vcltq_f32(x.q[i], y.q[i]), yes.q[i], no.q[i]));
}
STW_INLINE F16 split_exponent(F16 x, F16* exponent) {
  F16 r;
  for (int i = 0; i < 4; ++i) {
    int32x4_t u = vreinterpretq_s32_f32(x.q[i]);
    int32x4_t e = vshrq_n_s32(vsubq_s32(u, vdupq_n_s32(0x3f2aaaab)), 23);
    exponent->q[i] = vcvtq_f32_s32(e);
    r.q[i] = vreinterpretq_f32_s32(vsubq_s32(u, vshlq_n_s32(e, 23)));
  }
  return r;
}
STW_INLINE F16 load_bf16(const uint16_t* p) {
  STW_LANES(vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p + 4 * i), 16)));
}
STW_INLINE void store_bf16(uint16_t* p, F16 x) {
  for (int i = 0; i < 4; ++i) {
    const uint32x4_t u = vreinterpretq_u32_f32(x.q[i]), high = vshrq_n_u32(u, 16);
    const uint32x4_t odd = vandq_u32(high, vdupq_n_u32(1));
    const uint32x4_t nearest = vshrq_n_u32(vaddq_u32(vaddq_u32(u, vdupq_n_u32(0x7fff)), odd), 16);
    const uint32x4_t quiet = vorrq_u32(high, vdupq_n_u32(0x40));
    vst1_u16(p + 4 * i, vmovn_u32(vbslq_u32(vceqq_f32(x.q[i], x.q[i]), nearest, quiet)));
  }
}
STW_INLINE F16 load_f16(const uint16_t* p) {
  STW_LANES(vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p + 4 * i))));
}
STW_INLINE void store_f16(uint16_t* p, F16 x) {
  for (int i = 0; i < 4; ++i) vst1_u16(p + 4 * i, vreinterpret_u16_f16(vcvt_f16_f32(x.q[i])));
}
#undef STW_LANES
#else
struct F16 {
  float f[16];
};
#define STW_LANES(expression)                         \
  F16 r;                                              \
  for (int i = 0; i < 16; ++i) r.f[i] = (expression); \
  return r
STW_INLINE F16 load(const float* p) { STW_LANES(p[i]); }
STW_INLINE void store(float* p, F16 x) {
  for (int i = 0; i < 16; ++i) p[i] = x.f[i];
}
STW_INLINE F16 splat(float x) { STW_LANES(x); }
STW_INLINE F16 add(F16 x, F16 y) { STW_LANES(x.f[i] + y.f[i]); }
STW_INLINE F16 sub(F16 x, F16 y) { STW_LANES(x.f[i] - y.f[i]); }
STW_INLINE F16 mul(F16 x, F16 y) { STW_LANES(x.f[i] * y.f[i]); }
STW_INLINE F16 div(F16 x, F16 y) { STW_LANES(x.f[i] / y.f[i]); }
STW_INLINE F16 sqrt(F16 x) { STW_LANES(__builtin_sqrtf(x.f[i])); }
STW_INLINE F16 fma(F16 x, F16 y, F16 z) { STW_LANES(__builtin_fmaf(x.f[i], y.f[i], z.f[i])); }
STW_INLINE F16 maximum(F16 x, F16 y) { STW_LANES(x.f[i] > y.f[i] ? x.f[i] : y.f[i]); }
STW_INLINE F16 minimum(F16 x, F16 y) { STW_LANES(x.f[i] < y.f[i] ? x.f[i] : y.f[i]); }
STW_INLINE F16 round_even(F16 x) { STW_LANES(__builtin_rintf(x.f[i])); }
// n as an integer; 0 if n is a NaN. Any integer would do then: the x of scale_by_power is a NaN too, so its
// result is a NaN.
STW_INLINE int32_t whole(float n) { return n == n ? (int32_t)n : 0; }
STW_INLINE F16 scale_by_power(F16 x, F16 n) {
  STW_LANES(x.f[i] * float_of((uint32_t)(whole(n.f[i]) + 127) << 23));
}
STW_INLINE F16 select_less(F16 x, F16 y, F16 yes, F16 no) { STW_LANES(x.f[i] < y.f[i] ? yes.f[i] : no.f[i]); }
STW_INLINE F16 split_exponent(F16 x, F16* exponent) {
  F16 r;
  for (int i = 0; i < 16; ++i) {
    uint32_t u = bits_of(x.f[i]);
    int32_t e = (int32_t)(u - 0x3f2aaaabu) >> 23;
    exponent->f[i] = (float)e;
    r.f[i] = float_of(u - ((uint32_t)e << 23));
  }
  return r;
}
STW_INLINE F16 load_bf16(const uint16_t* p) { STW_LANES(from_bf16(p[i])); }
STW_INLINE void store_bf16(uint16_t* p, F16 x) {
  for (int i = 0; i < 16; ++i) p[i] = to_bf16(x.f[i]);
}
STW_INLINE F16 load_f16(const uint16_t* p) { STW_LANES(from_f16(p[i])); }
STW_INLINE void store_f16(uint16_t* p, F16 x) {
  for (int i = 0; i < 16; ++i) p[i] = to_f16(x.f[i]);
}
#undef STW_LANES
#endif

STW_INLINE F16 zero() { return splat(0.0f); }
// The first n of 16 lanes. The others are 0 on load, unwritten on store.
STW_INLINE F16 load_some(const float* p, int64_t n) {
  float f[16] = {0};
  memcpy(f, p, (size_t)n * 4);
  return load(f);
}
STW_INLINE void store_some(float* p, F16 x, int64_t n) {
  float f[16];
  store(f, x);
  memcpy(p, f, (size_t)n * 4);
}
// Lanes [n, 16) become 0.
STW_INLINE F16 first_lanes(F16 x, int64_t n) {
  if (n == 16) return x;
  float f[16];
  store(f, x);
  return load_some(f, n);
}
// 16 → 8 → 4 → 2 → 1: lane i is added to lane i + 8, then i + 4, i + 2, i + 1.
STW_INLINE float fold(F16 x) {
  float f[16];
  store(f, x);
  for (int h = 8; h > 0; h /= 2)
    for (int i = 0; i < h; ++i) f[i] = f[i] + f[i + h];
  return f[0];
}
STW_INLINE float fold_maximum(F16 x) {
  float f[16];
  store(f, x);
  for (int h = 8; h > 0; h /= 2)
    for (int i = 0; i < h; ++i) f[i] = f[i] > f[i + h] ? f[i] : f[i + h];
  return f[0];
}

// Element access by storage type; `at` counts elements.
STW_INLINE int64_t element_bytes(DType t) { return t == DType::f32 ? 4 : 2; }
STW_INLINE F16 load16(const void* p, DType t, int64_t at) {
  if (t == DType::f32) return load((const float*)p + at);
  return t == DType::bf16 ? load_bf16((const uint16_t*)p + at) : load_f16((const uint16_t*)p + at);
}
STW_INLINE void store16(void* p, DType t, int64_t at, F16 x) {
  if (t == DType::f32) store((float*)p + at, x);
  else if (t == DType::bf16) store_bf16((uint16_t*)p + at, x);
  else store_f16((uint16_t*)p + at, x);
}
STW_INLINE float load1(const void* p, DType t, int64_t at) {
  if (t == DType::f32) return ((const float*)p)[at];
  const uint16_t half = ((const uint16_t*)p)[at];
  return t == DType::bf16 ? from_bf16(half) : from_f16(half);
}
STW_INLINE void store1(void* p, DType t, int64_t at, float x) {
  if (t == DType::f32) ((float*)p)[at] = x;
  else ((uint16_t*)p)[at] = t == DType::bf16 ? to_bf16(x) : to_f16(x);
}
STW_INLINE F16 load16_some(const void* p, DType t, int64_t at, int64_t n) {
  float f[16] = {0};
  for (int64_t i = 0; i < n; ++i) f[i] = load1(p, t, at + i);
  return load(f);
}
STW_INLINE void store16_some(void* p, DType t, int64_t at, F16 x, int64_t n) {
  float f[16];
  store(f, x);
  for (int64_t i = 0; i < n; ++i) store1(p, t, at + i, f[i]);
}

// Calls body(tag) with the storage type as the constant tag.dtype, for loops that must not test it in every
// iteration.
template <DType t>
struct Stored {
  static constexpr DType dtype = t;
};
template <class Body>
STW_INLINE void with_dtype(DType t, const Body& body) {
  switch (t) {
    case DType::f32: return body(Stored<DType::f32>{});
    case DType::bf16: return body(Stored<DType::bf16>{});
    case DType::f16: return body(Stored<DType::f16>{});
  }
}

// Runs body(index, thread) for every index in [0, tasks); on the calling thread if there is only one task.
template <class Body>
STW_INLINE void parallel_for(const Launch& launch, int64_t tasks, const Body& body) {
  if (tasks <= 1 || launch.parallel == nullptr || launch.parallel->threads <= 1) {
    for (int64_t i = 0; i < tasks; ++i) body(i, 0);
    return;
  }
  launch.parallel->run(
      launch.parallel->self, tasks,
      [](void* context, int64_t index, int thread) { (*(const Body*)context)(index, thread); }, (void*)&body);
}

}  // namespace stw::kernels::STW_ISA
