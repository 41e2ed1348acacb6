// The index into QuantileMap::lowest (both halves, one after the other) of the bucket of a number. A NaN also
// gets a valid index. Its code does not matter, because a step with a NaN is skipped before its update.
#pragma once
#include "kernels/common/quantile_map.h"
#include "kernels/lanes/lanes.h"

namespace stw::kernels::STW_ISA {

STW_INLINE int32_t quantile_index(float x) {
  const uint32_t bits = bits_of(x);
  int32_t bucket = (int32_t)((bits & 0x7fffffffu) >> quantile_shift) - (int32_t)quantile_first;
  bucket = bucket < 0 ? 0 : bucket;
  bucket = bucket < (int32_t)quantile_buckets ? bucket : (int32_t)quantile_buckets - 1;
  return bucket + (int32_t)(bits >> 31) * (int32_t)quantile_buckets;
}

}  // namespace stw::kernels::STW_ISA
