// Rounds the gradient of a weight that is stored in bf16, at the end of a sample (kernels.h,
// linear_weight_gradient). Sixteen random bits are added below the upper half, and the lower half is cut off.
// So the expected value of the rounding is the number itself, and a sum over samples is unbiased. The random
// bits depend on seed, step, sample, stream and element alone: no cut of the batch between samples and no
// division of the work changes a bit.
#pragma once
#include "kernels/common/philox.h"

namespace stw::kernels::STW_ISA {

// The constants of one weight in one sample.
struct GradientRounding {
  uint32_t sample, stream, step;
  uint64_t seed;
};
STW_INLINE GradientRounding gradient_rounding_of(const StepState& state, uint32_t stream, int64_t sample) {
  return {(uint32_t)(state.first_sample + (uint64_t)sample), stream, (uint32_t)state.step, state.seed};
}

// The counter of a block. Element e takes bits [16·(e % 2), + 16) of word e % 8 / 2 of the block.
STW_INLINE Philox4 counter_of(const GradientRounding& r, int64_t block) {
  return {{(uint32_t)block, r.sample, r.stream, r.step}};
}

// `random` has 16 bits. The lower half of the result is zero. A number that is not finite keeps its upper
// half, and a NaN becomes quiet: an addition to its bits could turn it into an infinity or a number.
STW_INLINE float rounded_gradient(float x, uint32_t random) {
  const uint32_t bits = bits_of(x), size = bits & 0x7fffffffu;
  const uint32_t special = size > 0x7f800000u ? bits | 0x400000u : bits;
  return float_of((size < 0x7f800000u ? bits + random : special) & 0xffff0000u);
}

}  // namespace stw::kernels::STW_ISA
