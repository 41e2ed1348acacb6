// The rounding of bf16 gradients, from the text of kernels.h and from the paper's definition of
// Philox4x32-10, without any code of kernels/.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

namespace stw::kernels::test {

struct RandomBlock {
  uint32_t word[4];
};
inline RandomBlock philox_block(RandomBlock counter, uint64_t key) {
  uint64_t lower = key & 0xffffffffu, upper = key >> 32;
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xD2511F53u} * counter.word[0],
                   second = uint64_t{0xCD9E8D57u} * counter.word[2];
    counter = {{static_cast<uint32_t>((second >> 32) ^ counter.word[1] ^ lower),
                static_cast<uint32_t>(second & 0xffffffffu),
                static_cast<uint32_t>((first >> 32) ^ counter.word[3] ^ upper),
                static_cast<uint32_t>(first & 0xffffffffu)}};
    lower = (lower + 0x9E3779B9u) & 0xffffffffu;
    upper = (upper + 0xBB67AE85u) & 0xffffffffu;
  }
  return counter;
}

struct RoundingPlace {
  uint64_t seed, step, sample;
  uint32_t stream;
};
inline float rounded_gradient_of(float x, const RoundingPlace& place, int64_t element) {
  if (!std::isfinite(x)) return x;
  const RandomBlock block =
      philox_block({{static_cast<uint32_t>(element / 8), static_cast<uint32_t>(place.sample), place.stream,
                     static_cast<uint32_t>(place.step)}},
                   place.seed);
  const auto number = static_cast<uint32_t>(element % 8);
  const uint32_t random = number % 2 == 0 ? block.word[number / 2] & 0xffffu : block.word[number / 2] >> 16;
  return std::bit_cast<float>((std::bit_cast<uint32_t>(x) + random) / 65536 * 65536);
}

}  // namespace stw::kernels::test
