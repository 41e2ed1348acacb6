// The bits of an fp32 master that is stored as a bf16 half and a remainder (kernels.h, UpdateArgs): bits =
// (half << 16) + remainder, modulo 2^32. The half is the upper word of bits + 0x8000, so the magnitude is
// rounded to nearest with ties upward, and the remainder lies in [-32768, 32767]. Splitting and joining is
// exact for every bit pattern. With a remainder of 8 bits it is exact for masters of 24 bits.
#pragma once
#include "kernels/common/philox.h"

namespace stw::kernels::STW_ISA {

STW_INLINE uint16_t nearest_half(uint32_t bits) { return (uint16_t)((bits + 0x8000u) >> 16); }

STW_INLINE float joined(uint16_t half, int16_t remainder) {
  return float_of(((uint32_t)half << 16) + (uint32_t)(int32_t)remainder);
}
// bits - (half << 16). Its lower word is that of `bits`, and no other word is needed.
STW_INLINE int16_t remainder_of(uint32_t bits) { return (int16_t)(uint16_t)bits; }

STW_INLINE float joined_short(uint16_t half, int8_t remainder) {
  return float_of(((uint32_t)half << 16) + ((uint32_t)(int32_t)remainder << 8));
}
// Once the lowest 8 bits of the result are cut off, the rest is the rounded number.
STW_INLINE uint32_t rounded_to_24(uint32_t bits) { return bits + 0x80u; }
STW_INLINE uint16_t short_half_of(uint32_t rounded) { return nearest_half(rounded & 0xffffff00u); }
STW_INLINE int8_t short_remainder_of(uint32_t rounded) { return (int8_t)(uint8_t)(rounded >> 8); }

// Without a remainder, sixteen random bits are added below the half, and the lower bits are cut off. A block
// of random numbers serves eight elements.
STW_INLINE Philox4 rounding_block(const UpdateArgs& args, int64_t block) {
  return philox((uint32_t)block, (uint32_t)(block >> 32), args.stream, (uint32_t)args.state->step,
                args.state->seed);
}
// `word` is word element % 8 / 2 of the block.
STW_INLINE uint16_t stochastic_half(float x, uint32_t word, int64_t element) {
  const uint32_t random = word >> (element % 2 * 16) & 0xffffu;
  return (uint16_t)((bits_of(x) + random) >> 16);
}

}  // namespace stw::kernels::STW_ISA
