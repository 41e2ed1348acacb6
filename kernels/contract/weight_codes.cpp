#include "kernels/contract/weight_codes.h"

namespace stw::kernels {

namespace {

// The code of the value nearest to a number is the count of those midpoints between adjacent values that lie
// below the number.
struct Nf4Middles {
  float at[15];
  constexpr Nf4Middles() : at() {
    for (int i = 0; i < 15; ++i)
      at[i] = static_cast<float>(
          (static_cast<double>(nf4_values.of[i]) + static_cast<double>(nf4_values.of[i + 1])) / 2);
  }
};
constexpr Nf4Middles middles;

int nf4_code(float share) {
  int code = 0;
  for (const float middle : middles.at) code += share > middle ? 1 : 0;
  return code;
}

// 0 if all values are 0; NaN if one is not finite.
float largest_magnitude(const float* values, int64_t count) {
  float most = 0, all = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float size = __builtin_fabsf(values[i]);
    most = size > most ? size : most;
    all += values[i] * 0.0f;
  }
  return all == 0 ? most : __builtin_nanf("");
}

void encode_nf4(const float* values, int64_t count, float scale, uint8_t* to) {
  const auto code = [&](int64_t i) {
    return i >= count || !(scale > 0) ? int{nf4_zero} : nf4_code(values[i] / scale);
  };
  for (int64_t i = 0; i < count; i += 2) to[i / 2] = static_cast<uint8_t>(code(i) << 4 | code(i + 1));
}

// Near 1.5·2^23 an fp32 number has no fraction bits, so the addition rounds to the nearest integer.
void encode_int8(const float* values, int64_t count, float scale, uint8_t* to) {
  constexpr float rounding_bias = 12582912.0f;
  for (int64_t i = 0; i < count; ++i) {
    float share = scale > 0 ? values[i] / scale : 0.0f;
    share = share > 127.0f ? 127.0f : share < -127.0f ? -127.0f : share;
    to[i] = static_cast<uint8_t>(static_cast<int8_t>((share + rounding_bias) - rounding_bias));
  }
}

}  // namespace

void quantize_weights(WeightCodes codes, const float* values, int64_t count, uint8_t* to, float* scales) {
  const bool is_nf4 = codes == WeightCodes::nf4;
  for (int64_t first = 0; first < count; first += weight_block) {
    const int64_t n = count - first < weight_block ? count - first : weight_block;
    const float most = largest_magnitude(values + first, n), scale = is_nf4 ? most : most / 127.0f;
    scales[first / weight_block] = scale;
    if (is_nf4) encode_nf4(values + first, n, scale, to + first / 2);
    else encode_int8(values + first, n, scale, to + first);
  }
}

}  // namespace stw::kernels
