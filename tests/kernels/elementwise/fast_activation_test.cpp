// GELU and SwiGLU of every 16-bit number, by the portable formulas and by the special function unit of a
// device (GeluArgs::fast, SwigluArgs::fast). The portable formulas give the CPU's bits. The errors of both
// are far below the rounding to 16 bits.
#include <algorithm>
#include <functional>

#include "tests/kernels/everywhere.h"

namespace stw::kernels::test::fast_activation_test {
namespace {

constexpr int64_t patterns = 65536;
constexpr DType halves[] = {DType::bf16, DType::f16};

// `rows` copies of all patterns. With `others`, rows have two halves: all patterns, then one number of
// `others` repeated.
Buffer all_numbers(DType dtype, std::span<const float> others = {}) {
  Buffer x(dtype, others.empty() ? patterns : static_cast<int64_t>(others.size()) * 2 * patterns);
  for (size_t row = 0; row < std::max<size_t>(1, others.size()); ++row)
    for (int64_t i = 0; i < patterns; ++i) {
      const auto bits = static_cast<uint16_t>(i);
      const int64_t at = static_cast<int64_t>(row) * 2 * patterns + i;
      std::memcpy(static_cast<char*>(x.data()) + 2 * at, &bits, 2);
      if (!others.empty()) x.set(at + patterns, others[row]);
    }
  return x;
}

// σ(x) and 1 - σ(x), each to full precision.
struct Sigmoid {
  double s, rest;
};
Sigmoid sigmoid_of(double x) {
  const double e = std::exp(-std::fabs(x)), large = 1 / (1 + e), small = e / (1 + e);
  return x < 0 ? Sigmoid{small, large} : Sigmoid{large, small};
}
constexpr double linear = 1.595769121605730711759, cubic = 0.044715 * linear;  // √(8/π).
constexpr double gelu_slope_zero = -0.75179, silu_slope_zero = -1.27846, no_zero = NAN;
double gelu_of(double x) { return x * sigmoid_of(x * (linear + cubic * x * x)).s; }
double gelu_slope(double x) {
  const Sigmoid of = sigmoid_of(x * (linear + cubic * x * x));
  return of.s + of.s * of.rest * x * (linear + 3 * cubic * x * x);
}
double silu_of(double x) { return x * sigmoid_of(x).s; }
double silu_slope(double x) { return sigmoid_of(x).s * (1 + x * sigmoid_of(x).rest); }

// The largest error over finite numbers, relative to the exact result. Near a zero of the function, where the
// result is the difference of two almost equal numbers, it is relative to 2^-8.
double worst_error(const Buffer& x, const Buffer& y, double zero,
                   const std::function<double(int64_t)>& exact) {
  double worst = 0;
  for (int64_t i = 0; i < y.count(); ++i) {
    if (!std::isfinite(x.get(i))) continue;
    const double expected = exact(i), found = y.get(i),
                 least = std::fabs(x.get(i) - zero) < 0x1p-5 ? 0x1p-8 : 0x1p-100;
    worst = std::isfinite(found)
                ? std::fmax(worst, std::fabs(found - expected) / std::fmax(std::fabs(expected), least))
                : INFINITY;
  }
  return worst;
}
// 16-bit results are the fp32 results, rounded.
bool is_rounding_of(const Buffer& rounded, const Buffer& exact) {
  const Buffer expected(rounded.dtype(), exact.floats());
  bool same = rounded.count() == expected.count();
  for (int64_t i = 0; same && i < expected.count(); ++i)
    same = expected.get(i) == rounded.get(i) || (std::isnan(expected.get(i)) && std::isnan(rounded.get(i)));
  return same;
}

struct Gelu {
  Buffer y, dx;
};
Gelu gelu(const Table& table, const Buffer& x, float dy, bool fast, DType result,
          Activation activation = Activation::gelu_tanh, int threads = 1) {
  Gelu out{Buffer(result, x.count()), Buffer(result, x.count())};
  const Buffer d(x.dtype(), std::vector<float>(static_cast<size_t>(x.count()), dy));
  run(table.gelu, GeluArgs{x.count(), activation, x.const_matrix(), {}, out.y.matrix(), fast}, threads, 0);
  run(table.gelu_gradient,
      GeluArgs{x.count(), activation, x.const_matrix(), d.const_matrix(), out.dx.matrix(), fast}, threads, 0);
  return out;
}

const std::vector<float> ups = {1, -0.625f, 0.0078125f};
constexpr float swiglu_dy = -0.75f;
struct Swiglu {
  Buffer y, dx;
};
Swiglu swiglu(const Table& table, const Buffer& x, bool fast, DType result, Gate gate = Gate::silu,
              int threads = 1) {
  const int64_t rows = x.count() / (2 * patterns);
  Swiglu out{Buffer(result, rows * patterns), Buffer(result, x.count())};
  const Buffer dy(x.dtype(), std::vector<float>(static_cast<size_t>(rows * patterns), swiglu_dy));
  run(table.swiglu, SwigluArgs{rows, patterns, x.const_matrix(), {}, out.y.matrix(), fast, gate}, threads, 0);
  run(table.swiglu_gradient,
      SwigluArgs{rows, patterns, x.const_matrix(), dy.const_matrix(), out.dx.matrix(), fast, gate}, threads,
      0);
  return out;
}

// Removes infinities and NaNs, because processors produce different NaNs.
Buffer numbers_alone(Buffer x) {
  for (int64_t i = 0; i < x.count(); ++i)
    if (!std::isfinite(x.get(i))) x.set(i, 0);
  return x;
}

// The device's own forms exist only for 16-bit x. At least one bit of their results differs from the portable
// formulas, except in GELU rounded to bf16, where no bit differs.
void check(const NamedTable& entry, const std::vector<Buffer>& fast, const std::vector<Buffer>& portable,
           bool has_own) {
  const bool own = has_own && std::string(entry.name) == "CUDA";
  for (size_t i = 0; i < fast.size(); ++i)
    if (!own || fast[i].dtype() == DType::f32) {
      EXPECT_NE(same_bits(fast[i], portable[i]), own) << entry.name << ", " << i;
    }
}

TEST(FastActivation, GeluHasTheRequestedForm) {
  for (const DType dtype : all_dtypes)
    for (const DType result : {dtype, DType::f32})
      for (const Activation activation :
           {Activation::gelu_tanh, Activation::gelu_erf, Activation::tanh, Activation::relu}) {
        SCOPED_TRACE(testing::Message() << name_of(dtype) << " to " << name_of(result));
        const Buffer x = dtype == DType::f32 ? Buffer(dtype, numbers_alone(all_numbers(DType::bf16)).floats())
                                             : numbers_alone(all_numbers(dtype));
        const auto compute = [&](const Table& table, int threads, bool fast) {
          const Gelu out = gelu(table, x, 0.375f, fast, result, activation, threads);
          return std::vector<Buffer>{out.y, out.dx};
        };
        const std::vector<Buffer> portable =
            everywhere([&](const Table& table, int threads) { return compute(table, threads, false); });
        for (const NamedTable& entry : tables())
          check(entry, compute(*entry.table, 1, true), portable,
                dtype != DType::f32 && activation == Activation::gelu_tanh);
      }
}

TEST(FastActivation, SwigluHasTheRequestedForm) {
  for (const DType dtype : all_dtypes)
    for (const DType result : {dtype, DType::f32})
      for (const Gate gate : {Gate::silu, Gate::gelu_tanh, Gate::gelu_erf}) {
        SCOPED_TRACE(testing::Message() << name_of(dtype) << " to " << name_of(result));
        const Buffer x = dtype == DType::f32
                             ? Buffer(dtype, numbers_alone(all_numbers(DType::bf16, ups)).floats())
                             : numbers_alone(all_numbers(dtype, ups));
        const auto compute = [&](const Table& table, int threads, bool fast) {
          const Swiglu out = swiglu(table, x, fast, result, gate, threads);
          return std::vector<Buffer>{out.y, out.dx};
        };
        const std::vector<Buffer> portable =
            everywhere([&](const Table& table, int threads) { return compute(table, threads, false); });
        for (const NamedTable& entry : tables())
          check(entry, compute(*entry.table, 1, true), portable,
                dtype != DType::f32 && gate != Gate::gelu_erf);
      }
}

// A 16-bit number is within 2^-9 (bf16) or 2^-12 (f16) of the exact value. The largest errors on the emulated
// machine, with those of the portable formulas in brackets, are: for GELU and its gradient 2^-16.9 [2^-17.1]
// of a result; for results above 2^-25, 2^-18.8 [2^-19.2] for GELU and 2^-17.2 [2^-18.5] for its gradient;
// near the gradient's zero 2^-24.9 [2^-24.7]; for SwiGLU and its gradient 2^-18.0 [2^-19.0].
TEST(FastActivation, GeluIsFarMoreExactThanSixteenBits) {
  constexpr double bound = 0x1p-16;
  const Table& table = *tables().back().table;
  for (const DType dtype : halves)
    for (const bool fast : {false, true}) {
      SCOPED_TRACE(testing::Message() << name_of(dtype) << (fast ? ", fast" : ""));
      const Buffer x = all_numbers(dtype);
      const Gelu g = gelu(table, x, -0.375f, fast, DType::f32),
                 rounded = gelu(table, x, -0.375f, fast, dtype);
      EXPECT_LE(worst_error(x, g.y, no_zero, [&](int64_t i) { return gelu_of(x.get(i)); }), bound);
      EXPECT_LE(
          worst_error(x, g.dx, gelu_slope_zero, [&](int64_t i) { return -0.375 * gelu_slope(x.get(i)); }),
          bound);
      EXPECT_TRUE(is_rounding_of(rounded.y, g.y));
      EXPECT_TRUE(is_rounding_of(rounded.dx, g.dx));
    }
}

// `form` and `slope` are the activation of the gate and its derivative, which is 0 at slope_zero.
void check_gate(Gate by, double (*form)(double), double (*slope)(double), double slope_zero) {
  constexpr double bound = 0x1p-16;
  const Table& table = *tables().back().table;
  for (const DType dtype : halves)
    for (const bool fast : {false, true}) {
      SCOPED_TRACE(testing::Message() << name_of(dtype) << (fast ? ", fast" : ""));
      const Buffer x = all_numbers(dtype, ups);
      const Swiglu s = swiglu(table, x, fast, DType::f32, by), rounded = swiglu(table, x, fast, dtype, by);
      const Buffer gate = columns_of(x, 0, patterns, 2 * patterns),
                   up = columns_of(x, patterns, 2 * patterns, 2 * patterns);
      const Buffer of_gate = columns_of(s.dx, 0, patterns, 2 * patterns),
                   of_up = columns_of(s.dx, patterns, 2 * patterns, 2 * patterns);
      const double dy = static_cast<double>(swiglu_dy);
      EXPECT_LE(worst_error(gate, s.y, no_zero, [&](int64_t i) { return form(gate.get(i)) * up.get(i); }),
                bound);
      EXPECT_LE(worst_error(gate, of_gate, slope_zero,
                            [&](int64_t i) { return dy * up.get(i) * slope(gate.get(i)); }),
                bound);
      EXPECT_LE(worst_error(gate, of_up, no_zero, [&](int64_t i) { return dy * form(gate.get(i)); }), bound);
      EXPECT_TRUE(is_rounding_of(rounded.y, s.y));
      EXPECT_TRUE(is_rounding_of(rounded.dx, s.dx));
    }
}
TEST(FastActivation, SwigluIsFarMoreExactThanSixteenBits) {
  check_gate(Gate::silu, silu_of, silu_slope, silu_slope_zero);
}
TEST(FastActivation, GegluIsFarMoreExactThanSixteenBits) {
  check_gate(Gate::gelu_tanh, gelu_of, gelu_slope, gelu_slope_zero);
}

// A NaN stays a NaN. A gradient at infinity is a number.
TEST(FastActivation, KeepsNan) {
  const Table& table = *tables().back().table;
  for (const DType dtype : halves) {
    const Buffer x = all_numbers(dtype), gates = all_numbers(dtype, ups);
    const Gelu g = gelu(table, x, 1, true, dtype);
    const Swiglu s = swiglu(table, gates, true, dtype);
    int64_t none = 0;
    for (int64_t i = 0; i < patterns; ++i) {
      if (std::isfinite(x.get(i))) continue;
      ++none;
      EXPECT_FALSE(std::isfinite(g.y.get(i)) || std::isfinite(s.y.get(i)) ||
                   std::isfinite(s.dx.get(patterns + i)))
          << i;
      EXPECT_TRUE(!std::isnan(x.get(i)) || (std::isnan(g.dx.get(i)) && std::isnan(s.dx.get(i)))) << i;
    }
    EXPECT_EQ(none, dtype == DType::bf16 ? 256 : 2048);
    // NaN in the other operands.
    Buffer others(dtype, 2 * patterns);
    for (int64_t i = 0; i < patterns; ++i) others.set(i, 0.5f), others.set(patterns + i, x.get(i));
    const Swiglu of_up = swiglu(table, others, true, dtype);
    Buffer dx(dtype, patterns);
    const Buffer half(dtype, std::vector<float>(patterns, 0.5f));
    run(table.gelu_gradient,
        GeluArgs{patterns, Activation::gelu_tanh, half.const_matrix(), x.const_matrix(), dx.matrix(), true},
        1, 0);
    for (int64_t i = 0; i < patterns; ++i)
      EXPECT_TRUE(std::isfinite(x.get(i)) || !(std::isfinite(of_up.y.get(i)) ||
                                               std::isfinite(of_up.dx.get(i)) || std::isfinite(dx.get(i))))
          << i;
  }
}

}  // namespace
}  // namespace stw::kernels::test::fast_activation_test
