// The dynamic map of 8-bit optimizer states (Dettmers et al., arXiv:2110.02861): 256 numbers in [-1, 1] (signed, first
// moment) or [0, 1] (unsigned, root of the second), denser towards 0, seven decades deep. The tables are compile-time
// constants, computed in double and rounded once.
//
// A code is the index of the nearest number, the lower index on a tie. It is found without a search: `bucket` cuts the
// axis by exponent and seven bits of mantissa, so finely that at most one boundary between codes lies in a bucket;
// what is left is one comparison.
#pragma once
#include <cstdint>

namespace stw::kernels {

inline constexpr int quantile_block = 256;                    // elements that share an absmax
inline constexpr uint32_t quantile_shift = 16;                // float bits below the bucket's
inline constexpr uint32_t quantile_first = (127 - 22) << 7;   // bits >> 16 of 2^-22, below the smallest number but 0
inline constexpr uint32_t quantile_buckets = (127 << 7) - quantile_first + 2;  // the last holds 1 and what is not valid

struct QuantileMap {
  float value[256];                     // ascending
  float boundary[256];                  // code i ends at boundary[i], inclusive; the last one is infinite
  uint8_t lowest[2][quantile_buckets];  // the lowest code in a bucket; [1] in its mirror image below 0
  uint8_t zero;                         // the code of 0
};

extern const QuantileMap signed_quantiles, unsigned_quantiles;

}  // namespace stw::kernels
