// The loss of a logit against its value, and its derivative, for sixteen logits (kernels.h has the formulas).
#pragma once
#include "kernels/common/math.h"

namespace stw::kernels::STW_ISA {

struct ValueTerm {
  F16 loss, slope;
};

// log(1 + e) for e in [0, 1]. The quotient corrects the rounding of 1 + e (Goldberg, "What every computer
// scientist should know about floating-point arithmetic", 1991, theorem 4).
STW_INLINE F16 log_one_plus(F16 e) {
  const F16 sum = add(splat(1.0f), e), kept = sub(sum, splat(1.0f));
  return select_less(zero(), kept, mul(log(sum), div(e, kept)), e);
}

template <ValueLoss kind>
STW_INLINE ValueTerm value_term(F16 x, F16 y) {
  if (kind == ValueLoss::squared_error) {
    const F16 difference = sub(x, y);
    return {mul(difference, difference), mul(splat(2.0f), difference)};
  }
  const F16 e = exp(sub(zero(), maximum(x, sub(zero(), x)))), one = splat(1.0f);
  const F16 sigmoid = div(select_less(x, zero(), e, one), add(one, e));
  return {add(sub(maximum(x, zero()), mul(x, y)), log_one_plus(e)), sub(sigmoid, y)};
}

// The factor of every slope of a row, without the row's weight.
STW_INLINE float slope_factor(const ValueLossArgs& args) {
  const double scale = args.state == nullptr ? 1 : args.state->loss_scale * args.state->batch_factor;
  return (float)(scale / (double)args.count);
}

}  // namespace stw::kernels::STW_ISA
