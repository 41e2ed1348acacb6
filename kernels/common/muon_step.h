// The arithmetic of Muon (Jordan et al., kellerjordan.github.io/posts/muon) except its matrix products, in
// the order of torch.optim.Muon. With f = 1 - momentum, all in fp32:
//   m = fma(momentum, m, f·g),  u = fma(momentum, m, f·g)      Nesterov
//   X = u / max(|u|, 1e-7)                                      so that no singular value is above 1
//   five times  A = X·Xᵀ,  B = b·A + c·A·A + a·I,  X = B·X   a singular value s → a·s + b·s³ + c·s⁵
//   p = fma(-lr·0.2·√max(rows, columns), X, p · decay)                         decay = 1 - lr·weight_decay
// The last factor makes the root mean square of an update about as large as AdamW's. With more rows than
// columns, A = Xᵀ·X and X = X·B, which is the same iteration for the transposed matrix. The addition of `a`
// to the diagonal of B saves a pass over X. On tensor cores, a·X is added in fp32
// (cuda/update/tensor_muon.cu).
#pragma once
#include "kernels/common/update_scalars.h"

namespace stw::kernels::STW_ISA {

inline constexpr int muon_iterations = 5;
inline constexpr float muon_a = 3.4445f, muon_b = -4.7750f, muon_c = 2.0315f;

struct MuonScalars {
  F16 coefficient, momentum, one_minus_momentum;
};
STW_INLINE MuonScalars muon_scalars(const UpdateArgs& args) {
  return {coefficient_of(args), splat((float)args.state->momentum), splat((float)(1 - args.state->momentum))};
}

// Updates m and returns u.
STW_INLINE F16 mixed_momentum(const MuonScalars& s, const UpdateArgs& args, int64_t at, int64_t n) {
  const F16 g = mul(s.one_minus_momentum, scaled_gradient(args, s.coefficient, at, n));
  const F16 m = fma(s.momentum, load_group(args.first, DType::f32, at, n), g);
  store_group(args.first, DType::f32, at, m, n);
  return fma(s.momentum, m, g);
}
// 1 / max(|u|, 1e-7) from the sum of u's squares.
STW_INLINE float muon_scale(double squares) {
  const double norm = sqrt1(squares), smallest = 1e-7;
  return (float)(1 / (norm > smallest ? norm : smallest));
}
STW_INLINE float muon_step(const UpdateArgs& args, int64_t longer) {
  return (float)(-rate_of(args) * 0.2 * sqrt1((double)longer));
}

}  // namespace stw::kernels::STW_ISA
