// Converts a byte to a float from -128 to 127. The byte becomes the low bits of a float near 2^23, because a
// conversion instruction is slower.
#pragma once
#include "kernels/lanes/gpu_lanes.h"

namespace stw::kernels::cuda {

STW_DEVICE float whole_number(uint32_t byte) {
  return float_of(0x4b000000u | ((byte & 0xffu) ^ 0x80u)) - 8388736.0f;
}

}  // namespace stw::kernels::cuda
