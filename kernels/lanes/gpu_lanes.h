// Sixteen lanes of fp32 on a GPU. Four adjacent threads, a quad, hold four lanes each. So sixteen adjacent
// numbers are one access of 16 bytes a thread (8 bytes if they are stored in 16 bits), a fold is two
// shuffles, and the formulas of kernels/common give the CPU's bits (kernels/lanes/simd.h).
//
// All threads of a quad must take part in fold and fold_maximum. The code is compiled without contraction and
// without flushing of subnormal numbers; division and square root round correctly.
#pragma once
#include "kernels/lanes/device.h"

#define STW_ISA cuda
#define STW_INLINE STW_DEVICE

namespace stw::kernels::cuda {

inline constexpr int quad = 4;  // Threads.

STW_DEVICE int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
STW_DEVICE int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }
inline constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline constexpr int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

#if defined(__CUDACC__)
STW_DEVICE float fma1(float a, float b, float c) { return __fmaf_rn(a, b, c); }
STW_DEVICE uint32_t bits_of(float x) { return __float_as_uint(x); }
STW_DEVICE float float_of(uint32_t u) { return __uint_as_float(u); }
STW_DEVICE float sqrt1(float x) { return __fsqrt_rn(x); }
STW_DEVICE double fma1(double a, double b, double c) { return __fma_rn(a, b, c); }
STW_DEVICE double sqrt1(double x) { return __dsqrt_rn(x); }
#else
STW_DEVICE float fma1(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
STW_DEVICE uint32_t bits_of(float x) {
  uint32_t u;
  __builtin_memcpy(&u, &x, 4);
  return u;
}
STW_DEVICE float float_of(uint32_t u) {
  float x;
  __builtin_memcpy(&x, &u, 4);
  return x;
}
STW_DEVICE float sqrt1(float x) { return __builtin_sqrtf(x); }
STW_DEVICE double sqrt1(double x) { return __builtin_sqrt(x); }
#endif

}  // namespace stw::kernels::cuda

#include "kernels/lanes/half.h"

