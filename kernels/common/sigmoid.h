// σ(x) = 1 / (1 + e^-x), shared by GELU and SwiGLU. 0 and 1 at the ends without overflow of the result.
#pragma once
#include "kernels/common/math.h"

namespace stw::kernels::STW_ISA {

STW_INLINE F16 sigmoid(F16 x) { return div(splat(1.0f), add(splat(1.0f), exp(sub(zero(), x)))); }

}  // namespace stw::kernels::STW_ISA
