// The arithmetic of the loss of an answer, except its sums (kernels.h has the formulas).
#pragma once
#include "kernels/common/math.h"

namespace stw::kernels::STW_ISA {

inline constexpr int span_columns = 2;  // The first and the last row of an answer.

// Half of the factor of every gradient, without the document's weight: a loss is the mean of two.
STW_INLINE float span_factor(const SpanLossArgs& args) {
  return (float)(args.state == nullptr ? 0.5 : 0.5 * args.state->loss_scale * args.state->batch_factor);
}

STW_INLINE bool span_counts(const SpanLossArgs& args, int64_t first) {
  // A weight of 0 times a NaN would be NaN.
  return args.targets[first] != ignored_target && (args.weights == nullptr || args.weights[first] != 0);
}

// The row that the document's value names, counted from its first row; -1: none of its `count` rows.
STW_INLINE int64_t span_target(const SpanLossArgs& args, int64_t first, int column, int64_t count) {
  const float value = args.values[first * span_columns + column];
  return value >= 0 && value < (float)count ? (int64_t)value : -1;
}

struct SpanEnd {
  float loss;
  float factor, target;  // The gradient is e^(x - largest)·factor; at the target it is `target`.
};
// From sum = Σ e^(x - largest).
STW_INLINE SpanEnd span_end(float largest, float sum, float target_logit, float factor) {
  SpanEnd end;
  end.loss = log1(sum) + (largest - target_logit);
  end.factor = (1.0f / sum) * factor;
  end.target = fma1(exp1(target_logit - largest), end.factor, -factor);
  return end;
}

}  // namespace stw::kernels::STW_ISA
