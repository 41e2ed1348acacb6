// mma m16n8k16 with fp32 accumulators, and the numbers of 16 bits that it takes. As on a device the 16 products of an element and what
// they are added to are one sum, rounded once: which products share a step shows in the bits, their order in it does not.
#pragma once
#include <cstdint>

#include "tests/simt/fiber.h"
#include "tests/simt/tensor_core.h"

namespace simt {

uint16_t half_bits(float x, bool is_bf16);   // nearest, ties to even

struct Fragments { const uint32_t *a, *b; float* d; bool is_bf16; };
SIMT_UNSEEN void multiply_fragments(uint32_t mask, void* const* in, void* const* out);

}  // namespace simt
