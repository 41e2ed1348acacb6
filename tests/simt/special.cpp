#include "tests/simt/special.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace simt {

Answer inverse_answer = Answer::any;

namespace {

float flushed(float x) {
  return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
}
// A number from 0 to count - 1, which varies between adjacent floats.
uint32_t draw(float x, uint32_t count) { return (std::bit_cast<uint32_t>(x) * 0x9E3779B9u >> 16) % count; }
float moved(float x, int ulps) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(x) + static_cast<uint32_t>(ulps));
}
bool is_normal(float x) { return std::isfinite(x) && x == flushed(x) && x != 0; }

}  // namespace

float approximate_inverse(float x) {
  x = flushed(x);
  const float nearest = flushed(1.0f / x);
  const int ulps =
      (inverse_answer == Answer::any ? static_cast<int>(draw(x, 3)) : static_cast<int>(inverse_answer) - 1) -
      1;
  const float found = moved(nearest, ulps);
  if (!is_normal(nearest) || !is_normal(found)) return nearest;
  const double exact = 1.0 / static_cast<double>(x);
  const double ulp = std::ldexp(1.0, std::ilogb(exact) - 23);
  return std::fabs(static_cast<double>(found) - exact) <= ulp ? found : nearest;
}

float approximate_exp2(float x) {
  x = flushed(x);
  const float nearest = flushed(std::exp2(x));
  if (x == std::nearbyint(x) || !is_normal(nearest)) return nearest;
  const float found = moved(nearest, static_cast<int>(draw(x, 3)) - 1);  // Within 1.5 ulp.
  return is_normal(found) ? found : nearest;
}

}  // namespace simt
