// σ(x) = 1 / (1 + e^-x), shared by GELU and SwiGLU. Its limits are 0 and 1, without overflow.
#pragma once
#include "kernels/common/math.h"

namespace stw::kernels::STW_ISA {

// σ(-x). 1 + e^x is rounded once, because doubling e^x / 2 is exact.
STW_INLINE F16 falling_sigmoid(F16 x) { return inverse(fma(splat(2.0f), half_of_exp(x), splat(1.0f))); }
STW_INLINE F16 sigmoid(F16 x) { return falling_sigmoid(sub(zero(), x)); }

}  // namespace stw::kernels::STW_ISA
