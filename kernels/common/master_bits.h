// The bits of an fp32 master beside a bf16 half (kernels.h, UpdateArgs). Split storage: bits = (half << 16) + remainder, modulo
// 2^32; the half is the upper word of bits + 0x8000, which rounds the magnitude to nearest with ties upward, so what is missing
// lies in [-32768, 32767]. The way there and back is exact for every bit pattern. With 8 of the 16 bits it is so for masters of
// 24 bits.
#pragma once
#include "kernels/common/philox.h"

namespace stw::kernels::STW_ISA {

STW_INLINE uint16_t nearest_half(uint32_t bits) { return (uint16_t)((bits + 0x8000u) >> 16); }

STW_INLINE float joined(uint16_t half, int16_t remainder) { return float_of(((uint32_t)half << 16) + (uint32_t)(int32_t)remainder); }
STW_INLINE int16_t remainder_of(uint32_t bits) { return (int16_t)(uint16_t)bits; }   // bits - (half << 16) needs only the lower word

STW_INLINE float joined_short(uint16_t half, int8_t remainder) {
  return float_of(((uint32_t)half << 16) + ((uint32_t)(int32_t)remainder << 8));
}
STW_INLINE uint32_t rounded_to_24(uint32_t bits) { return bits + 0x80u; }   // once the lowest 8 bits are gone
STW_INLINE uint16_t short_half_of(uint32_t rounded) { return nearest_half(rounded & 0xffffff00u); }
STW_INLINE int8_t short_remainder_of(uint32_t rounded) { return (int8_t)(uint8_t)(rounded >> 8); }

// Without a remainder sixteen random bits are added below the half, and cut off with what is there. A block of random numbers
// serves eight elements.
STW_INLINE Philox4 rounding_block(const UpdateArgs& args, int64_t block) {
  return philox((uint32_t)block, (uint32_t)(block >> 32), args.stream, (uint32_t)args.state->step, args.state->seed);
}
STW_INLINE uint16_t stochastic_half(float x, uint32_t word, int64_t element) {   // word: number element % 8 / 2 of the block
  const uint32_t random = word >> (element % 2 * 16) & 0xffffu;
  return (uint16_t)((bits_of(x) + random) >> 16);
}

}  // namespace stw::kernels::STW_ISA
