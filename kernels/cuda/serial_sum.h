// Sums whose order is part of their definition, at the speed of a chain of additions instead of one of accesses to memory:
// a block fetches the numbers side by side into shared memory, and a few of its threads add them from there.
#pragma once
#include "kernels/cuda/lanes.h"

namespace stw::kernels::cuda {

// total + values[0] + values[1] + …, one after the other as a Sum, by all threads of a block; thread 0 has the result.
template <class Sum, class T>
STW_DEVICE Sum serial_sum(Sum total, const T* values, int64_t count) {
  constexpr int64_t most = 1024;
  STW_SHARED(Sum, staged, most);
  for (int64_t begin = 0; begin < count; begin += most) {
    const int n = static_cast<int>(min(most, count - begin));
    for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) staged[i] = static_cast<Sum>(values[begin + i]);
    __syncthreads();
    for (int i = 0; threadIdx.x == 0 && i < n; ++i) total = total + staged[i];
    __syncthreads();
  }
  return total;
}

// Of `count` numbers, groups(i, n) for every sixteen of them, the squares' sum: 16 lanes, each a chain of multiply-adds over
// the groups in order, and a fold, as one thread of a CPU does it. By all threads of a block, whose quads take the groups in
// turn; those of the first quad have the result. `groups` may write memory. sum_squares is for one sum, sum_squares2 for two
// of the same pass.
inline constexpr int64_t staged_floats = 4096;
struct Squares2 { float a, b; };
template <class Groups>
STW_DEVICE float sum_squares(int64_t count, const Groups& groups) {
  STW_SHARED(float4, staged, staged_floats / 4);
  float* const floats = &staged[0].x;
  F16 sum = zero();
  for (int64_t begin = 0; begin < count; begin += staged_floats) {
    const int64_t end = min(count, begin + staged_floats);
    for (int64_t i = begin + threadIdx.x / quad * 16; i < end; i += blockDim.x / quad * 16)
      store(floats + (i - begin), groups(i, min(static_cast<int64_t>(16), end - i)));
    __syncthreads();
    for (int64_t i = begin; threadIdx.x < quad && i < end; i += 16) {
      const F16 x = load(floats + (i - begin));
      sum = fma(x, x, sum);
    }
    __syncthreads();
  }
  return fold(sum);
}
struct F16Pair { F16 a, b; };
template <class Groups>
STW_DEVICE Squares2 sum_squares2(int64_t count, const Groups& groups) {
  constexpr int64_t most = staged_floats / 2;
  STW_SHARED(float4, staged, staged_floats / 4);
  float* const floats = &staged[0].x;
  F16 sum = zero();   // of the first quad: a, of the second: b
  for (int64_t begin = 0; begin < count; begin += most) {
    const int64_t end = min(count, begin + most);
    for (int64_t i = begin + threadIdx.x / quad * 16; i < end; i += blockDim.x / quad * 16) {
      const F16Pair x = groups(i, min(static_cast<int64_t>(16), end - i));
      store(floats + (i - begin), x.a);
      store(floats + most + (i - begin), x.b);
    }
    __syncthreads();
    for (int64_t i = begin; threadIdx.x < 2 * quad && i < end; i += 16) {
      const F16 x = load(floats + threadIdx.x / quad * most + (i - begin));
      sum = fma(x, x, sum);
    }
    __syncthreads();
  }
  const float mine = fold(sum);
  return {mine, __shfl_sync(all_lanes, mine, quad)};
}

}  // namespace stw::kernels::cuda
