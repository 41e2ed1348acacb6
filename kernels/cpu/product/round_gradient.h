// Rounds adjacent elements of a weight's gradient in place, at the end of a sample
// (common/gradient_rounding.h).
#pragma once
#include "kernels/common/gradient_rounding.h"
#include "kernels/cpu/philox8.h"

namespace stw::kernels::STW_ISA {

// x holds elements [first, first + count) of the weight. Eight blocks of random numbers serve 64 elements. If
// x begins or ends within them, the remaining numbers are unused.
STW_INLINE void round_gradient(const GradientRounding& r, int64_t first, float* x, int64_t count) {
  constexpr int64_t together = 64;
  for (int64_t at = first / 8 * 8; at < first + count; at += together) {
    const Philox4 counter = counter_of(r, at / 8);
    uint64_t pairs[together / 4];
    store_pairs(philox8(counter.w[0], counter, r.seed), pairs);
    uint16_t random[together];
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && sizeof random == sizeof pairs);
    memcpy(random, pairs, sizeof random);  // Lower halves come first.
    if (at >= first && at + together <= first + count) {
      float* const to = x + (at - first);
      for (int i = 0; i < together; ++i) to[i] = rounded_gradient(to[i], random[i]);
    } else {
      const int64_t end = min(first + count, at + together);
      for (int64_t e = max(first, at); e < end; ++e)
        x[e - first] = rounded_gradient(x[e - first], random[e - at]);
    }
  }
}

}  // namespace stw::kernels::STW_ISA
