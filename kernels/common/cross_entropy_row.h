// The arithmetic of a row's loss (kernels.h has the formulas) but for its sums: the constants of a step, and the scalars at
// the end of a row.
#pragma once
#include "kernels/common/math.h"

namespace stw::kernels::STW_ISA {

// The constants of a step. Those of the plain loss are 0, 0, 1, 0, -1.
struct LossTerms {
  float smoothing, z_loss, scale;
  float shared;   // smoothing / vocabulary · scale, taken from every gradient
  float target;   // the constant of the target's: -(1 - smoothing)·scale - shared
};
STW_INLINE LossTerms loss_terms(const CrossEntropyArgs& args) {
  if (args.state == nullptr) return {0, 0, 1, 0, -1};
  const StepState& s = *args.state;
  const double scale = s.loss_scale * s.batch_factor, shared = s.label_smoothing / (double)args.vocabulary * scale;
  return {(float)s.label_smoothing, (float)s.z_loss, (float)scale, (float)shared,
          (float)-((1 - s.label_smoothing) * scale + shared)};
}

struct RowEnd {
  float loss;
  // An element's gradient is e^(x - largest)·factor + shared, the target's is `target`. A product minus 0 is the product, bit
  // for bit, as long as the 0 that is added is -0.
  float factor, shared, target;
};
// Of sum = Σ e^(x - largest); `mean` is that of the logits, and counts only with smoothing.
STW_INLINE RowEnd row_end(const LossTerms& terms, float largest, float sum, float mean, float target_logit, float weight) {
  const float log_sum = log1(sum), l = log_sum + largest;   // largest taken out, and with it
  RowEnd end;
  end.factor = (1.0f + 2.0f * terms.z_loss * l) * (1.0f / sum) * terms.scale * weight;
  end.shared = -terms.shared * weight;
  end.target = fma1(exp1(target_logit - largest), end.factor, terms.target * weight);
  float loss = log_sum + (largest - target_logit);
  if (terms.smoothing != 0) loss = fma1(terms.smoothing, target_logit - mean, loss);
  if (terms.z_loss != 0) loss = fma1(terms.z_loss * l, l, loss);
  end.loss = loss * weight;
  return end;
}

}  // namespace stw::kernels::STW_ISA
