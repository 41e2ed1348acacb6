// The dynamic map of 8-bit optimizer states (Dettmers et al., arXiv:2110.02861): 256 numbers in [-1, 1]
// (signed, first moment) or [0, 1] (unsigned, root of the second moment), denser towards 0, over seven
// decades. The tables are compile-time constants, computed in double and rounded once.
//
// A code is the index of the nearest number, the lower index on a tie. No search is needed: buckets cut the
// axis by exponent and seven bits of mantissa, so finely that at most one boundary between codes lies in a
// bucket. One comparison decides the rest.
#pragma once
#include <cstdint>

#include "kernels/contract/limits.h"

namespace stw::kernels {

inline constexpr uint32_t quantile_shift = 16;  // Bits of a float below those of the bucket.
// bits >> 16 of 2^-22, below the smallest number except 0.
inline constexpr uint32_t quantile_first = (127 - 22) << 7;
// The last bucket holds 1 and everything above it.
inline constexpr uint32_t quantile_buckets = (127 << 7) - quantile_first + 2;

struct QuantileMap {
  float value[256];     // Ascending.
  float boundary[256];  // Code i ends at boundary[i], inclusive. The last boundary is infinite.
  uint8_t lowest[2][quantile_buckets];  // The lowest code in a bucket; [1]: in its mirror image below 0.
  uint8_t zero;                         // The code of 0.
};

extern const QuantileMap signed_quantiles, unsigned_quantiles;

}  // namespace stw::kernels
