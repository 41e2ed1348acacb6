// Codes of frozen quantized matrices. Each block of weight_block elements, in storage order, shares a scale.
// An element is the value of its code times the scale: one fp32 product, rounded once to the type of the
// computation. So a matrix of codes has the same values on every device.
//   nf4    4 bits: sixteen values in [-1, 1]. A sample of a normal distribution is about equally likely to be
//          nearest to each of them (Dettmers et al. 2023, "QLoRA", arXiv:2305.14314, appendix E). The scale
//          is the largest magnitude of the block: 4.5 bits an element. The first element of a pair is in the
//          upper half of the byte, as in bitsandbytes.
//   int8   8 bits: integers from -127 to 127. The scale is the largest magnitude of the block divided by 127:
//          8.5 bits an element.
//
// Layout:
//   | codes of all elements | padding to a multiple of 16 bytes | scales: fp32, one a block |
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/contract/formats.h"
#include "kernels/contract/limits.h"
#include "kernels/contract/sizes.h"

namespace stw::kernels {

struct Nf4Values {
  float of[16];
};
inline constexpr Nf4Values nf4_values = {
    {-1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f, -0.28444138169288635f,
     -0.18477343022823334f, -0.09105003625154495f, 0.0f, 0.07958029955625534f, 0.16093020141124725f,
     0.24611230194568634f, 0.33791524171829224f, 0.44070982933044434f, 0.5626170039176941f,
     0.7229568362236023f, 1.0f}};
inline constexpr uint8_t nf4_zero = 7;  // The code of 0.

constexpr uint64_t code_bytes(WeightCodes codes, uint64_t elements) {
  return codes == WeightCodes::nf4 ? (elements + 1) / 2 : elements;
}
constexpr uint64_t scales_begin(WeightCodes codes, int64_t count) {
  return (code_bytes(codes, static_cast<uint64_t>(count)) + 15) / 16 * 16;
}
inline uint64_t weight_codes_bytes(WeightCodes codes, int64_t count) {
  return size_add(scales_begin(codes, count),
                  ceil_div(static_cast<uint64_t>(count), weight_block) * sizeof(float));
}

// Encodes `count` values in blocks; the last block may be short. Every element gets the code of the nearest
// value. Of two equally near values, nf4 takes the lower code and int8 the even one. If a block holds a value
// that is not finite, its scale and so all of its values become NaN.
void quantize_weights(WeightCodes codes, const float* values, int64_t count, uint8_t* to, float* scales);

}  // namespace stw::kernels
