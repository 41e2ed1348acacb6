// Sixteen columns of a row; the last group of a row may be shorter.
#pragma once
#include "kernels/cpu/kernels_isa.h"

namespace stw::kernels::STW_ISA {

// Lanes after the end of the row are `past_end`.
template <DType dtype>
STW_INLINE F16 load_lanes(const void* p, int64_t at, int64_t lanes, float past_end) {
  if (lanes >= 16) return load16(p, dtype, at);
  float f[16];
  for (int i = 0; i < 16; ++i) f[i] = i < lanes ? load1(p, dtype, at + i) : past_end;
  return load(f);
}
template <DType dtype>
STW_INLINE void store_lanes(void* p, int64_t at, int64_t lanes, F16 x) {
  if (lanes >= 16) store16(p, dtype, at, x);
  else store16_some(p, dtype, at, x, lanes);
}

// Σ x over columns [at, at + count); group(column, lanes) gives sixteen values of x. The sum has 64 lanes.
// Each lane adds up its values of loss_columns columns at a time, then these partial sums. At the end, the
// lanes are folded pairwise.
template <class Group>
STW_INLINE float sum_of_columns(int64_t at, int64_t count, const Group& group) {
  F16 totals[4];
  for (int i = 0; i < 4; ++i) totals[i] = zero();
  for (int64_t begin = at; begin < at + count; begin += loss_columns) {
    const int64_t end = min(begin + loss_columns, at + count);
    F16 sums[4];
    for (int i = 0; i < 4; ++i) sums[i] = zero();
    int64_t j = begin;
    for (; j + 64 <= end; j += 64)
      for (int i = 0; i < 4; ++i) sums[i] = add(sums[i], group(j + 16 * i, (int64_t)16));
    for (int i = 0; j < end; j += 16, ++i) sums[i] = add(sums[i], group(j, end - j));
    for (int i = 0; i < 4; ++i) totals[i] = add(totals[i], sums[i]);
  }
  return fold(add(add(totals[0], totals[1]), add(totals[2], totals[3])));
}

}  // namespace stw::kernels::STW_ISA
