// Counter-based random numbers: Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as
// easy as 1, 2, 3" (SC'11). Section 4 of the paper has the formulas and constants.
//
// Dropout takes word `element % 4` of the block with key = seed and counter = (element / 4, sample in the
// global batch, stream, step). The upper half of `stream` holds the upper half of element / 4. In attention
// with 32 heads, that upper half is not 0 from 23,171 tokens on. A number depends on nothing else, so neither
// recomputation nor a cut of the batch changes a mask.
#pragma once
#include "kernels/lanes/lanes.h"

namespace stw::kernels::STW_ISA {

struct Philox4 {
  uint32_t w[4];
};

// One of the ten rounds. The key changes after each.
struct PhiloxKey {
  uint32_t k0, k1;
};
STW_INLINE Philox4 philox_round(const Philox4& c, PhiloxKey key) {
  const uint64_t p0 = (uint64_t)0xD2511F53u * c.w[0], p1 = (uint64_t)0xCD9E8D57u * c.w[2];
  return {{(uint32_t)(p1 >> 32) ^ c.w[1] ^ key.k0, (uint32_t)p1, (uint32_t)(p0 >> 32) ^ c.w[3] ^ key.k1,
           (uint32_t)p0}};
}
STW_INLINE PhiloxKey next_key(PhiloxKey key) { return {key.k0 + 0x9E3779B9u, key.k1 + 0xBB67AE85u}; }

STW_INLINE Philox4 philox(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint64_t seed) {
  Philox4 block = {{c0, c1, c2, c3}};
  PhiloxKey key = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  for (int round = 0; round < 10; ++round, key = next_key(key)) block = philox_round(block, key);
  return block;
}

// p · 2^32 for p in [0, 1): an element is dropped if its word is below it.
STW_INLINE uint32_t dropout_threshold(float p) { return (uint32_t)((double)p * 4294967296.0); }

// The constants of one sample of one tensor.
struct Dropout {
  uint32_t sample, stream, step, threshold;
  uint64_t seed;
  float kept_scale;  // 1 / (1 - p).
};
STW_INLINE Dropout dropout_of(float p, uint32_t stream, const StepState& state, int64_t sample) {
  return {(uint32_t)(state.first_sample + (uint64_t)sample),
          stream,
          (uint32_t)state.step,
          dropout_threshold(p),
          state.seed,
          1.0f / (1.0f - p)};
}

// The words of elements [4·block, 4·block + 4).
STW_INLINE uint32_t stream_of_block(const Dropout& d, int64_t block) {
  return d.stream + ((uint32_t)(block >> 32) << 16);
}
STW_INLINE Philox4 dropout_words(const Dropout& d, int64_t block) {
  return philox((uint32_t)block, d.sample, stream_of_block(d, block), d.step, d.seed);
}

// The factor of one element: 0 or 1 / (1 - p).
STW_INLINE float dropout_factor(const Dropout& d, int64_t element) {
  Philox4 r = dropout_words(d, element / 4);
  return r.w[element % 4] >= d.threshold ? d.kept_scale : 0.0f;
}

}  // namespace stw::kernels::STW_ISA
