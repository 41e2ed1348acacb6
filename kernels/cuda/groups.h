// Groups of 16 numbers of 16 or 8 bits, four a thread: like load_group and store_group, without conversion.
#pragma once
#include "kernels/lanes/gpu_lanes.h"

namespace stw::kernels::cuda {

STW_DEVICE Halves load_some_halves(const uint16_t* p, int64_t n) {
  if (n >= 16) return load_halves(p);
  Halves x = {};
  for (int i = 0; i < 4; ++i)
    if (first_lane() + i < n) x.h[i] = p[first_lane() + i];
  return x;
}
STW_DEVICE Halves load_some_halves(const uint16_t* p, FullGroup n) { return load_halves(p, n); }
STW_DEVICE void store_some_halves(uint16_t* p, Halves x, FullGroup) {
  store_global8(p + first_lane(), as_vector(x));
}
STW_DEVICE void store_some_halves(uint16_t* p, Halves x, int64_t n) {
  if (n >= 16) return store_halves(p, x);
  for (int i = 0; i < 4; ++i)
    if (first_lane() + i < n) p[first_lane() + i] = x.h[i];
}

struct Bytes {
  uint8_t b[4];
};
STW_DEVICE Bytes load_some_bytes(const uint8_t* p, FullGroup) {
  const uint32_t v = load_vector<uint32_t>(p + first_lane());
  return {{static_cast<uint8_t>(v), static_cast<uint8_t>(v >> 8), static_cast<uint8_t>(v >> 16),
           static_cast<uint8_t>(v >> 24)}};
}
STW_DEVICE Bytes load_some_bytes(const uint8_t* p, int64_t n) {
  if (n >= 16 && reinterpret_cast<uintptr_t>(p) % 4 == 0) return load_some_bytes(p, FullGroup{});
  p += first_lane();
  Bytes x = {};
  for (int i = 0; i < 4; ++i)
    if (first_lane() + i < n) x.b[i] = p[i];
  return x;
}
STW_DEVICE void store_some_bytes(uint8_t* p, Bytes x, FullGroup) {
  store_vector(p + first_lane(), x.b[0] | static_cast<uint32_t>(x.b[1]) << 8 |
                                     static_cast<uint32_t>(x.b[2]) << 16 |
                                     static_cast<uint32_t>(x.b[3]) << 24);
}
STW_DEVICE void store_some_bytes(uint8_t* p, Bytes x, int64_t n) {
  if (n >= 16 && reinterpret_cast<uintptr_t>(p) % 4 == 0) return store_some_bytes(p, x, FullGroup{});
  p += first_lane();
  for (int i = 0; i < 4; ++i)
    if (first_lane() + i < n) p[i] = x.b[i];
}

}  // namespace stw::kernels::cuda
