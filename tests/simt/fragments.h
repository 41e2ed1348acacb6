// mma m16n8k16 with fp32 accumulators, and its 16-bit numbers. As on a device, the 16 products of an element
// and the old value are one sum, rounded once: the bits show which products share a step, but not their order
// in it.
#pragma once
#include <cstdint>

#include "tests/simt/fiber.h"
#include "tests/simt/tensor_core.h"

namespace simt {

uint16_t half_bits(float x, bool is_bf16);  // To nearest, ties to even.

struct Fragments {
  const uint32_t *a, *b;
  float* d;
  bool is_bf16;
};
SIMT_UNSEEN void multiply_fragments(uint32_t mask, void* const* in, void* const* out);

}  // namespace simt
