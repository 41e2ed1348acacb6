// Optimizer states in blocks of 256 bytes with one absolute maximum each: decoding and encoding of a block.
#pragma once
#include "kernels/common/quantile_code.h"
#include "kernels/lanes/split.h"

namespace stw::kernels::STW_ISA {

static_assert(task_elements % quantile_block == 0 && serial_elements % quantile_block == 0);

// Decoding, update and encoding are separate passes over the block. Single lanes are written here and read as
// vectors only in the next loop: a vector load right after narrower stores would wait until they reach the
// cache.
STW_INLINE void decode(const QuantileMap& map, const uint8_t* codes, int64_t count, float* x) {
  for (int64_t i = 0; i < count; ++i) x[i] = map.value[codes[i]];
  for (int64_t i = count; i < round_up(count, 16); ++i) x[i] = 0.0f;
}

// Codes of x / absmax.
STW_INLINE void encode(const QuantileMap& map, const float* x, int64_t count, float absmax, uint8_t* codes) {
  if (absmax == 0.0f) {
    memset(codes, map.zero, (size_t)count);
    return;
  }
  const uint8_t* lowest = map.lowest[0];
  float f[quantile_block];
  int32_t index[quantile_block];
  for (int64_t at = 0; at < count; at += 16) store(f + at, div(load(x + at), splat(absmax)));
  for (int64_t i = 0; i < round_up(count, 16); ++i) index[i] = quantile_index(f[i]);
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t low = lowest[index[i]];
    codes[i] = (uint8_t)(low + (f[i] > map.boundary[low] ? 1 : 0));
  }
}

}  // namespace stw::kernels::STW_ISA
