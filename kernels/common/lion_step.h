// The arithmetic of Lion (Chen et al., arXiv:2302.06675, algorithm 2). The updates with a 32-bit and with an
// 8-bit state share it. All arithmetic is in fp32, in this order, and every operation in a line rounds once:
//   c = fma(beta1, m, (1 - beta1)·g)
//   p = p · decay - lr·sign(c)                     decay = 1 - lr·weight_decay, sign(0) = 0
//   m = fma(beta2, m, (1 - beta2)·g)
// The scalars are computed in double and rounded once.
#pragma once
#include "kernels/common/update_scalars.h"

namespace stw::kernels::STW_ISA {

struct LionScalars {
  F16 decay, beta1, one_minus_beta1, beta2, one_minus_beta2, up, down;
};

STW_INLINE LionScalars lion_scalars(const UpdateArgs& args) {
  const StepState& s = *args.state;
  const float rate = (float)rate_of(args);
  return {splat(kept_share(args)),
          splat((float)s.beta1),
          splat((float)(1 - s.beta1)),
          splat((float)s.beta2),
          splat((float)(1 - s.beta2)),
          splat(rate),
          splat(-rate)};
}

STW_INLINE F16 next_momentum(const LionScalars& s, F16 m, F16 g) {
  return fma(s.beta2, m, mul(s.one_minus_beta2, g));
}
STW_INLINE F16 next_parameter(const LionScalars& s, F16 p, F16 m, F16 g) {
  const F16 c = fma(s.beta1, m, mul(s.one_minus_beta1, g));
  const F16 step = select_less(zero(), c, s.up, select_less(c, zero(), s.down, zero()));
  return sub(mul(p, s.decay), step);
}

}  // namespace stw::kernels::STW_ISA
