// Frozen matrices in few bits. Blocks of weight_block elements, in the order they are stored, share a scale; an element is a code's
// value times that scale: one product in fp32, rounded once to the type that computes. So what a code stands for is the same on every
// device, and whoever multiplies by it has the same bits.
//   nf4    4 bits: sixteen values in [-1, 1], of which quantiles of normal numbers are nearest to equally many (Dettmers et al. 2023,
//          "QLoRA", arXiv:2305.14314, appendix E); the scale is the block's largest magnitude: 4.5 bits an element. Of two elements
//          the first has the upper half of their byte, as in bitsandbytes
//   int8   8 bits: whole numbers from -127 to 127; the scale is a 127th of the block's largest magnitude: 8.5 bits
//
//   | codes of all elements | up to a multiple of 16 bytes | scales, fp32, one a block |
#pragma once
#include <cstddef>
#include <cstdint>

namespace stw::kernels {

enum class WeightCodes : uint8_t { nf4 = 0, int8 = 1 };
inline constexpr int64_t weight_block = 64;   // elements

struct Nf4Values { float of[16]; };
inline constexpr Nf4Values nf4_values = {
    {-1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f, -0.28444138169288635f, -0.18477343022823334f,
     -0.09105003625154495f, 0.0f, 0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f,
     0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1.0f}};
inline constexpr uint8_t nf4_zero = 7;   // its code

constexpr uint64_t code_bytes(WeightCodes codes, uint64_t elements) { return codes == WeightCodes::nf4 ? (elements + 1) / 2 : elements; }
constexpr uint64_t scales_begin(WeightCodes codes, int64_t count) { return (code_bytes(codes, static_cast<uint64_t>(count)) + 15) / 16 * 16; }
constexpr uint64_t weight_codes_bytes(WeightCodes codes, int64_t count) {
  return scales_begin(codes, count) + static_cast<uint64_t>((count + weight_block - 1) / weight_block) * sizeof(float);
}

// Codes and scales of whole blocks, of which the last one may be short: the nearest value of every element, of two the one with the
// lower code (nf4) or the even one (int8). Where a block holds what is not finite, all of it becomes not a number.
void quantize_weights(WeightCodes codes, const float* values, int64_t count, uint8_t* to, float* scales);

}  // namespace stw::kernels
