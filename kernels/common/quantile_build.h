// Computes the tables of quantile_map.h at compile time: for quantile_map.cpp, and for the copies in a
// device's constant memory (cuda/update/state8.h).
#pragma once
#include "kernels/common/quantile_map.h"

namespace stw::kernels::quantiles {

constexpr void fill_values(QuantileMap& map, bool is_signed) {
  int count = 0;
  double decade = 1e6;  // 10^(6 - i).
  for (int i = 0; i < 7; ++i, decade /= 10) {
    const int n = is_signed ? 1 << i : 2 << i;
    for (int k = 0; k < n; ++k) {
      const float value = static_cast<float>((0.1 + 0.9 * (k + 0.5) / n) / decade);
      map.value[count++] = value;
      if (is_signed) map.value[count++] = -value;
    }
  }
  map.value[count++] = 0.0f;
  map.value[count++] = 1.0f;
  for (int i = 1; i < 256; ++i)
    for (int j = i; j > 0 && map.value[j - 1] > map.value[j]; --j) {
      const float swap = map.value[j];
      map.value[j] = map.value[j - 1];
      map.value[j - 1] = swap;
    }
}

// The largest float at or below the exact middle of two adjacent values, so that `x > boundary` is true for
// exactly the floats above the middle. The sum of two adjacent values is exact in double.
constexpr float middle(float a, float b) {
  const double exact = (static_cast<double>(a) + static_cast<double>(b)) / 2;
  const float nearest = static_cast<float>(exact);
  if (static_cast<double>(nearest) <= exact) return nearest;
  const uint32_t bits = __builtin_bit_cast(uint32_t, nearest);
  return __builtin_bit_cast(float, nearest > 0 ? bits - 1 : bits + 1);
}

// The nearest code by definition, for the construction only.
constexpr int code_of(const QuantileMap& map, float x) {
  int low = 0, high = 255;
  while (low < high) {
    const int half = (low + high) / 2;
    if (x > map.boundary[half]) low = half + 1;
    else high = half;
  }
  return low;
}

constexpr float bucket_begin(uint32_t bucket) {  // Bucket 0 begins at 0.
  return bucket == 0 ? 0.0f : __builtin_bit_cast(float, (bucket + quantile_first) << quantile_shift);
}
constexpr float bucket_end(uint32_t bucket) {  // The largest float in the bucket.
  if (bucket == quantile_buckets - 1) return 1.0f;
  return __builtin_bit_cast(float, ((bucket + 1 + quantile_first) << quantile_shift) - 1);
}

constexpr QuantileMap make_map(bool is_signed) {
  QuantileMap map{};
  fill_values(map, is_signed);
  for (int i = 0; i < 255; ++i) map.boundary[i] = middle(map.value[i], map.value[i + 1]);
  map.boundary[255] = __builtin_inff();
  map.zero = static_cast<uint8_t>(code_of(map, 0.0f));
  for (uint32_t bucket = 0; bucket < quantile_buckets; ++bucket) {
    map.lowest[0][bucket] = static_cast<uint8_t>(code_of(map, bucket_begin(bucket)));
    map.lowest[1][bucket] = static_cast<uint8_t>(code_of(map, -bucket_end(bucket)));
  }
  return map;
}

constexpr bool one_boundary_a_bucket(const QuantileMap& map) {
  for (uint32_t bucket = 0; bucket < quantile_buckets; ++bucket) {
    if (code_of(map, bucket_end(bucket)) > map.lowest[0][bucket] + 1) return false;
    if (code_of(map, -bucket_begin(bucket)) > map.lowest[1][bucket] + 1) return false;
  }
  return true;
}

}  // namespace stw::kernels::quantiles
