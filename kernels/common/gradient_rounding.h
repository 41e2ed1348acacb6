// How the gradient of a weight that is stored in bf16 is rounded at the end of a sample (kernels.h, linear_weight_gradient):
// sixteen random bits are added below the half and cut off with what is there, so the mean of many roundings is the number
// itself, and a sum over samples loses nothing in the mean. The numbers depend on seed, step, sample, stream and element
// alone: neither a cut of the batch between samples nor who computes an element changes a bit.
#pragma once
#include "kernels/common/philox.h"

namespace stw::kernels::STW_ISA {

// What all elements of one weight share in one sample.
struct GradientRounding {
  uint32_t sample, stream, step;
  uint64_t seed;
};
STW_INLINE GradientRounding gradient_rounding_of(const StepState& state, uint32_t stream, int64_t sample) {
  return {(uint32_t)(state.first_sample + (uint64_t)sample), stream, (uint32_t)state.step, state.seed};
}

// A block's counter. Of its random numbers element e has bits [16·(e % 2), + 16) of word e % 8 / 2.
STW_INLINE Philox4 counter_of(const GradientRounding& r, int64_t block) { return {{(uint32_t)block, r.sample, r.stream, r.step}}; }

// `random` has 16 bits; the lower half of the result is zero. What is not finite keeps its upper half, a NaN made quiet:
// adding to its bits could make an infinity or a number of it.
STW_INLINE float rounded_gradient(float x, uint32_t random) {
  const uint32_t bits = bits_of(x), size = bits & 0x7fffffffu;
  const uint32_t special = size > 0x7f800000u ? bits | 0x400000u : bits;
  return float_of((size < 0x7f800000u ? bits + random : special) & 0xffff0000u);
}

}  // namespace stw::kernels::STW_ISA
