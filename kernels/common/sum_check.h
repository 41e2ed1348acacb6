// Checks one gradient that is used before the step is judged (kernels.h, SquareSumArgs).
#pragma once
#include "kernels/common/step_scalars.h"

namespace stw::kernels::STW_ISA {

STW_INLINE void check_sum(const SquareSumArgs& args, double sum) {
  if (args.checked != nullptr && !is_finite(sum) && args.checked->skip == skip_none)
    args.checked->skip = skip_midway;
}

}  // namespace stw::kernels::STW_ISA
