// Conversions of the 16-bit types: all 65,536 patterns to fp32, and back from all numbers at and around every
// rounding boundary, on every path of the kernels (16 lanes, single elements, packing of matrix products),
// compared with the harness's own arithmetic. A NaN keeps its sign and the mantissa bits that fit, on every
// instruction set.
#include <limits>

#include "tests/kernels/everywhere.h"

namespace stw::kernels::test::conversion_test {
namespace {

float value(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

Buffer all_halves(DType dtype) {
  Buffer halves(dtype, 65536);
  for (uint32_t i = 0; i < 65536; ++i) static_cast<uint16_t*>(halves.data())[i] = static_cast<uint16_t>(i);
  return halves;
}

// Copies into another type, sixteen lanes at a time: dropout with p = 0.
Buffer by_lanes(const Table& table, const Buffer& x, DType to) {
  Buffer y(to, x.count());
  run(table.dropout, DropoutArgs{1, x.count(), 0, 0, nullptr, x.const_matrix(), y.matrix()}, 1, 0);
  return y;
}
// Element by element: rows shorter than 16 lanes. x.count() is a multiple of 8.
Buffer one_by_one(const Table& table, const Buffer& x, DType to) {
  Buffer y(to, x.count());
  std::vector<int32_t> rows(static_cast<size_t>(x.count() / 8));
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int32_t>(i);
  EmbeddingArgs args = {};
  args.rows = args.rows_per_sample = args.vocabulary = static_cast<int64_t>(rows.size()), args.features = 8;
  args.weight_dtype = x.dtype(), args.tokens = rows.data(), args.table = x.data(), args.y = y.matrix();
  run(table.embedding, args, 1, 0);
  return y;
}

bool same_number(float a, float b) { return a == b ? std::signbit(a) == std::signbit(b) : a != a && b != b; }

TEST(Conversion, EveryPatternBecomesItsNumber) {
  for (DType dtype : {DType::f16, DType::bf16}) {
    const int fraction_bits = dtype == DType::f16 ? 10 : 7, special = dtype == DType::f16 ? 31 : 255;
    const int64_t ones = (int64_t{1} << fraction_bits) - 1;
    const Buffer halves = all_halves(dtype);
    const std::vector<Buffer> found = everywhere([&](const Table& table, int) {
      return std::vector<Buffer>{by_lanes(table, halves, DType::f32), one_by_one(table, halves, DType::f32)};
    });
    EXPECT_TRUE(same_bits(found[0], found[1]));
    uint64_t wrong = 0;
    for (int64_t i = 0; i < 65536; ++i) {
      const int exponent = static_cast<int>(i >> fraction_bits & special), bias = special / 2 + fraction_bits;
      const auto fraction = static_cast<double>(i & ones), one = static_cast<double>(ones + 1);
      double expected =
          exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(one + fraction, exponent - bias);
      if (exponent == special) expected = fraction == 0 ? INFINITY : NAN;
      wrong += !same_number(found[0].get(i), static_cast<float>(i & 0x8000 ? -expected : expected));
    }
    EXPECT_EQ(wrong, 0u) << name_of(dtype);
  }
}

std::vector<float> numbers_to_round(DType dtype) {
  // The finite patterns, and the value that infinity would have if the exponents continued.
  const uint32_t infinite = dtype == DType::f16 ? 0x7c00 : 0x7f80;
  const double beyond = dtype == DType::f16 ? 65536 : 0x1p128;
  const auto number = dtype == DType::f16 ? float_of_f16 : float_of_bf16;
  std::vector<float> x;
  for (int sign : {1, -1}) {
    // Every finite number, the middle to the next one (the last middle is where infinity begins), and its
    // neighbours.
    for (uint32_t half = 0; half < infinite; ++half) {
      const double low = number(static_cast<uint16_t>(half));
      const double high = half + 1 == infinite ? beyond : number(static_cast<uint16_t>(half + 1));
      for (const auto centre : {static_cast<float>(low), static_cast<float>((low + high) / 2)})
        for (float near : {centre, std::nextafterf(centre, INFINITY), std::nextafterf(centre, -1.0f)})
          x.push_back(static_cast<float>(sign) * near);
    }
    for (float special : {0.0f,
                          INFINITY,
                          NAN,
                          65503.996f,
                          65504.0f,
                          65519.996f,
                          65520.0f,
                          65536.0f,
                          1e38f,
                          1e-45f,
                          1e-40f,
                          0x1p-24f,
                          0x1p-25f,
                          0x1.000002p-25f,
                          0x1p-26f,
                          0x1.ff8p-15f,
                          0x1.ffcp-15f,
                          0x1p-14f,
                          std::numeric_limits<float>::max(),
                          std::numeric_limits<float>::min()})
      x.push_back(static_cast<float>(sign) * special);
  }
  // Some of them are NaNs.
  for (uint64_t u = 0; u <= 0xffffffffu; u += 4099) x.push_back(value(static_cast<uint32_t>(u)));
  Random random(1);
  for (int i = 0; i < 500000; ++i)  // Random digits with the exponents of f16 and a few around them.
    x.push_back(value((static_cast<uint32_t>(random.bits()) & 0x807fffffu) |
                      static_cast<uint32_t>(random.between(100, 145)) << 23));
  while (x.size() % 8 != 0) x.push_back(0);
  return x;
}

TEST(Conversion, RoundsToNearestWithTiesToEven) {
  for (DType dtype : {DType::f16, DType::bf16}) {
    const std::vector<float> x = numbers_to_round(dtype);
    const Buffer floats(DType::f32, x);
    const std::vector<Buffer> found = everywhere([&](const Table& table, int) {
      return std::vector<Buffer>{by_lanes(table, floats, dtype), one_by_one(table, floats, dtype)};
    });
    EXPECT_TRUE(same_bits(found[0], found[1]));
    EXPECT_TRUE(same_bits(found[0], Buffer(dtype, x))) << name_of(dtype);
    uint64_t lost = 0;
    for (size_t i = 0; i < x.size(); ++i)
      lost += std::isnan(x[i]) != std::isnan(found[0].get(static_cast<int64_t>(i)));
    EXPECT_EQ(lost, 0u);
  }
}

// Anchor points of the reference itself, from the definition of the format.
TEST(Conversion, ReferenceKnowsTheLandmarks) {
  const struct {
    float x;
    uint16_t half;
  } known[] = {{1.0f, 0x3c00},           {-2.0f, 0xc000},          {65504.0f, 0x7bff},
               {65519.996f, 0x7bff},     {65520.0f, 0x7c00},       {0x1p-14f, 0x0400},
               {0x1p-24f, 0x0001},       {0x1p-25f, 0x0000},       {0x1.000002p-25f, 0x0001},
               {0x1.8p-24f, 0x0002},     {0x1.ff8p-15f, 0x03ff},   {0x1.ffcp-15f, 0x0400},
               {1.00048828125f, 0x3c00}, {1.00146484375f, 0x3c02}, {-0.0f, 0x8000},
               {INFINITY, 0x7c00}};
  for (const auto& point : known) EXPECT_EQ(f16_of(point.x), point.half) << point.x;
}

// Multiplies the numbers by the identity, as either operand, for each kind of packing. +0 replaces -0: chains
// start from +0.
TEST(Conversion, PackingKeepsEveryFiniteNumber) {
  constexpr int64_t size = 248, rows = 256;  // 2 · 31 · 1024 numbers.
  static_assert(size * rows == 63488);
  Buffer numbers(DType::f16, size * rows), identity(DType::f32, size * size);
  std::vector<float> expected, expected_transposed(static_cast<size_t>(size * rows));
  for (int64_t i = 0; i < size * rows; ++i) {
    const auto half = static_cast<uint16_t>(i < 31744 ? i : i - 31744 + 0x8000);
    static_cast<uint16_t*>(numbers.data())[i] = half;
    expected.push_back(float_of_f16(half) + 0.0f);
  }
  for (int64_t i = 0; i < size; ++i) identity.set(i * size + i, 1);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < size; ++j) expected_transposed[j * rows + i] = expected[i * size + j];
  const Buffer straight(DType::f32, expected), transposed(DType::f32, expected_transposed);
  everywhere([&](const Table& table, int threads) {
    LinearArgs args = {};
    args.inputs = size, args.parts = 1, args.rows_per_sample = 1;
    auto product = [&](int64_t count, const Buffer& x, const Buffer& w, int64_t features,
                       bool weight_transposed) {
      Buffer y(DType::f32, count * features);
      args.rows = count, args.x = {const_cast<void*>(x.data()), x.dtype()}, args.y = y.matrix();
      args.y_stride = features, args.weight_dtype = w.dtype(), args.transposed = weight_transposed;
      args.part[0] = {w.data(), nullptr, nullptr, nullptr, features};
      run(table.linear, args, threads, linear_workspace(args, threads));
      return y;
    };
    EXPECT_TRUE(same_bits(product(rows, numbers, identity, size, false), straight));
    EXPECT_TRUE(same_bits(product(size, identity, numbers, rows, false), transposed));
    // The first square of them, as a transposed weight of (inputs, features).
    EXPECT_TRUE(same_bits(product(size, identity, numbers, size, true),
                          Buffer(DType::f32, std::span<const float>(expected).first(size * size))));
    return std::vector<Buffer>{};
  });
}

}  // namespace
}  // namespace stw::kernels::test::conversion_test
