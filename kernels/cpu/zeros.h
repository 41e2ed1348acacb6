// Finds zeros, so that kernels can leave out what they would multiply with them.
#pragma once
#include "kernels/lanes/lanes.h"

namespace stw::kernels::STW_ISA {

// Whether contiguous elements are all 0, with either sign. Mostly the first few are not.
static bool are_zero(const void* from, DType dtype, int64_t count) {
  constexpr int64_t at_once = 64;
  const uint64_t no_sign = dtype == DType::f32 ? 0x7fffffff7fffffff : 0x7fff7fff7fff7fff;
  const char* const p = (const char*)from;
  const int64_t bytes = count * element_bytes(dtype);
  for (int64_t i = 0; i < bytes; i += at_once) {
    uint64_t words[at_once / sizeof(uint64_t)] = {}, any = 0;
    memcpy(words, p + i, (size_t)min(at_once, bytes - i));
    for (uint64_t word : words) any |= word;
    if ((any & no_sign) != 0) return false;
  }
  return true;
}

}  // namespace stw::kernels::STW_ISA
