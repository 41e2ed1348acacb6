// The statistics of one row. The norm and its gradient share this code because the backward pass computes
// them again and must get the same bits. Sums are in fp32, in 16 lanes with one fixed fold. The variance
// takes a second pass over the row, around the mean, because E[x²] - E[x]² cancels.
#pragma once
#include "kernels/lanes/lanes.h"

namespace stw::kernels::STW_ISA {

// The mean is 0 for RMSNorm; rstd = 1 / sqrt(variance + epsilon).
struct RowStatistics {
  float mean, rstd;
};

// x - mean, with +0 in the lanes from n on: they add nothing to a sum.
STW_INLINE F16 centred(F16 x, F16 mean, int64_t n) { return first_lanes(sub(x, mean), n); }

STW_INLINE float rstd_of(float squares, int64_t features, float epsilon) {
  return 1.0f / sqrt1(squares / (float)features + epsilon);
}

STW_INLINE RowStatistics row_statistics(const NormArgs& args, int64_t row) {
  const int64_t begin = row * args.features, end = begin + args.features;
  float mean = 0.0f;
  if (!args.rms) {
    F16 sum = zero();
    for_groups(begin, end,
               [&](int64_t at, int64_t n) { sum = add(sum, load_group(args.x.data, args.x.dtype, at, n)); });
    mean = fold(sum) / (float)args.features;
  }
  F16 squares = zero();
  for_groups(begin, end, [&](int64_t at, int64_t n) {
    F16 x = centred(load_group(args.x.data, args.x.dtype, at, n), splat(mean), n);
    squares = fma(x, x, squares);
  });
  return {mean, rstd_of(fold(squares), args.features, args.epsilon)};
}

}  // namespace stw::kernels::STW_ISA
