// The scalars of an update, once a step, all in double: loss and gradient norm per target, the verdict on them, the one
// coefficient that normalises and clips, and Adam's bias corrections. A step without targets, or with a loss or norm
// that is not finite, is marked to be skipped; its coefficient is 0.
#include "kernels/cpu/kernels_isa.h"

namespace stw::kernels::STW_ISA {

namespace {

// Repeated squaring: multiplications alone give the same bits everywhere, the library's pow need not.
double power(double base, uint64_t exponent) {
  double result = 1;
  for (; exponent != 0; exponent >>= 1, base *= base)
    if (exponent & 1) result *= base;
  return result;
}

}  // namespace

void finish_step(const Launch&, const FinishStepArgs& args) {
  StepState& state = *args.state;
  double squares = 0;
  for (int64_t i = 0; i < args.sums; ++i) squares += args.sum[i];
  const bool empty = state.target_count == 0;
  const double targets = empty ? 1 : (double)state.target_count;
  state.loss = empty ? 0 : state.loss_sum / targets;
  state.grad_norm = empty ? 0 : __builtin_sqrt(squares) / targets;
  const bool finite = __builtin_isfinite(state.loss) && __builtin_isfinite(state.grad_norm);
  state.skip = empty ? 1 : finite ? 0 : 2;
  double clip = 1;
  if (state.max_norm > 0) {
    const double ratio = state.max_norm / (state.grad_norm + 1e-6);
    clip = ratio < 1 ? ratio : 1;
  }
  state.coefficient = state.skip == 0 ? clip / targets : 0;
  state.step_size = state.learning_rate / (1 - power(state.beta1, state.step + 1));
  state.correction2 = __builtin_sqrt(1 - power(state.beta2, state.step + 1));
}

}  // namespace stw::kernels::STW_ISA
