// Weight gradients in bf16: compared with the plain rule (rounding.h) bit for bit, for all threads, tiles and
// cuts between samples; on tensor cores compared with fp64. The rounding is unbiased. Values that are not
// finite stay not finite.
#include "tests/kernels/product/linear_problem.h"

namespace stw::kernels::test::gradient_rounding_test {
namespace {

// The known answers with which Random123, the authors' implementation, is tested.
TEST(GradientRounding, TheJudgeDrawsPhiloxNumbers) {
  const auto expect = [](RandomBlock counter, uint64_t key, RandomBlock expected) {
    const RandomBlock found = philox_block(counter, key);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(found.word[i], expected.word[i]);
  };
  expect({{0, 0, 0, 0}}, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
  expect({{~0u, ~0u, ~0u, ~0u}}, ~uint64_t{0}, {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
  expect({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0x299f31d0a4093822u,
         {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
}

std::vector<ProductKernels> ways() {
  std::vector<ProductKernels> list = tensor_kernels();
  list.push_back(ProductKernels::chain);
  return list;
}

void expect_plain_bits(Problem& problem, const std::vector<int>& thread_counts) {
  const Problem::Gradients expected = problem.naive_parameter_gradients();
  for (const NamedTable& t : tables())
    for (int threads : thread_counts) {
      if (emulated() && threads != thread_counts[0]) continue;
      EXPECT_TRUE(same(problem.parameter_gradients(*t.table, threads), expected))
          << t.name << ", threads " << threads << ", " << problem.describe();
    }
}

TEST(GradientRounding, RandomOddShapesHaveTheBitsOfThePlainRule) {
  Random random(1);
  for (int i = 0; i < 60; ++i) {
    Shape shape = {random.between(1, 4), random.between(1, 40), random.between(1, 70), {}};
    for (int64_t parts = random.between(1, max_parts); parts > 0; --parts)
      shape.features.push_back(random.between(1, i % 2 ? 20 : 70));
    Problem problem = rounded_problem(random, shape, dtype_of(i), random.bits() & 1, random.bits() & 1);
    expect_plain_bits(problem, {1, 3});
  }
}

// More than one block along every dimension, and tiles of either size on a GPU.
TEST(GradientRounding, SeveralBlocksHaveTheBitsOfThePlainRule) {
  Random random(2);
  const Shape wide = {2, 35, emulated() ? 80 : 600, {emulated() ? 1100 : 401}},
              tall = {3, 19, emulated() ? 140 : 270, {emulated() ? 40 : 900, 33}},
              deep = {2, emulated() ? 150 : 530, 35, {67, 19}};
  for (const Shape& shape : {wide, tall, deep})
    for (bool transposed : {false, true}) {
      Problem problem = rounded_problem(random, shape, transposed ? bf16 : f32, transposed, transposed);
      expect_plain_bits(problem, {1, 2, 5, 16});
    }
}

TEST(GradientRounding, PartsWithoutGradientsStayUnchanged) {
  Random random(3);
  for (const ProductKernels products : ways()) {
    Problem problem = rounded_problem(random, {2, 9, 24, {16, 40, 8}}, bf16, false, true);
    problem.products = products;
    for (const NamedTable& t : tables()) {
      const Problem::Gradients all = problem.parameter_gradients(*t.table, 2);
      for (int frozen = 0; frozen < 3; ++frozen) {
        const Problem::Gradients found = problem.parameter_gradients(*t.table, 2, {}, frozen);
        for (size_t part = 0; part < 3; ++part)
          EXPECT_TRUE(same_bits(found.weight[part], static_cast<int>(part) == frozen
                                                        ? problem.weight_gradient[part]
                                                        : all.weight[part]));
      }
    }
  }
}

// Contract E3 also holds if samples are not multiples of a tensor core's steps, and if slices of two steps do
// not divide samples evenly.
TEST(GradientRounding, CutsBetweenSamplesGiveTheSameBits) {
  Random random(4);
  for (int64_t rows_per_sample : {1, 16, 24, 40, 48, 70})
    for (bool transposed : {false, true})
      for (const ProductKernels products : ways()) {
        Problem problem =
            rounded_problem(random, {6, rows_per_sample, 40, {48, 24}}, bf16, transposed, transposed);
        problem.products = products;
        for (const NamedTable& t : tables()) {
          const Problem::Gradients whole = problem.parameter_gradients(*t.table, 2);
          for (const std::vector<int64_t>& cuts :
               {std::vector<int64_t>{1}, std::vector<int64_t>{2, 5}, std::vector<int64_t>{1, 2, 3, 4, 5}})
            EXPECT_TRUE(same(problem.parameter_gradients(*t.table, 2, cuts), whole))
                << t.name << " " << rows_per_sample;
        }
      }
}

// Every field of the counter and the key matters.
TEST(GradientRounding, DependsOnSeedStepSampleAndStream) {
  Random random(5);
  for (const ProductKernels products : ways()) {
    Problem problem = rounded_problem(random, {1, 20, 40, {48, 48}}, bf16, false, false);
    problem.products = products;
    const auto gradient_on = [&](const NamedTable& t) {
      return problem.parameter_gradients(*t.table, 1).weight[0];
    };
    for (const NamedTable& t : tables()) {
      const StepState before = problem.state;
      const Buffer start = gradient_on(t);
      EXPECT_TRUE(same_bits(gradient_on(t), start));
      problem.state.seed ^= uint64_t{1} << 40;
      EXPECT_FALSE(same_bits(gradient_on(t), start)) << t.name;
      problem.state = before, ++problem.state.step;
      EXPECT_FALSE(same_bits(gradient_on(t), start)) << t.name;
      problem.state = before, ++problem.state.first_sample;
      EXPECT_FALSE(same_bits(gradient_on(t), start)) << t.name;
      problem.state = before;
    }
  }
}

// A rounding moves a number by less than the distance to the next one, at most 2^-7 of its size. Its size is
// at most that of the exact sum after the sample plus the error so far. The chains' own errors are a
// thousandth of a rounding.
TEST(GradientRounding, StaysCloseToDoublePrecision) {
  Random random(6);
  for (int round = 0; round < 16; ++round) {
    Problem p = rounded_problem(
        random,
        {random.between(1, 5), random.between(1, 50), 8 * random.between(1, 12), {8 * random.between(1, 12)}},
        round % 4 < 2 ? bf16 : f16, round % 2, round % 3 == 0);
    p.products = ways()[static_cast<size_t>(round) % tensor_kernels().size()];
    for (const NamedTable& t : tables()) {
      const Buffer found = p.parameter_gradients(*t.table, 1).weight[0];
      for (int64_t feature = 0; feature < p.outputs; ++feature)
        for (int64_t i = 0; i < p.shape.inputs; ++i) {
          const int64_t at = p.dw_at(0, feature, i);
          double sum = p.accumulate ? p.weight_gradient[0].get(at) : 0, limit = 0;
          for (int64_t row = 0; row < p.rows; ++row) {
            sum +=
                static_cast<double>(p.dy.get(row * p.outputs + feature)) * p.x.get(row * p.shape.inputs + i);
            if ((row + 1) % p.shape.rows_per_sample == 0) limit += (std::fabs(sum) + limit) * 0x1p-7 + 1e-5;
          }
          ASSERT_LE(std::fabs(found.get(at) - sum), limit) << t.name << ", " << p.describe();
        }
    }
  }
}

// Every sample adds a 64th of the distance to the next bf16 number to 1. Rounded to nearest, it would stay 1.
// The mean of n elements has a standard deviation of √(samples·p·(1 - p) / n) distances with p = 1/64; the
// test allows five of them.
TEST(GradientRounding, IsRightInTheMean) {
  Random random(7);
  constexpr int64_t samples = 48, rows_per_sample = 3, inputs = 128, features = 96;
  for (const ProductKernels products : ways()) {
    Problem p = rounded_problem(random, {samples, rows_per_sample, inputs, {features}}, bf16, false, true);
    p.products = products;
    const double distance = 0x1p-7, share = 1 / 64.0;
    for (int64_t i = 0; i < p.x.count(); ++i) p.x.set(i, 1);
    for (int64_t i = 0; i < p.dy.count(); ++i)
      p.dy.set(i, i / features % rows_per_sample == 1 ? static_cast<float>(distance * share) : 0.0f);
    for (int64_t i = 0; i < p.weight_gradient[0].count(); ++i) p.weight_gradient[0].set(i, 1);
    for (const NamedTable& t : tables()) {
      const Buffer found = p.parameter_gradients(*t.table, 2).weight[0];
      double sum = 0;
      for (float value : found.floats()) sum += (value - 1) / distance;
      const auto n = static_cast<double>(found.count());
      EXPECT_NEAR(sum / n, samples * share, 5 * std::sqrt(samples * share * (1 - share) / n)) << t.name;
    }
  }
}

// A NaN whose lower bits are all set would become a zero with most of the numbers that are added to it.
TEST(GradientRounding, NonFiniteValuesStayNonFinite) {
  Random random(8);
  for (uint32_t bits : {0x7fffffffu, 0xffffffffu, 0x7f800001u, 0xffbfffffu, 0x7f800000u, 0xff800000u})
    for (bool transposed : {false, true}) {
      Problem p = rounded_problem(random, {3, 5, 70, {17}}, f32, transposed, true);
      for (int64_t i = 0; i < p.x.count(); ++i) p.x.set(i, std::fabs(p.x.get(i)) + 0.5f);
      const Problem::Gradients finite = p.naive_parameter_gradients();
      const float bad = std::bit_cast<float>(bits);
      // Feature 4 of a row of the second sample.
      std::memcpy(static_cast<char*>(p.dy.data()) + (7 * 17 + 4) * 4, &bits, 4);
      for (const NamedTable& t : tables()) {
        const Buffer found = p.parameter_gradients(*t.table, 2).weight[0];
        for (int64_t feature = 0; feature < 17; ++feature)
          for (int64_t i = 0; i < 70; ++i) {
            const float value = found.get(p.dw_at(0, feature, i));
            if (feature != 4) ASSERT_EQ(value, finite.weight[0].get(p.dw_at(0, feature, i))) << t.name;
            else if (std::isnan(bad)) ASSERT_TRUE(std::isnan(value)) << t.name << " " << std::hex << bits;
            else ASSERT_EQ(value, bad) << t.name;
          }
      }
    }
  // The same on tensor cores, with such values in the buffer and in an operand.
  Problem p = rounded_problem(random, {2, 20, 16, {24}}, bf16, false, true);
  for (int64_t i = 0; i < p.x.count(); ++i) p.x.set(i, std::fabs(p.x.get(i)) + 0.5f);
  p.weight_gradient[0].set(3 * 16 + 5, NAN);
  p.weight_gradient[0].set(3 * 16 + 6, -INFINITY);
  p.dy.set(2 * 24 + 7, INFINITY);
  p.dy.set(3 * 24 + 8, NAN);
  for (const ProductKernels products : tensor_kernels()) {
    p.products = products;
    for (const NamedTable& t : tables()) {
      const Buffer found = p.parameter_gradients(*t.table, 1).weight[0];
      for (int64_t at = 0; at < found.count(); ++at) {
        const int64_t feature = at / 16;
        if (feature == 8 || at == 3 * 16 + 5) EXPECT_TRUE(std::isnan(found.get(at))) << t.name << " " << at;
        else if (feature == 7) EXPECT_EQ(found.get(at), INFINITY) << t.name << " " << at;
        else if (at == 3 * 16 + 6) EXPECT_EQ(found.get(at), -INFINITY) << t.name;
        else EXPECT_TRUE(std::isfinite(found.get(at))) << t.name << " " << at;
      }
    }
  }
}

// Without rows, the gradient is unchanged, or +0.
TEST(GradientRounding, NothingToSum) {
  Random random(9);
  for (const ProductKernels products : ways())
    for (bool accumulate : {false, true}) {
      Problem p = rounded_problem(random, {1, 4, 16, {24}}, bf16, false, accumulate);
      p.products = products;
      for (const NamedTable& t : tables()) {
        Buffer dw = p.weight_gradient[0];
        LinearArgs a = p.args(p.x.matrix(), p.dy.matrix());
        a.rows = 0, a.part[0].weight_gradient = dw.data();
        run(t.table->linear_weight_gradient, a, 1, linear_weight_gradient_workspace(a, 1));
        EXPECT_TRUE(same_bits(dw, accumulate ? p.weight_gradient[0] : Buffer(bf16, 16 * 24))) << t.name;
      }
    }
}

}  // namespace
}  // namespace stw::kernels::test::gradient_rounding_test
