// Sizes in bytes and elements. They come from users' models and budgets. So every product and sum saturates
// at `size_limit` instead of wrapping. A saturated size fits no budget, and is refused.
#pragma once
#include <cstdint>

namespace stw {

inline constexpr uint64_t size_limit = uint64_t{1} << 62;

inline uint64_t size_mul(uint64_t a, uint64_t b) {
  uint64_t r;
  return __builtin_mul_overflow(a, b, &r) || r > size_limit ? size_limit : r;
}
inline uint64_t size_add(uint64_t a, uint64_t b) {
  uint64_t r;
  return __builtin_add_overflow(a, b, &r) || r > size_limit ? size_limit : r;
}
inline uint64_t round_up(uint64_t n, uint64_t to) { return size_add(n, to - 1) / to * to; }
inline uint64_t ceil_div(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

}  // namespace stw
