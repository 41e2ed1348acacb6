#include "tests/simt/tensor_core.h"

#include <cmath>

namespace simt {
namespace {

// Vectors that fit one register of the host's processor.
constexpr int columns = 4;
using Doubles = double __attribute__((vector_size(columns * sizeof(double))));
using Floats = float __attribute__((vector_size(columns * sizeof(float))));
using Longs = int64_t __attribute__((vector_size(columns * sizeof(int64_t))));
using Ints = int32_t __attribute__((vector_size(columns * sizeof(int32_t))));

template <class V>
V load(const float* from) {
  V v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

constexpr int kept = 23 + 2, bias = 1023;  // Bits of a term; bias of a double's exponent.
constexpr int64_t exponents = int64_t{2047} << 52, sizes = INT64_MAX;

}  // namespace

// As the literature reports for Ampere and Hopper (Fasi, Higham, Mikaitis, Pranesh, "Numerical behavior of
// NVIDIA tensor cores", PeerJ CS 7:e330, 2021; Khattak, Mikaitis, arXiv:2512.07004, 2025): the products are
// exact. They and the accumulator are aligned to the largest of them, cut off a few bits below its last fp32
// bit, and added without intermediate rounding. The sum is cut off to fp32. The number of products of a unit
// and the number of extra bits differ between generations: here 16 products, as on Hopper, and 2 bits.
float add_products(float sum, const float* a, const float* b) {
  double term[17], all = sum, largest = std::fabs(static_cast<double>(sum));
  term[16] = sum;
  for (int k = 0; k < 16; ++k) {
    term[k] = static_cast<double>(a[k]) * b[k];
    all += term[k];
    largest = std::fabs(term[k]) > largest ? std::fabs(term[k]) : largest;
  }
  if (!std::isfinite(all)) return static_cast<float>(all);  // Finite terms cannot overflow a double.
  if (largest == 0) return 0;
  const int exponent = std::ilogb(largest);
  const double units = std::ldexp(1.0, kept - exponent);
  int32_t total = 0;  // Cannot overflow: 17 terms below 2^26.
  for (const double t : term) total += static_cast<int32_t>(t * units);
  const double exact = std::ldexp(static_cast<double>(total), exponent - kept);
  const float nearest = static_cast<float>(exact);
  return std::isfinite(nearest) && std::fabs(static_cast<double>(nearest)) > std::fabs(exact)
             ? std::nextafter(nearest, 0.0f)
             : nearest;
}

namespace {

void add_products_of_some(float* sums, const float* a, const float* b, int stride) {
  Doubles term[17];
  term[16] = __builtin_convertvector(load<Floats>(sums), Doubles);
  // Magnitudes of doubles are ordered like their bits.
  Longs largest = reinterpret_cast<Longs>(term[16]) & sizes;
  for (int k = 0; k < 16; ++k) {
    term[k] = static_cast<double>(a[k]) * __builtin_convertvector(load<Floats>(b + k * stride), Doubles);
    const Longs size = reinterpret_cast<Longs>(term[k]) & sizes;
    largest = size > largest ? size : largest;
  }
  bool is_finite = true;
  for (int c = 0; c < columns; ++c) is_finite &= largest[c] < exponents;
  if (!is_finite) {
    for (int c = 0; c < columns; ++c) {
      float column[16];
      for (int k = 0; k < 16; ++k) column[k] = b[k * stride + c];
      sums[c] = add_products(sums[c], a, column);
    }
    return;
  }
  const Longs exponent = largest & exponents;
  const Longs units = (int64_t{2 * bias + kept} << 52) - exponent;
  Ints total = {};
  for (const Doubles& t : term) total += __builtin_convertvector(t * reinterpret_cast<Doubles>(units), Ints);
  const Doubles exact =
      __builtin_convertvector(total, Doubles) * reinterpret_cast<Doubles>(exponent - (int64_t{kept} << 52));
  Floats nearest = __builtin_convertvector(exact, Floats);
  const Longs is_beyond = (reinterpret_cast<Longs>(__builtin_convertvector(nearest, Doubles)) & sizes) >
                          (reinterpret_cast<Longs>(exact) & sizes);
  const Ints is_number = (reinterpret_cast<Ints>(nearest) & INT32_MAX) < 0x7f800000;
  nearest = reinterpret_cast<Floats>(reinterpret_cast<Ints>(nearest) +
                                     (__builtin_convertvector(is_beyond, Ints) & is_number));
  nearest =
      reinterpret_cast<Floats>(reinterpret_cast<Ints>(nearest) & __builtin_convertvector(largest != 0, Ints));
  std::memcpy(sums, &nearest, sizeof nearest);
}

// The bits, without the sign, of the number with the largest magnitude; they are ordered like magnitudes: 0
// if all are zero, `infinite` or more if one is infinite or NaN.
constexpr uint32_t infinite = 0x7f800000;
uint32_t largest_size(const float* numbers, int rows, int count, int stride) {
  uint32_t largest = 0;
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < count; ++i) {
      uint32_t size;
      std::memcpy(&size, numbers + r * stride + i, 4);
      size &= INT32_MAX;
      largest = size > largest ? size : largest;
    }
  return largest;
}

}  // namespace

// Tiles are padded with zeros after the end of a matrix. In small models, that is most tiles.
void add_products_of_rows(float (*sums)[8], const float (*a)[16], const float* b, int stride) {
  const uint32_t of_b = largest_size(b, 16, 8, stride);
  for (int row = 0; row < 16; ++row) {
    const uint32_t of_a = largest_size(a[row], 1, 16, 16);
    if ((of_a == 0 && of_b < infinite) || (of_b == 0 && of_a < infinite)) {
      for (int c = 0; c < 8; ++c) sums[row][c] += 0.0f;  // A zero loses its sign.
      continue;
    }
    for (int c = 0; c < 8; c += columns) add_products_of_some(sums[row] + c, a[row], b + c, stride);
  }
}

void add_multiple(float* sums, float factor, const float* row, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sums[i] = std::fmaf(factor, row[i], sums[i]);
}

}  // namespace simt
