// The arithmetic of Adafactor (Shazeer and Stern, arXiv:1804.04235), as torch.optim.Adafactor defines it: the
// second moments of a matrix are the product of a column and a row, and there is no first moment. lr is the
// learning rate, t the step, eps1 = 2^-23, eps2 = 1e-3:
//   alpha = max(eps2, rms(p))·min(lr, 1/√t)                                  rms(p) before the decay
//   p = p · (1 - lr·weight_decay)
//   R_i = (1 - share)·R_i + share·mean_j(g_ij²),  C_j likewise over i         share = t^-0.8
//   v_ij = R_i·C_j / max(mean(R), eps1);  a vector: v = (1 - share)·v + share·g²
//   u = g / √max(v, eps1²)
//   p = p - alpha / max(1, rms(u)) · u
// Sums within a line (adafactor_layout.h) are in fp32 by 16 lanes, sums over lines in double. Sums along a
// column are taken in blocks of 64 rows, which are added in order.
#pragma once
#include "kernels/common/adafactor_layout.h"
#include "kernels/common/update_scalars.h"

namespace stw::kernels::STW_ISA {

struct AdafactorScalars {
  F16 coefficient;
  float kept, fresh;
};
STW_INLINE AdafactorScalars adafactor_scalars(const UpdateArgs& args) {
  return {coefficient_of(args), (float)(1 - args.state->fresh_share), (float)args.state->fresh_share};
}

STW_INLINE F16 mixed_squares(const AdafactorScalars& s, F16 old, F16 square) {
  return fma(splat(s.kept), old, mul(splat(s.fresh), square));
}
// The new state of a row from the sum of its squares.
STW_INLINE float mixed_row(const AdafactorScalars& s, float old, float squares, int64_t columns) {
  return fma1(s.kept, old, s.fresh * (squares / (float)columns));
}
STW_INLINE float mean_of_rows(double total, int64_t rows) {
  const float mean = (float)(total / (double)rows);
  return mean > 0x1p-23f ? mean : 0x1p-23f;
}
STW_INLINE double root_mean(double squares, int64_t count) { return sqrt1(squares / (double)count); }

STW_INLINE double adafactor_alpha(const UpdateArgs& args, double size) {  // size: rms(p)
  constexpr double smallest_scale = 1e-3;                                 // eps2
  const double rate = rate_of(args), inverse_root = args.state->inverse_root;
  return (size > smallest_scale ? size : smallest_scale) * (rate < inverse_root ? rate : inverse_root);
}
STW_INLINE float adafactor_step(double alpha, double update) {
  return (float)(-alpha / (update > 1 ? update : 1));
}

// u. For a matrix, `row` is R_i / mean(R) and `second` the column's state; for a vector, `row` is 1.
STW_INLINE F16 adafactor_update(F16 row, F16 second, F16 g) {
  const F16 v = mul(row, second);
  return div(g, sqrt(maximum(v, splat(0x1p-46f))));
}

}  // namespace stw::kernels::STW_ISA
