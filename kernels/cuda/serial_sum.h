// Sums whose order is part of their definition. They run at the speed of a chain of additions, not of memory
// accesses: a block fetches the numbers into shared memory, and a few of its threads add them from there.
#pragma once
#include "kernels/cuda/ahead.h"

namespace stw::kernels::cuda {

// total + values[0] + values[1] + …, in order, as a Sum. Called by all threads of a block; thread 0 has the
// result.
template <class Sum, class T>
STW_DEVICE Sum serial_sum(Sum total, const T* values, int64_t count) {
  constexpr int64_t most = 1024;
  STW_SHARED(Sum, staged, most);
  for (int64_t begin = 0; begin < count; begin += most) {
    const int n = static_cast<int>(min(most, count - begin));
    for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x))
      staged[i] = static_cast<Sum>(values[begin + i]);
    __syncthreads();
    if (threadIdx.x == 0)
      for_each_ahead<8>(
          n, [&](int i) { return staged[i]; }, [&](Sum x) { total = total + x; });
    __syncthreads();
  }
  return total;
}

// The same for floats, in double from +0. All partial sums are multiples of the last bit of the smallest
// number. If they are also below 2^53 times that bit, none is rounded, and every order gives the same sum.
// This holds for thousands of numbers whose magnitudes differ by a factor of less than about 2^16. Other
// numbers, and NaN, are added in order.
//
// `most` and `least_less_one` + 1 are the bit patterns of the largest magnitude and of the smallest one
// except 0.
struct FloatsSum {
  double sum;
  uint32_t most, least_less_one;
};
STW_DEVICE FloatsSum both_of(const FloatsSum& a, const FloatsSum& b) {
  return {a.sum + b.sum, a.most > b.most ? a.most : b.most,
          a.least_less_one < b.least_less_one ? a.least_less_one : b.least_less_one};
}
// The warp's result for values[first], values[first + step], … of each lane; `first` differs between lanes.
STW_DEVICE FloatsSum sum_of_warp(const float* values, int64_t count, int64_t first, int64_t step) {
  FloatsSum result = {0.0, 0, ~0u};
  for_each_ahead<8>(
      first < count ? ceil_div(count - first, step) : 0, [&](int64_t i) { return values[first + i * step]; },
      [&](float x) {
        const uint32_t size = bits_of(x) & 0x7fffffffu;
        result = both_of(result, {static_cast<double>(x), size, size - 1});
      });
  STW_UNROLL
  for (int lanes = 1; lanes < 32; lanes *= 2)
    result = both_of(result, {__shfl_xor_sync(all_lanes, result.sum, lanes),
                              __shfl_xor_sync(all_lanes, result.most, lanes),
                              __shfl_xor_sync(all_lanes, result.least_less_one, lanes)});
  return result;
}
STW_DEVICE bool is_exact(const FloatsSum& all, int64_t count) {
  const int top = static_cast<int>(all.most >> 23), bottom = static_cast<int>((all.least_less_one + 1) >> 23);
  int bits = 24;  // Bits of the largest possible sum, in units of the last bit of the smallest number.
  while (bits < 53 && int64_t{1} << (bits - 24) < count) ++bits;
  return all.most == 0 || (top < 255 && bits + (top - bottom) <= 53 && int64_t{1} << (bits - 24) >= count);
}
STW_DEVICE double serial_sum_of_floats(const float* values, int64_t count) {
  constexpr int most_warps = 32;
  STW_SHARED(FloatsSum, parts, most_warps);
  const FloatsSum of_warp = sum_of_warp(values, count, threadIdx.x, blockDim.x);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = of_warp;
  __syncthreads();
  FloatsSum all = parts[0];
  for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) all = both_of(all, parts[warp]);
  __syncthreads();  // All threads have read.
  return is_exact(all, count) ? all.sum : serial_sum(0.0, values, count);
}
// The same by one warp; all of its lanes have the result.
STW_DEVICE double serial_sum_of_floats_by_warp(const float* values, int64_t count) {
  const FloatsSum all = sum_of_warp(values, count, threadIdx.x % 32, 32);
  if (is_exact(all, count)) return all.sum;
  double sum = 0.0;
  for_each_ahead<8>(
      count, [&](int64_t i) { return values[i]; }, [&](float x) { sum = sum + static_cast<double>(x); });
  return sum;
}

// The sum of squares of `count` numbers; groups(i, n) gives sixteen of them. It has 16 lanes: each is a chain
// of multiply-adds over the groups in order, then one fold, as on one thread of a CPU. Called by all threads
// of a block. Its quads call `groups` in turn. Its first sixteen threads add up one chain each and get the
// result. (If one quad added up four chains a thread, it would issue twice as many instructions.) `groups`
// may write memory. With `vectors`, n is FullGroup for whole groups, and several are requested before one is
// used. sum_squares computes one sum, sum_squares2 two in the same pass.
inline constexpr int64_t staged_floats = 4096;
struct Squares2 {
  float a, b;
};
template <class Groups>
STW_DEVICE float sum_squares(int64_t count, const Groups& groups, bool vectors = false) {
  STW_SHARED(float4, staged, staged_floats / 4);
  float* const floats = &staged[0].x;
  float sum = 0.0f;
  for (int64_t begin = 0; begin < count; begin += staged_floats) {
    const int64_t end = min(count, begin + staged_floats);
    for_groups_ahead<4>(
        static_cast<int>(threadIdx.x / quad), static_cast<int>(blockDim.x / quad),
        static_cast<int>(end - begin), vectors, [&](int i, auto n) { return groups(begin + i, n); },
        [&](const F16& x, int i, auto) { store_shared(floats + i, x); });
    __syncthreads();
    if (threadIdx.x < 16)
      for_each_ahead<8>(
          static_cast<int>(ceil_div(end - begin, 16)),
          [&](int group) { return floats[16 * group + static_cast<int>(threadIdx.x)]; },
          [&](float x) { sum = fma1(x, x, sum); });
    __syncthreads();
  }
  return threadIdx.x < 16 ? fold_threads(sum) : 0.0f;
}
struct F16Pair {
  F16 a, b;
};
template <class Groups>
STW_DEVICE Squares2 sum_squares2(int64_t count, const Groups& groups) {
  constexpr int64_t most = staged_floats / 2;
  STW_SHARED(float4, staged, staged_floats / 4);
  float* const floats = &staged[0].x;
  float sum = 0.0f;  // First sixteen threads: a; next sixteen: b.
  for (int64_t begin = 0; begin < count; begin += most) {
    const int64_t end = min(count, begin + most);
    for (int64_t i = begin + threadIdx.x / quad * 16; i < end; i += blockDim.x / quad * 16) {
      const F16Pair x = groups(i, min(static_cast<int64_t>(16), end - i));
      store(floats + (i - begin), x.a);
      store(floats + most + (i - begin), x.b);
    }
    __syncthreads();
    if (threadIdx.x < 32)
      for_each_ahead<8>(
          static_cast<int>(ceil_div(end - begin, 16)),
          [&](int group) { return floats[threadIdx.x / 16 * most + 16 * group + threadIdx.x % 16]; },
          [&](float x) { sum = fma1(x, x, sum); });
    __syncthreads();
  }
  if (threadIdx.x >= 32) return {0.0f, 0.0f};
  const float mine = fold_threads(sum);
  return {mine, __shfl_sync(all_lanes, mine, 16)};
}

}  // namespace stw::kernels::cuda