namespace stw::kernels::cuda {

// The four lanes of this thread.
struct F16 {
  float f[4];
};
STW_DEVICE int first_lane() { return 4 * static_cast<int>(threadIdx.x & 3u); }

#define STW_LANES(expression)                        \
  F16 r;                                             \
  for (int i = 0; i < 4; ++i) r.f[i] = (expression); \
  return r
STW_DEVICE F16 splat(float x) { STW_LANES(x); }
STW_DEVICE F16 zero() { return splat(0.0f); }
STW_DEVICE F16 add(F16 x, F16 y) { STW_LANES(x.f[i] + y.f[i]); }
STW_DEVICE F16 sub(F16 x, F16 y) { STW_LANES(x.f[i] - y.f[i]); }
STW_DEVICE F16 mul(F16 x, F16 y) { STW_LANES(x.f[i] * y.f[i]); }
STW_DEVICE F16 div(F16 x, F16 y) { STW_LANES(x.f[i] / y.f[i]); }
STW_DEVICE F16 sqrt(F16 x) { STW_LANES(sqrt1(x.f[i])); }
STW_DEVICE F16 fma(F16 x, F16 y, F16 z) { STW_LANES(fma1(x.f[i], y.f[i], z.f[i])); }
STW_DEVICE F16 maximum(F16 x, F16 y) { STW_LANES(x.f[i] > y.f[i] ? x.f[i] : y.f[i]); }
STW_DEVICE F16 minimum(F16 x, F16 y) { STW_LANES(x.f[i] < y.f[i] ? x.f[i] : y.f[i]); }
// Adding this constant rounds a number of magnitude below 2^22 to an integer, because near 1.5·2^23 an fp32
// number has no fraction bits. The lowest bits of the sum are the integer. This replaces the instructions for
// rounding and conversion, which run on the special function unit, at a quarter of the speed of others or
// less.
inline constexpr float rounding_bias = 12582912.0f;
STW_DEVICE F16 round_even(F16 x) { STW_LANES((x.f[i] + rounding_bias) - rounding_bias); }
STW_DEVICE F16 scale_by_power_below(F16 x, F16 n) {
  STW_LANES(x.f[i] * float_of((bits_of(n.f[i] + rounding_bias) << 23) + (126u << 23)));
}
// 1 / x for numbers that are at least 1. Below 2^126 the code is a compiler's division without its special
// cases. One integer comparison checks four numbers: positive floats are ordered like their bit patterns, and
// NaNs come last. From every approximation within 1 ulp, the correction gives the nearest float, except if
// all 23 bits of x's mantissa are set (Markstein, "IA-64 and Elementary Functions", 2000). In that case, the
// last bit of the nearest float is set (tests/simt/inverse_test.cpp tries all numbers).
STW_DEVICE F16 inverse(F16 x) {
  uint32_t most = bits_of(x.f[0]);
  for (int i = 1; i < 4; ++i) most = most > bits_of(x.f[i]) ? most : bits_of(x.f[i]);
  if (most >= bits_of(0x1p126f)) { STW_LANES(1.0f / x.f[i]); }
  F16 y;
  for (int i = 0; i < 4; ++i) {
    y.f[i] = approximate_inverse(x.f[i]);
    y.f[i] = fma1(y.f[i], fma1(-x.f[i], y.f[i], 1.0f), y.f[i]);
    if ((~bits_of(x.f[i]) & 0x7fffffu) == 0) y.f[i] = float_of(bits_of(y.f[i]) | 1u);
  }
  return y;
}
STW_DEVICE F16 select_less(F16 x, F16 y, F16 yes, F16 no) { STW_LANES(x.f[i] < y.f[i] ? yes.f[i] : no.f[i]); }
STW_DEVICE F16 split_exponent(F16 x, F16* exponent) {
  F16 r;
  for (int i = 0; i < 4; ++i) {
    const uint32_t u = bits_of(x.f[i]);
    const int32_t e = static_cast<int32_t>(u - 0x3f2aaaabu) >> 23;
    exponent->f[i] = static_cast<float>(e);
    r.f[i] = float_of(u - (static_cast<uint32_t>(e) << 23));
  }
  return r;
}

// Stands for the integer 16: the size of a group that is known to be full and to allow vector access. Loads
// and stores that get a FullGroup have no branch. This matters because a compiler does not move loads across
// a branch (ahead.h).
struct FullGroup {
  constexpr operator int64_t() const { return 16; }
};

// Sixteen numbers at p, by a vector access if the address allows it.
STW_DEVICE F16 load(const float* p, FullGroup) {
  const float4 v = load_vector<float4>(p + first_lane());
  return {{v.x, v.y, v.z, v.w}};
}
STW_DEVICE F16 load(const float* p) {
  if (reinterpret_cast<uintptr_t>(p) % 16 == 0) return load(p, FullGroup{});
  p += first_lane();
  STW_LANES(p[i]);
}
STW_DEVICE float4 as_vector(F16 x) { return {x.f[0], x.f[1], x.f[2], x.f[3]}; }
STW_DEVICE void store(float* p, F16 x) {
  p += first_lane();
  if (reinterpret_cast<uintptr_t>(p) % 16 == 0) return store_vector(p, as_vector(x));
  for (int i = 0; i < 4; ++i) p[i] = x.f[i];
}
STW_DEVICE void store_shared(float* p, F16 x) { store_shared16(p + first_lane(), as_vector(x)); }
STW_DEVICE void store_global(float* p, F16 x) { store_global16(p + first_lane(), as_vector(x)); }
struct Halves {
  uint16_t h[4];
};
STW_DEVICE Halves as_halves(uint2 v) {
  return {{static_cast<uint16_t>(v.x), static_cast<uint16_t>(v.x >> 16), static_cast<uint16_t>(v.y),
           static_cast<uint16_t>(v.y >> 16)}};
}
STW_DEVICE Halves load_halves(const uint16_t* p, FullGroup) {
  return as_halves(load_vector<uint2>(p + first_lane()));
}
STW_DEVICE Halves load_halves(const uint16_t* p) {
  if (reinterpret_cast<uintptr_t>(p) % 8 == 0) return load_halves(p, FullGroup{});
  p += first_lane();
  return {{p[0], p[1], p[2], p[3]}};
}
STW_DEVICE uint2 as_vector(Halves x) {
  return {x.h[0] | static_cast<uint32_t>(x.h[1]) << 16, x.h[2] | static_cast<uint32_t>(x.h[3]) << 16};
}
STW_DEVICE void store_halves(uint16_t* p, Halves x) {  // p is in global memory.
  p += first_lane();
  if (reinterpret_cast<uintptr_t>(p) % 8 == 0) return store_global8(p, as_vector(x));
  for (int i = 0; i < 4; ++i) p[i] = x.h[i];
}
// Conversion between fp32 and a 16-bit storage type by the device's instructions. They may replace a NaN by
// the device's canonical NaN.
STW_DEVICE F16 widened(uint2 v, DType t) {
  const float2 low = t == DType::bf16 ? unpack_halves<DType::bf16>(v.x) : unpack_halves<DType::f16>(v.x);
  const float2 high = t == DType::bf16 ? unpack_halves<DType::bf16>(v.y) : unpack_halves<DType::f16>(v.y);
  return {{low.x, low.y, high.x, high.y}};
}
STW_DEVICE uint2 rounded(F16 x, DType t) {
  if (t == DType::bf16)
    return {pack_halves<DType::bf16>(x.f[0], x.f[1]), pack_halves<DType::bf16>(x.f[2], x.f[3])};
  return {pack_halves<DType::f16>(x.f[0], x.f[1]), pack_halves<DType::f16>(x.f[2], x.f[3])};
}
// The same for numbers that are copied without arithmetic: a NaN keeps its sign and the mantissa bits that
// fit.
STW_DEVICE F16 widened_as_copied(Halves v, DType t) {
  if (t == DType::bf16) { STW_LANES(from_bf16(v.h[i])); }
  STW_LANES(from_f16(v.h[i]));
}
STW_DEVICE Halves rounded_as_copied(F16 x, DType t) {
  if (t == DType::bf16) return {{to_bf16(x.f[0]), to_bf16(x.f[1]), to_bf16(x.f[2]), to_bf16(x.f[3])}};
  return {{to_f16(x.f[0]), to_f16(x.f[1]), to_f16(x.f[2]), to_f16(x.f[3])}};
}
#undef STW_LANES

// Lanes [n, 16) become `other`.
STW_DEVICE F16 first_lanes(F16 x, int64_t n, float other = 0.0f) {
  for (int i = 0; i < 4; ++i)
    if (first_lane() + i >= n) x.f[i] = other;
  return x;
}

STW_DEVICE unsigned quad_mask() { return 0xfu << (threadIdx.x & 28u); }
// 16 → 8 → 4 → 2 → 1: lane i is added to lane i + 8, then i + 4, i + 2, i + 1. Every thread of the quad gets
// the sum.
STW_DEVICE float fold(F16 x) {
  for (int threads = 2; threads > 0; threads /= 2)
    for (int i = 0; i < 4; ++i) {
      const float other = __shfl_xor_sync(quad_mask(), x.f[i], threads);
      x.f[i] = x.f[i] + other;
    }
  return (x.f[0] + x.f[2]) + (x.f[1] + x.f[3]);
}
// The same for sixteen adjacent threads with one lane each.
STW_DEVICE float fold_threads(float x) {
  for (int threads = 8; threads > 0; threads /= 2)
    x = x + __shfl_xor_sync(0xffffu << (threadIdx.x & 16u), x, threads);
  return x;
}
STW_DEVICE float fold_maximum(F16 x) {
  for (int threads = 2; threads > 0; threads /= 2)
    for (int i = 0; i < 4; ++i) {
      // The lower lane first, as on the CPU: the order matters for NaN.
      const float other = __shfl_xor_sync(quad_mask(), x.f[i], threads);
      const bool lower = (threadIdx.x & static_cast<unsigned>(threads)) == 0;
      const float a = lower ? x.f[i] : other, b = lower ? other : x.f[i];
      x.f[i] = a > b ? a : b;
    }
  const float a = x.f[0] > x.f[2] ? x.f[0] : x.f[2], b = x.f[1] > x.f[3] ? x.f[1] : x.f[3];
  return a > b ? a : b;
}

// Element access by storage type; `at` counts elements.
STW_DEVICE int64_t element_bytes(DType t) { return t == DType::f32 ? 4 : 2; }
STW_DEVICE const void* element(const void* p, DType t, int64_t at) {
  return static_cast<const char*>(p) + at * element_bytes(t);
}
STW_DEVICE void* element(void* p, DType t, int64_t at) {
  return static_cast<char*>(p) + at * element_bytes(t);
}
STW_DEVICE float load1(const void* p, DType t, int64_t at) {
  if (t == DType::f32) return static_cast<const float*>(p)[at];
  const uint16_t half = static_cast<const uint16_t*>(p)[at];
  return t == DType::bf16 ? from_bf16(half) : from_f16(half);
}
STW_DEVICE void store1(void* p, DType t, int64_t at, float x) {
  if (t == DType::f32) static_cast<float*>(p)[at] = x;
  else static_cast<uint16_t*>(p)[at] = t == DType::bf16 ? to_bf16(x) : to_f16(x);
}
STW_DEVICE F16 load16(const void* p, DType t, int64_t at) {
  if (t == DType::f32) return load(static_cast<const float*>(p) + at);
  return widened_as_copied(load_halves(static_cast<const uint16_t*>(p) + at), t);
}
STW_DEVICE void store16(void* p, DType t, int64_t at, F16 x) {  // p is in global memory.
  if (t == DType::f32) {
    float* const to = static_cast<float*>(p) + at;
    return reinterpret_cast<uintptr_t>(to) % 16 == 0 ? store_global(to, x) : store(to, x);
  }
  store_halves(static_cast<uint16_t*>(p) + at, as_halves(rounded(x, t)));
}

// A group has 16 elements; the last one of a range may have n < 16. Lanes from n on are 0 on load, unwritten
// on store.
STW_DEVICE F16 load_group(const void* p, DType t, int64_t at, int64_t n) {
  if (n >= 16) return load16(p, t, at);
  F16 x = zero();
  for (int i = 0; i < 4; ++i)
    if (first_lane() + i < n) x.f[i] = load1(p, t, at + first_lane() + i);
  return x;
}
STW_DEVICE void store_group(void* p, DType t, int64_t at, F16 x, int64_t n) {
  if (n >= 16) return store16(p, t, at, x);
  for (int i = 0; i < 4; ++i)
    if (first_lane() + i < n) store1(p, t, at + first_lane() + i, x.f[i]);
}
STW_DEVICE F16 load_group(const void* p, DType t, int64_t at, FullGroup n) {
  if (t == DType::f32) return load(static_cast<const float*>(p) + at, n);
  return widened(load_vector<uint2>(static_cast<const uint16_t*>(p) + at + first_lane()), t);
}
STW_DEVICE void store_group(void* p, DType t, int64_t at, F16 x, FullGroup) {  // p is in global memory.
  if (t == DType::f32) return store_global(static_cast<float*>(p) + at, x);
  store_global8(static_cast<uint16_t*>(p) + at + first_lane(), rounded(x, t));
}
// Load and store for numbers that are copied without arithmetic.
STW_DEVICE F16 load_copied(const void* p, DType t, int64_t at, FullGroup n) {
  if (t == DType::f32) return load_group(p, t, at, n);
  return widened_as_copied(load_halves(static_cast<const uint16_t*>(p) + at, n), t);
}
STW_DEVICE F16 load_copied(const void* p, DType t, int64_t at, int64_t n) { return load_group(p, t, at, n); }
STW_DEVICE void store_copied(void* p, DType t, int64_t at, F16 x, FullGroup n) {
  if (t == DType::f32) store_group(p, t, at, x, n);
  else store_global8(static_cast<uint16_t*>(p) + at + first_lane(), as_vector(rounded_as_copied(x, t)));
}
STW_DEVICE void store_copied(void* p, DType t, int64_t at, F16 x, int64_t n) {
  if (t == DType::f32 || n < 16) store_group(p, t, at, x, n);
  else store_halves(static_cast<uint16_t*>(p) + at, rounded_as_copied(x, t));
}
// Whether all whole groups at multiples of `step` elements from p may be accessed as FullGroup. True for
// null.
inline bool vectors_at(const void* p, DType t, int64_t step = 16) {
  return step % 4 == 0 && reinterpret_cast<uintptr_t>(p) % (t == DType::f32 ? 16 : 8) == 0;
}
// Calls body(at, n) for the groups of [begin, end), in order, by one quad.
template <class Body>
STW_DEVICE void for_groups(int64_t begin, int64_t end, const Body& body) {
  int64_t at = begin;
  for (; at + 16 <= end; at += 16) body(at, static_cast<int64_t>(16));
  if (at < end) body(at, end - at);
}

// A divisor for many numbers below 2^31, by multiplication (Granlund and Montgomery, "Division by invariant
// integers using multiplication", 1994). A division takes about 30 instructions.
struct Divisor {
  int64_t number;
  uint32_t factor;
  int shift;
};
inline Divisor divisor_of(int64_t number) {  // number > 0.
  int shift = 31;
  // factor = 2^shift / number, rounded up, fits into 32 bits.
  while (shift < 62 && (int64_t{1} << (shift - 31)) < number) ++shift;
  return {number,
          number < int64_t{1} << 31
              ? static_cast<uint32_t>(((uint64_t{1} << shift) + static_cast<uint64_t>(number) - 1) /
                                      static_cast<uint64_t>(number))
              : 0,
          shift};
}
// x >= 0.
STW_DEVICE int quotient(int x, const Divisor& by) {
  return static_cast<int>(static_cast<uint64_t>(static_cast<uint32_t>(x)) * by.factor >> by.shift);
}
STW_DEVICE int64_t quotient(int64_t x, const Divisor& by) {
  return x < int64_t{1} << 31 ? quotient(static_cast<int>(x), by) : x / by.number;
}

// ---- distribution of work over a grid
inline constexpr int block_threads = 256;
inline constexpr int64_t block_quads = block_threads / quad;

inline int blocks_for(int64_t tasks, int64_t tasks_of_block) {
  const int64_t blocks = ceil_div(tasks, tasks_of_block);
  return static_cast<int>(blocks < 1 ? 1 : blocks > largest_blocks ? largest_blocks : blocks);
}
// Calls body(task) for tasks [0, tasks), which are rows or groups. A quad takes a task; adjacent quads take
// adjacent tasks.
template <class Body>
STW_DEVICE void for_tasks_of_grid(int64_t tasks, const Body& body) {
  const int64_t quads = static_cast<int64_t>(gridDim.x) * blockDim.x / quad;
  for (int64_t task = thread_of_grid() / quad; task < tasks; task += quads) body(task);
}
// Calls body(at, n) for all groups of [0, count).
template <class Body>
STW_DEVICE void for_groups_of_grid(int64_t count, const Body& body) {
  for_tasks_of_grid(ceil_div(count, 16),
                    [&](int64_t task) { body(task * 16, min(static_cast<int64_t>(16), count - task * 16)); });
}
// The same for the groups of [begin, end), by one block.
template <class Body>
STW_DEVICE void for_groups_of_block(int64_t begin, int64_t end, const Body& body) {
  for (int64_t at = begin + threadIdx.x / quad * 16; at < end; at += blockDim.x / quad * 16)
    body(at, min(static_cast<int64_t>(16), end - at));
}
inline int blocks_for_elements(int64_t count) { return blocks_for(count, block_quads * 16); }
inline int blocks_for_rows(int64_t rows) { return blocks_for(rows, block_quads); }

}  // namespace stw::kernels::cuda
