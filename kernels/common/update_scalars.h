// The scalars of a step that every update rule reads, rounded once from double.
#pragma once
#include "kernels/lanes/lanes.h"

namespace stw::kernels::STW_ISA {

STW_INLINE F16 coefficient_of(const UpdateArgs& args) { return splat((float)args.state->coefficient); }
// The learning rate of this parameter, and the factor 1 - lr·decay of decoupled weight decay.
STW_INLINE double rate_of(const UpdateArgs& args) { return args.state->learning_rate * args.rate; }
STW_INLINE float kept_share(const UpdateArgs& args) { return (float)(1 - rate_of(args) * args.decay); }

template <class N>
STW_INLINE F16 load_gradient(const UpdateArgs& args, int which, int64_t at, N n) {
  return load_group(args.gradient[which], args.gradient_dtype == DType::bf16 ? DType::bf16 : DType::f32, at,
                    n);
}
// The sum of a parameter's gradients: normalised, unscaled and clipped.
STW_INLINE F16 scaled_gradient(const UpdateArgs& args, F16 coefficient, int64_t at, int64_t n) {
  F16 g = load_gradient(args, 0, at, n);
  if (args.gradient[1] != nullptr) g = add(g, load_gradient(args, 1, at, n));
  return mul(coefficient, g);
}

}  // namespace stw::kernels::STW_ISA
