// Eight blocks of random numbers at a time (common/philox.h). A word occupies the lower half of a lane of 64
// bits; the bits of the upper half do not matter. So a product of 32 by 32 bits is one instruction, and both
// halves of its result are used in place.
#pragma once
#include "kernels/common/philox.h"

namespace stw::kernels::STW_ISA {

#if defined(STW_ISA_AVX512)
struct Words8 {
  __m512i v;
};
STW_INLINE Words8 load_words(const uint64_t* p) { return {_mm512_loadu_si512(p)}; }
STW_INLINE void store_words(uint64_t* p, Words8 x) { _mm512_storeu_si512(p, x.v); }
STW_INLINE Words8 splat_word(uint32_t x) { return {_mm512_set1_epi64((int64_t)x)}; }
STW_INLINE Words8 product(Words8 x, Words8 y) { return {_mm512_mul_epu32(x.v, y.v)}; }
STW_INLINE Words8 upper_words(Words8 x) { return {_mm512_srli_epi64(x.v, 32)}; }
STW_INLINE Words8 exclusive_or(Words8 x, Words8 y) { return {_mm512_xor_si512(x.v, y.v)}; }
STW_INLINE Words8 sum(Words8 x, Words8 y) { return {_mm512_add_epi64(x.v, y.v)}; }
STW_INLINE Words8 joined_words(Words8 low, Words8 high) {
  return {_mm512_mask_blend_epi32(0xaaaa, low.v, _mm512_slli_epi64(high.v, 32))};
}
#elif defined(STW_ISA_AVX2)
struct Words8 {
  __m256i a, b;
};
STW_INLINE Words8 load_words(const uint64_t* p) {
  return {_mm256_loadu_si256((const __m256i*)p), _mm256_loadu_si256((const __m256i*)(p + 4))};
}
STW_INLINE void store_words(uint64_t* p, Words8 x) {
  _mm256_storeu_si256((__m256i*)p, x.a);
  _mm256_storeu_si256((__m256i*)(p + 4), x.b);
}
STW_INLINE Words8 splat_word(uint32_t x) {
  return {_mm256_set1_epi64x((int64_t)x), _mm256_set1_epi64x((int64_t)x)};
}
STW_INLINE Words8 product(Words8 x, Words8 y) {
  return {_mm256_mul_epu32(x.a, y.a), _mm256_mul_epu32(x.b, y.b)};
}
STW_INLINE Words8 upper_words(Words8 x) { return {_mm256_srli_epi64(x.a, 32), _mm256_srli_epi64(x.b, 32)}; }
STW_INLINE Words8 exclusive_or(Words8 x, Words8 y) {
  return {_mm256_xor_si256(x.a, y.a), _mm256_xor_si256(x.b, y.b)};
}
STW_INLINE Words8 sum(Words8 x, Words8 y) { return {_mm256_add_epi64(x.a, y.a), _mm256_add_epi64(x.b, y.b)}; }
STW_INLINE Words8 joined_words(Words8 low, Words8 high) {
  return {_mm256_blend_epi32(low.a, _mm256_slli_epi64(high.a, 32), 0xaa),
          _mm256_blend_epi32(low.b, _mm256_slli_epi64(high.b, 32), 0xaa)};
}
#else
struct Words8 {
  uint64_t w[8];
};
#define STW_WORDS(expression)                        \
  Words8 r;                                          \
  for (int i = 0; i < 8; ++i) r.w[i] = (expression); \
  return r
STW_INLINE Words8 load_words(const uint64_t* p) { STW_WORDS(p[i]); }
STW_INLINE void store_words(uint64_t* p, Words8 x) {
  for (int i = 0; i < 8; ++i) p[i] = x.w[i];
}
STW_INLINE Words8 splat_word(uint32_t x) { STW_WORDS(x); }
STW_INLINE Words8 product(Words8 x, Words8 y) { STW_WORDS((x.w[i] & 0xffffffffu) * (y.w[i] & 0xffffffffu)); }
STW_INLINE Words8 upper_words(Words8 x) { STW_WORDS(x.w[i] >> 32); }
STW_INLINE Words8 exclusive_or(Words8 x, Words8 y) { STW_WORDS(x.w[i] ^ y.w[i]); }
STW_INLINE Words8 sum(Words8 x, Words8 y) { STW_WORDS(x.w[i] + y.w[i]); }
STW_INLINE Words8 joined_words(Words8 low, Words8 high) {
  STW_WORDS((low.w[i] & 0xffffffffu) | high.w[i] << 32);
}
#undef STW_WORDS
#endif

// Eight blocks. low: words 0 and 1 of each block. high: words 2 and 3. The first of two words is in the lower
// half of a lane.
struct Blocks8 {
  Words8 low, high;
};
// Word 0 of the counter of block b is first + b.
STW_INLINE Blocks8 philox8(uint32_t first, const Philox4& counter, uint64_t seed) {
  static const uint64_t numbers[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  const Words8 m0 = splat_word(0xD2511F53u), m1 = splat_word(0xCD9E8D57u);
  Words8 c0 = sum(splat_word(first), load_words(numbers)), c1 = splat_word(counter.w[1]),
         c2 = splat_word(counter.w[2]), c3 = splat_word(counter.w[3]);
  PhiloxKey key = {(uint32_t)seed, (uint32_t)(seed >> 32)};
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round, key = next_key(key)) {
    const Words8 p0 = product(m0, c0), p1 = product(m1, c2);
    c0 = exclusive_or(exclusive_or(upper_words(p1), c1), splat_word(key.k0));
    c2 = exclusive_or(exclusive_or(upper_words(p0), c3), splat_word(key.k1));
    c1 = p1;
    c3 = p0;
  }
  return {joined_words(c0, c1), joined_words(c2, c3)};
}

// pairs[2·b] receives words 0 and 1 of block b, and pairs[2·b + 1] words 2 and 3.
STW_INLINE void store_pairs(const Blocks8& blocks, uint64_t (&pairs)[16]) {
  uint64_t low[8], high[8];
  store_words(low, blocks.low);
  store_words(high, blocks.high);
  for (int i = 0; i < 8; ++i) {
    pairs[2 * i] = low[i];
    pairs[2 * i + 1] = high[i];
  }
}

// Stores dropout's factors of 32 elements, one for each word of the blocks, in order.
#if defined(STW_ISA_AVX512)
STW_INLINE void store_factors(const Blocks8& blocks, uint32_t threshold, float scale, float* to) {
  const __m512i least = _mm512_set1_epi32((int)threshold);
  const __m512i first = _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0),
                second = _mm512_set_epi64(15, 7, 14, 6, 13, 5, 12, 4);
  const auto store_half = [&](__m512i words, float* p) {
    _mm512_storeu_ps(p, _mm512_maskz_mov_ps(_mm512_cmpge_epu32_mask(words, least), _mm512_set1_ps(scale)));
  };
  store_half(_mm512_permutex2var_epi64(blocks.low.v, first, blocks.high.v), to);
  store_half(_mm512_permutex2var_epi64(blocks.low.v, second, blocks.high.v), to + 16);
}
#elif defined(STW_ISA_AVX2)
STW_INLINE void store_factors(const Blocks8& blocks, uint32_t threshold, float scale, float* to) {
  const __m256i least = _mm256_set1_epi32((int)threshold);
  const auto store_quarter = [&](__m256i words, float* p) {
    const __m256i kept = _mm256_cmpeq_epi32(_mm256_max_epu32(words, least), words);
    _mm256_storeu_ps(p, _mm256_and_ps(_mm256_castsi256_ps(kept), _mm256_set1_ps(scale)));
  };
  const auto store_half = [&](__m256i l, __m256i h, float* p) {
    const __m256i even = _mm256_unpacklo_epi64(l, h), odd = _mm256_unpackhi_epi64(l, h);
    store_quarter(_mm256_permute2x128_si256(even, odd, 0x20), p);
    store_quarter(_mm256_permute2x128_si256(even, odd, 0x31), p + 8);
  };
  store_half(blocks.low.a, blocks.high.a, to);
  store_half(blocks.low.b, blocks.high.b, to + 16);
}
#else
STW_INLINE void store_factors(const Blocks8& blocks, uint32_t threshold, float scale, float* to) {
  const auto factor = [&](uint64_t word) { return (uint32_t)word >= threshold ? scale : 0.0f; };
  for (int i = 0; i < 8; ++i) {
    to[4 * i] = factor(blocks.low.w[i]);
    to[4 * i + 1] = factor(blocks.low.w[i] >> 32);
    to[4 * i + 2] = factor(blocks.high.w[i]);
    to[4 * i + 3] = factor(blocks.high.w[i] >> 32);
  }
}
#endif

// Writes the factors of elements [first, first + count), for any `first`. `factors` has room for
// round_up(count, 32) + 32 values.
STW_INLINE void dropout_factors(const Dropout& d, int64_t first, int64_t count, float* factors) {
  const int64_t skipped = first % 4;
  int64_t block = first / 4;
  for (int64_t done = 0; done < count + skipped; done += 32, block += 8) {
    const bool begins_before = done == 0 && skipped > 0;
    float kept[32], *const to = begins_before ? kept : factors + done - skipped;
    if (block >> 32 == (block + 7) >> 32)
      store_factors(philox8((uint32_t)block, {{0, d.sample, stream_of_block(d, block), d.step}}, d.seed),
                    d.threshold, d.kept_scale, to);
    else
      for (int i = 0; i < 32; ++i) to[i] = dropout_factor(d, 4 * block + i);
    if (begins_before) memcpy(factors, kept + skipped, (size_t)(32 - skipped) * 4);
  }
}

}  // namespace stw::kernels::STW_ISA
