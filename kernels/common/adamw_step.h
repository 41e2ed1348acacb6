// The arithmetic of AdamW (Loshchilov and Hutter, arXiv:1711.05101), in the order of torch.optim.AdamW. The
// updates with 32-bit and with 8-bit states share it. All arithmetic is in fp32, in this order, and every
// operation in a line rounds once:
//   p = p · decay                                  decay = 1 - lr·weight_decay
//   m = fma(beta1, m, (1 - beta1)·g)
//   v = fma(beta2, v, ((1 - beta2)·g)·g),  r = √v
//   p = fma(-step_size, m / fma(r, 1/correction2, epsilon), p)
// The scalars are computed in double and rounded once. The parameter is rounded once more when it is stored.
#pragma once
#include "kernels/common/update_scalars.h"

namespace stw::kernels::STW_ISA {

struct AdamWScalars {
  F16 decay, beta1, one_minus_beta1, beta2, one_minus_beta2, step_size, correction, epsilon;
};

STW_INLINE AdamWScalars adamw_scalars(const UpdateArgs& args) {
  const StepState& s = *args.state;
  return {splat(kept_share(args)),           splat((float)s.beta1),
          splat((float)(1 - s.beta1)),       splat((float)s.beta2),
          splat((float)(1 - s.beta2)),       splat((float)(-s.step_size * args.rate)),
          splat((float)(1 / s.correction2)), splat((float)s.epsilon)};
}

STW_INLINE F16 next_first(const AdamWScalars& s, F16 m, F16 g) {
  return fma(s.beta1, m, mul(s.one_minus_beta1, g));
}
STW_INLINE F16 next_second(const AdamWScalars& s, F16 v, F16 g) {
  return fma(s.beta2, v, mul(mul(s.one_minus_beta2, g), g));
}
STW_INLINE F16 next_parameter(const AdamWScalars& s, F16 p, F16 m, F16 root) {
  return fma(s.step_size, div(m, fma(root, s.correction, s.epsilon)), mul(p, s.decay));
}

}  // namespace stw::kernels::STW_ISA
