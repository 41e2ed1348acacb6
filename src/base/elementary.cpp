#include "src/base/elementary.h"

#include <cmath>

namespace stw {

namespace {

// ln 2 and pi/2 as sums of parts. All parts but the last have at most 32 and 26 bits, so that their products
// with small integers are exact.
constexpr double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
constexpr double half_pi[] = {0x1.921fb5p+0, 0x1.110b46p-26, 0x1.1a6263p-54, 0x1.8a2e03707344ap-81};

struct Angle {
  double rest;
  int quarter;
};  // |rest| <= pi/4

Angle reduce(double x) {
  const double quarters = std::floor(x * 0x1.45f306dc9c883p-1 + 0.5);  // 2/pi
  double rest = x;
  for (double part : half_pi) rest -= quarters * part;
  return {rest, static_cast<int>(static_cast<long long>(quarters) & 3)};
}

// Taylor series; their last terms are below 1e-17 in this range.
double sine_near_zero(double x) {
  const double square = x * x;
  double sum = 0;
  for (int n = 16; n >= 2; n -= 2) sum = (1 + sum) * (-square / (n * (n + 1)));
  return x + x * sum;
}

double cosine_near_zero(double x) {
  const double square = x * x;
  double sum = 0;
  for (int n = 17; n >= 1; n -= 2) sum = (1 + sum) * (-square / (n * (n + 1)));
  return 1 + sum;
}

double at_quarter(Angle a) {
  const double magnitude = a.quarter & 1 ? sine_near_zero(a.rest) : cosine_near_zero(a.rest);
  return a.quarter == 1 || a.quarter == 2 ? -magnitude : magnitude;
}

}  // namespace

double portable_cos(double x) { return at_quarter(reduce(x)); }

// sin x = cos(x - pi/2).
double portable_sin(double x) {
  Angle a = reduce(x);
  a.quarter = (a.quarter + 3) & 3;
  return at_quarter(a);
}

// log(m 2^e) = e ln 2 + 2 artanh(s) with s = (m - 1) / (m + 1), |s| < 0.172.
double portable_log(double x) {
  int exponent;
  double m = std::frexp(x, &exponent);
  if (m < 0x1.6a09e667f3bcdp-1) {
    m *= 2;
    exponent -= 1;
  }
  const double s = (m - 1) / (m + 1), square = s * s;
  double sum = 0;
  for (int n = 23; n >= 3; n -= 2) sum = square * (1.0 / n + sum);
  const double e = exponent;
  return e * ln2_high + (2 * s + (2 * s * sum + e * ln2_low));
}

double portable_exp(double x) {
  if (x > 710) return HUGE_VAL;
  if (x < -746) return 0;
  const double n = std::floor(x * 0x1.71547652b82fep+0 + 0.5);  // 1/ln 2
  const double r = (x - n * ln2_high) - n * ln2_low;
  double sum = 0;
  for (int i = 14; i >= 1; --i) sum = (1 + sum) * (r / i);
  return std::ldexp(1 + sum, static_cast<int>(n));
}

double portable_pow(double x, double y) { return portable_exp(y * portable_log(x)); }

}  // namespace stw
