// The arithmetic of a row's loss except its sums: the constants of a step and the scalars at the end of a
// row. kernels.h has the formulas.
#pragma once
#include "kernels/common/math.h"

namespace stw::kernels::STW_ISA {

// The constants of a step. Those of the plain loss are 0, 0, 1, 0, -1.
struct LossTerms {
  float smoothing, z_loss, scale;
  float shared;  // smoothing / vocabulary · scale, subtracted from every gradient.
  float target;  // Constant term of the target's gradient: -(1 - smoothing)·scale - shared.
};
STW_INLINE LossTerms loss_terms(const CrossEntropyArgs& args) {
  if (args.state == nullptr) return {0, 0, 1, 0, -1};
  const StepState& s = *args.state;
  const double scale = s.loss_scale * s.batch_factor,
               shared = s.label_smoothing / (double)args.vocabulary * scale;
  return {(float)s.label_smoothing, (float)s.z_loss, (float)scale, (float)shared,
          (float)-((1 - s.label_smoothing) * scale + shared)};
}

struct RowEnd {
  float loss;
  // The gradient of an element is e^(x - largest)·factor + shared; the gradient of the target is `target`.
  // Without smoothing, `shared` is -0, and adding -0 changes no bit of the product.
  float factor, shared, target;
};
// From sum = Σ e^(x - largest). `mean` is the mean of the logits; it is used only with smoothing.
STW_INLINE RowEnd row_end(const LossTerms& terms, float largest, float sum, float mean, float target_logit,
                          float weight) {
  const float log_sum = log1(sum), l = log_sum + largest;  // log Σ e^(x - largest) and log Σ e^x.
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
