// Rounds the elements of a weight's gradient that threads hold, at the end of a sample
// (common/gradient_rounding.h).
#pragma once
#include "kernels/common/gradient_rounding.h"
#include "kernels/cuda/product/product.h"
#include "kernels/cuda/random_words.h"

namespace stw::kernels::cuda {

// A block of random numbers, with the rounds in a loop: unrolled, several blocks at once would take registers
// from the sums.
STW_DEVICE Philox4 rounding_block(const GradientRounding& rounding, int64_t element) {
  Philox4 block = counter_of(rounding, element / 8);
  PhiloxKey key = {static_cast<uint32_t>(rounding.seed), static_cast<uint32_t>(rounding.seed >> 32)};
  STW_ROLLED
  for (int rounds = 0; rounds < 10; rounds += 2, key = next_key(next_key(key)))
    block = philox_round(philox_round(block, key), next_key(key));
  return block;
}

// Elements [first, first + 4) of the weight. They take one block of random numbers, or two if rows are no
// multiples of four.
STW_DEVICE Float4 rounded4(const GradientRounding& rounding, int64_t first, Float4 x) {
  const int begin = static_cast<int>(first % 8);
  const Philox4 low = rounding_block(rounding, first);
  Philox4 high = low;
  if (begin > 4) high = rounding_block(rounding, first + 3);
  STW_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int k = (begin + i) % 8;
    const uint32_t word = begin + i < 8 ? word_of(low, k / 2) : word_of(high, k / 2);
    x.f[i] = rounded_gradient(x.f[i], word >> (k % 2 * 16) & 0xffffu);
  }
  return x;
}

}  // namespace stw::kernels::cuda
