// Weights as codes: the choices of quantize_weights compared with a search over all values in double
// precision, and the values that every table restores, compared bit by bit.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/everywhere.h"

namespace stw::kernels::test::dequantize_test {
namespace {

constexpr WeightCodes both_codes[] = {WeightCodes::nf4, WeightCodes::int8};

std::vector<unsigned char> quantized(WeightCodes codes, const std::vector<float>& values) {
  const auto count = static_cast<int64_t>(values.size());
  std::vector<unsigned char> data(weight_codes_bytes(codes, count));
  std::vector<float> scales(static_cast<size_t>((count + weight_block - 1) / weight_block));
  quantize_weights(codes, values.data(), count, data.data(), scales.data());
  std::memcpy(data.data() + scales_begin(codes, count), scales.data(), scales.size() * sizeof(float));
  return data;
}

// The value of an element's code, and the element's scale, read by independent code.
struct Element {
  float value, scale;
};
Element element(WeightCodes codes, const std::vector<unsigned char>& data, int64_t count, int64_t i) {
  Element e;
  std::memcpy(&e.scale, data.data() + scales_begin(codes, count) + i / weight_block * 4, 4);
  const auto at = static_cast<size_t>(i);
  e.value = codes == WeightCodes::int8 ? static_cast<float>(static_cast<int8_t>(data[at]))
                                       : nf4_values.of[i % 2 == 0 ? data[at / 2] >> 4 : data[at / 2] & 15];
  return e;
}

Buffer dequantized(WeightCodes codes, const std::vector<unsigned char>& data, int64_t count, DType dtype,
                   int64_t misaligned = 0) {
  return everywhere([&](const Table& table, int threads) {
    Buffer room(dtype, count + misaligned);
    auto* to = static_cast<unsigned char*>(room.data()) + misaligned * (dtype == DType::f32 ? 4 : 2);
    run(table.dequantize, DequantizeArgs{count, codes, data.data(), 0, 1, count, 0, {to, dtype}}, threads, 0);
    return std::vector<Buffer>{
        misaligned ? columns_of(room, misaligned, misaligned + count, misaligned + count) : room};
  })[0];
}

const int64_t counts[] = {1, 2, 63, 64, 65, 128, 1000, 4096, 4099, 8192, 8200, 20001};

TEST(Dequantize, MultipliesTheCodesValueByItsScale) {
  Random random(1);
  int round = 0;
  for (const int64_t count : counts)
    for (const WeightCodes codes : both_codes)
      for (const int64_t misaligned : {0, 1}) {
        const DType dtype = dtype_of(round++);
        const std::vector<unsigned char> data = quantized(codes, normals(random, count, 0.02));
        Buffer expected(dtype, count);
        for (int64_t i = 0; i < count; ++i) {
          const Element e = element(codes, data, count, i);
          expected.set(i, e.value * e.scale);
        }
        EXPECT_TRUE(same_bits(dequantized(codes, data, count, dtype, misaligned), expected))
            << count << " " << name_of(dtype) << " " << misaligned;
      }
}

// Parts of a matrix: some of its rows, or some columns of some rows.
TEST(Dequantize, OfAPartHasTheBitsOfTheWhole) {
  Random random(5);
  int round = 0;
  struct Part {
    int64_t first_row, rows, first_column, columns;
  };
  for (const int64_t stride : {64, 80, 1008})
    for (const WeightCodes codes : both_codes)
      for (const Part& p :
           {Part{0, 70, 16, 32}, Part{3, 1, 32, 16}, Part{16, 54, 0, 64}, Part{0, 7, 48, 16}}) {
        const int64_t height = 70, count = height * stride, first = p.first_row * stride + p.first_column;
        const DType dtype = dtype_of(round++);
        const std::vector<unsigned char> data = quantized(codes, normals(random, count, 0.02));
        const Buffer whole = dequantized(codes, data, count, dtype);
        const Buffer part = everywhere([&](const Table& table, int threads) {
          Buffer y(dtype, p.rows * p.columns);
          run(table.dequantize,
              DequantizeArgs{count, codes, data.data(), first, p.rows, p.columns, stride, y.matrix()},
              threads, 0);
          return std::vector<Buffer>{y};
        })[0];
        for (int64_t row = 0; row < p.rows; ++row)
          for (int64_t column = 0; column < p.columns; ++column)
            ASSERT_EQ(part.get(row * p.columns + column), whole.get(first + row * stride + column))
                << row << " " << column;
        if (p.columns != stride) continue;
        const Buffer rows = everywhere([&](const Table& table, int threads) {  // Whole rows, all adjacent.
          Buffer y(dtype, p.rows * p.columns);
          run(table.dequantize,
              DequantizeArgs{count, codes, data.data(), first, 1, p.rows * p.columns, 0, y.matrix()}, threads,
              0);
          return std::vector<Buffer>{y};
        })[0];
        EXPECT_TRUE(same_bits(rows, part));
      }
}

// Every code of both kinds, in every place of a group.
TEST(Dequantize, KnowsEveryCode) {
  for (const WeightCodes codes : both_codes)
    for (const DType dtype : all_dtypes) {
      const int64_t count = 256 * 64;
      std::vector<unsigned char> data(weight_codes_bytes(codes, count));
      for (size_t i = 0; i < scales_begin(codes, count); ++i)
        data[i] = static_cast<unsigned char>(i / 64 + i * 37);
      std::vector<float> scales(count / weight_block);
      for (size_t b = 0; b < scales.size(); ++b) scales[b] = static_cast<float>(b + 1) * 0.37f;
      std::memcpy(data.data() + scales_begin(codes, count), scales.data(), scales.size() * sizeof(float));
      Buffer expected(dtype, count);
      for (int64_t i = 0; i < count; ++i) {
        const Element e = element(codes, data, count, i);
        expected.set(i, e.value * e.scale);
      }
      EXPECT_TRUE(same_bits(dequantized(codes, data, count, dtype), expected)) << name_of(dtype);
    }
}

TEST(QuantizeWeights, TakesTheNearestValue) {
  Random random(2);
  for (const WeightCodes codes : both_codes)
    for (const double size : {1e-30, 0.02, 1e30}) {
      const int64_t count = 5000;
      std::vector<float> values = normals(random, count, size);
      values[70] = 0, values[71] = -0.0f;
      const std::vector<unsigned char> data = quantized(codes, values);
      for (int64_t i = 0; i < count; ++i) {
        float most = 0;
        for (int64_t j = i / weight_block * weight_block;
             j < std::min(count, (i / weight_block + 1) * weight_block); ++j)
          most = std::max(most, std::fabs(values[j]));
        const Element e = element(codes, data, count, i);
        ASSERT_EQ(e.scale, codes == WeightCodes::nf4 ? most : most / 127.0f);
        const double exact = static_cast<double>(values[i]), scale = static_cast<double>(e.scale);
        double nearest = INFINITY;
        for (int code = 0; code < (codes == WeightCodes::nf4 ? 16 : 255); ++code)
          nearest = std::min(
              nearest,
              std::fabs(exact - scale * (codes == WeightCodes::nf4 ? static_cast<double>(nf4_values.of[code])
                                                                   : code - 127)));
        // The quotient is rounded once: close to a middle, either adjacent value may be chosen.
        ASSERT_LE(std::fabs(exact - scale * static_cast<double>(e.value)),
                  nearest + 1e-6 * static_cast<double>(most))
            << i;
      }
    }
}

// Dequantized values get the same codes again. So a checkpoint may hold the codes or the values.
TEST(QuantizeWeights, OfDequantizedWeightsGivesTheSameNf4Codes) {
  Random random(3);
  const int64_t count = 10000;
  const std::vector<unsigned char> data = quantized(WeightCodes::nf4, normals(random, count, 0.02));
  EXPECT_EQ(quantized(WeightCodes::nf4, dequantized(WeightCodes::nf4, data, count, DType::f32).floats()),
            data);
}

TEST(QuantizeWeights, ErrorsAgreeWithTheFormat) {
  Random random(4);
  const std::vector<float> values = normals(random, 64 * 2000);
  const auto error = [&](WeightCodes codes) {
    const std::vector<float> again =
        dequantized(codes, quantized(codes, values), static_cast<int64_t>(values.size()), DType::f32)
            .floats();
    double sum = 0, all = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const double x = static_cast<double>(values[i]), d = static_cast<double>(again[i]) - x;
      sum += d * d, all += x * x;
    }
    return std::sqrt(sum / all);
  };
  // For normal numbers in blocks of 64. Computed independently with numpy: 0.09196 and 0.00593.
  EXPECT_NEAR(error(WeightCodes::nf4), 0.09196, 0.0003);
  EXPECT_NEAR(error(WeightCodes::int8), 0.00593, 0.0001);
}

TEST(QuantizeWeights, BlocksOfZerosAndOfNonFiniteValues) {
  for (const WeightCodes codes : both_codes)
    for (const float bad : {INFINITY, -INFINITY, std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> values(3 * weight_block + 5, 0.0f);
      values[weight_block + 3] = bad, values[weight_block + 4] = 1;
      values[2 * weight_block] = 2;
      const auto count = static_cast<int64_t>(values.size());
      const std::vector<float> again =
          dequantized(codes, quantized(codes, values), count, DType::f32).floats();
      for (int64_t i = 0; i < count; ++i) {
        const float x = again[i];
        if (i / weight_block == 1) EXPECT_TRUE(std::isnan(x)) << i;
        else EXPECT_EQ(x, i == 2 * weight_block ? 2.0f : 0.0f) << i;
      }
    }
}

}  // namespace
}  // namespace stw::kernels::test::dequantize_test
