// Activation functions.
#pragma once
#include <cstdint>

namespace stw::kernels {

enum class Activation : uint8_t { gelu_tanh = 0, gelu_erf = 1, tanh = 2, relu = 3 };
enum class Gate : uint8_t { silu, gelu_tanh, gelu_erf };  // SwiGLU, and GeGLU with either GELU.

}  // namespace stw::kernels
