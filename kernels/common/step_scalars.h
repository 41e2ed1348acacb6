// The scalars of an update, computed once a step, in double. They are: loss and gradient norm per target,
// without the loss scale; the decision whether the step is skipped; the one coefficient that normalises,
// unscales and clips; Adam's bias corrections; and the state carried to the next step, which is the running
// statistics for outliers and the loss scale. kernels.h has the rules. The coefficient of a skipped step is
// 0.
#pragma once
#include "kernels/lanes/lanes.h"

namespace stw::kernels::STW_ISA {

inline constexpr double largest_float = 3.40282346638528859811704183484516925440e+38;

// Repeated squaring: multiplications give the same bits everywhere; a library's pow need not.
STW_INLINE double power(double base, uint64_t exponent) {
  double result = 1;
  for (; exponent != 0; exponent >>= 1, base *= base)
    if (exponent & 1) result *= base;
  return result;
}

// The limit beyond which a value is an outlier.
STW_INLINE double limit_of(const StepState& state, double mean, double variance) {
  const bool judged = state.outlier_limit > 0 && state.observed >= outlier_history;
  const double deviation = sqrt1(variance), least = outlier_spread * (mean < 0 ? -mean : mean);
  return judged ? mean + state.outlier_limit * (deviation > least ? deviation : least) : __builtin_inf();
}

// All values weigh the same until there are so many that each weighs less than outlier_weight. Otherwise the
// first loss of a run, which is far from all later ones, would be more than a third of the statistics when
// the first step is judged.
STW_INLINE void observe(double x, uint64_t before, double& mean, double& variance) {
  const double even = 1 / (double)(before + 1), weight = even > outlier_weight ? even : outlier_weight;
  const double d = x - mean;
  mean = before == 0 ? x : mean + weight * d;
  variance = before == 0 ? 0 : (1 - weight) * (variance + weight * d * d);
}

// Judges a finite step. An outlier moves the statistics no further than a value at the limit.
STW_INLINE Skip judge(StepState& state) {
  const double loss_limit = limit_of(state, state.loss_mean, state.loss_variance);
  const double norm_limit = limit_of(state, state.norm_mean, state.norm_variance);
  const bool high_loss = state.loss > loss_limit, high_norm = state.grad_norm > norm_limit;
  observe(high_loss ? loss_limit : state.loss, state.observed, state.loss_mean, state.loss_variance);
  observe(high_norm ? norm_limit : state.grad_norm, state.observed, state.norm_mean, state.norm_variance);
  ++state.observed;
  return high_loss || high_norm ? skip_outlier : skip_none;
}

// As in PyTorch's GradScaler.
STW_INLINE void change_scale(StepState& state) {
  if (state.growth_interval == 0) return;
  if (state.skip == skip_not_finite) {
    state.loss_scale *= 0.5;
    state.good_steps = 0;
  } else if (state.skip == skip_none && ++state.good_steps == state.growth_interval) {
    if (2 * state.loss_scale <= largest_float) state.loss_scale *= 2;
    state.good_steps = 0;
  }
}

STW_INLINE bool is_finite(double x) { return x - x == 0; }

// The step's coefficient and the other scalars that depend on the decision.
STW_INLINE void scale_update(double clip, double scaled_targets, StepState& state) {
  state.coefficient = state.skip == skip_none ? clip / scaled_targets : 0;
  state.step_size = state.learning_rate / (1 - power(state.beta1, state.step + 1));
  state.correction2 = sqrt1(1 - power(state.beta2, state.step + 1));
}

// A fused update does not know the gradient norm before the updates. So begin_step decides from the loss
// alone whether the step is skipped, and end_step only checks that the norm is finite.
STW_INLINE void begin_step(StepState& state) {
  const bool empty = state.target_count == 0;
  const double scaled_targets =
      (empty ? 1 : (double)state.target_count) * (state.loss_scale * state.batch_factor);
  state.loss = empty ? 0 : state.loss_sum / (double)state.target_count;
  state.grad_norm = 0;
  state.skip = empty ? skip_no_target : is_finite(state.loss) ? skip_none : skip_not_finite;
  scale_update(1, scaled_targets, state);
}
STW_INLINE void end_step(double squares, StepState& state) {
  if (state.skip == skip_no_target) return;
  state.grad_norm = sqrt1(squares) / ((double)state.target_count * (state.loss_scale * state.batch_factor));
  if (state.skip == skip_none && !is_finite(state.grad_norm)) state.skip = skip_midway;
  // Updates the statistics. Fused updates have no outlier_limit, so the step is not skipped.
  if (state.skip == skip_none) state.skip = judge(state);
}

// Computes all of the scalars; `squares` is the sum of the squares of all gradients.
STW_INLINE void finish_step_with(double squares, StepState& state) {
  const bool empty = state.target_count == 0;
  const double targets = empty ? 1 : (double)state.target_count;
  const double scaled_targets = targets * (state.loss_scale * state.batch_factor);
  state.loss = empty ? 0 : state.loss_sum / targets;
  state.grad_norm = empty ? 0 : sqrt1(squares) / scaled_targets;
  const bool finite = is_finite(state.loss) && is_finite(state.grad_norm);
  state.skip = empty ? skip_no_target : finite ? judge(state) : skip_not_finite;
  double clip = 1;
  if (state.max_norm > 0) {
    const double ratio = state.max_norm / (state.grad_norm + 1e-6);
    clip = ratio < 1 ? ratio : 1;
  }
  scale_update(clip, scaled_targets, state);
  change_scale(state);
}

STW_INLINE void finish_part(FinishStepPart part, double squares, StepState& state) {
  if (part == FinishStepPart::begin) begin_step(state);
  else if (part == FinishStepPart::end) end_step(squares, state);
  else finish_step_with(squares, state);
}

}  // namespace stw::kernels::STW_ISA
