// σ(x) = 1 / (1 + e^-x), shared by GELU and SwiGLU. 0 and 1 at the ends without overflow of the result.
#pragma once
#include "kernels/common/math.h"

namespace stw::kernels::STW_ISA {

// σ(-x), by one rounding of 1 + e^x: twice the half is exact.
STW_INLINE F16 falling_sigmoid(F16 x) { return inverse(fma(splat(2.0f), half_of_exp(x), splat(1.0f))); }
STW_INLINE F16 sigmoid(F16 x) { return falling_sigmoid(sub(zero(), x)); }

}  // namespace stw::kernels::STW_ISA
