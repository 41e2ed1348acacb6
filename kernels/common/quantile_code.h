// Where to look for the code of a number in a QuantileMap: an index into `lowest`, both halves of it side by side. What is no
// number gets a valid index too: such a step was to be skipped before.
#pragma once
#include "kernels/lanes/lanes.h"
#include "kernels/common/quantile_map.h"

namespace stw::kernels::STW_ISA {

STW_INLINE int32_t quantile_index(float x) {
  const uint32_t bits = bits_of(x);
  int32_t bucket = (int32_t)((bits & 0x7fffffffu) >> quantile_shift) - (int32_t)quantile_first;
  bucket = bucket < 0 ? 0 : bucket;
  bucket = bucket < (int32_t)quantile_buckets ? bucket : (int32_t)quantile_buckets - 1;
  return bucket + (int32_t)(bits >> 31) * (int32_t)quantile_buckets;
}

}  // namespace stw::kernels::STW_ISA
