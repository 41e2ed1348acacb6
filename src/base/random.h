// Random numbers as a function of a counter: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy
// as 1, 2, 3", SC 2011). No state is kept between draws, so that a resumed run draws the numbers of an
// uninterrupted one.
#pragma once
#include <array>
#include <cstdint>

namespace stw {

inline std::array<uint32_t, 4> philox(uint64_t key, std::array<uint32_t, 4> counter) {
  uint32_t key0 = static_cast<uint32_t>(key);
  uint32_t key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

// Maps 64 random bits to [0, range): the high half of bits · range (multiply-shift). The relative difference
// between the probabilities of two values is less than range / 2^64. range > 0.
inline uint64_t scale_to_range(uint64_t bits, uint64_t range) {
  const uint64_t low = (bits & 0xFFFFFFFF) * (range & 0xFFFFFFFF);
  const uint64_t middle1 = (bits >> 32) * (range & 0xFFFFFFFF) + (low >> 32);
  const uint64_t middle2 = (bits & 0xFFFFFFFF) * (range >> 32) + (middle1 & 0xFFFFFFFF);
  return (bits >> 32) * (range >> 32) + (middle1 >> 32) + (middle2 >> 32);
}

}  // namespace stw
