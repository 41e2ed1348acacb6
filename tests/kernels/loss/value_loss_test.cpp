// value_loss and value_hits compared with double precision and their definitions. Bits must be the same on
// every instruction set, number of threads and device.
#include "tests/kernels/update/update.h"

namespace stw::kernels::test::value_loss_test {
namespace {

struct Case {
  int64_t rows, count;
  DType dtype;
  ValueLoss kind;
  double deviation = 2, scale = 1;
  std::vector<float> weights = {};  // Empty: null.
};

const char* name_of(ValueLoss kind) {
  return kind == ValueLoss::squared_error ? "squared error" : "binary cross entropy";
}

struct Inputs {
  Buffer logits;
  std::vector<float> values;
  std::vector<int32_t> targets;
};

Inputs random_inputs(const Case& c, uint64_t seed) {
  Random random(seed);
  Inputs in{Buffer::normal(c.dtype, random, c.rows * c.count, c.deviation), {}, {}};
  for (int64_t i = 0; i < c.rows * c.count; ++i) {
    const int64_t kind = random.between(0, 4);
    in.values.push_back(c.kind == ValueLoss::squared_error ? static_cast<float>(8 * random.uniform() - 4)
                        : kind < 2                         ? 0
                        : kind < 4                         ? 1
                                                           : static_cast<float>(random.uniform()));
  }
  for (int64_t row = 0; row < c.rows; ++row)
    in.targets.push_back(random.between(0, 3) == 0 ? ignored_target : 0);
  return in;
}

struct Outcome {
  std::vector<float> loss;
  Buffer logits;
};
Outcome compute(const Table& table, const Case& c, const Buffer& logits, const Inputs& in, bool gradient,
                int threads, int64_t stride = 0) {
  StepState state = unscaled_state();
  state.loss_scale = c.scale * 1024, state.batch_factor = 1.0 / 1024;
  Outcome outcome{std::vector<float>(in.targets.size(), NAN), logits};
  ValueLossArgs args = {};
  args.rows = c.rows, args.count = c.count, args.kind = c.kind, args.targets = in.targets.data(),
  args.values = in.values.data();
  args.logits = outcome.logits.matrix(), args.gradient = gradient, args.row_loss = outcome.loss.data();
  args.weights = c.weights.empty() ? nullptr : c.weights.data(), args.state = &state,
  args.stride = stride > 0 ? stride : c.count;
  run(table.value_loss, args, threads, 0);
  return outcome;
}

// A row's loss and gradient from their definitions in kernels.h, without its weight and the scale.
struct Row {
  double loss = 0;
  std::vector<double> gradient;
};
Row reference_row(ValueLoss kind, const std::vector<double>& x, const float* values) {
  Row row;
  const auto count = static_cast<double>(x.size());
  for (size_t j = 0; j < x.size(); ++j) {
    const double y = static_cast<double>(values[j]);
    const bool is_square = kind == ValueLoss::squared_error;
    row.loss += (is_square ? (x[j] - y) * (x[j] - y)
                           : std::fmax(x[j], 0) - x[j] * y + std::log1p(std::exp(-std::fabs(x[j])))) /
                count;
    row.gradient.push_back((is_square ? 2 * (x[j] - y) : 1 / (1 + std::exp(-x[j])) - y) / count);
  }
  return row;
}
std::vector<double> row_of(const Case& c, const Buffer& logits, int64_t row) {
  std::vector<double> x;
  for (int64_t j = 0; j < c.count; ++j) x.push_back(logits.get(row * c.count + j));
  return x;
}
double weight_of(const Case& c, int64_t row) {
  return c.weights.empty() ? 1 : static_cast<double>(c.weights[row]);
}

void check(const Case& c, uint64_t seed) {
  SCOPED_TRACE(testing::Message() << c.rows << " rows of " << c.count << ", " << test::name_of(c.dtype)
                                  << ", " << name_of(c.kind) << ", scale " << c.scale
                                  << (c.weights.empty() ? "" : ", weighted"));
  const Inputs in = random_inputs(c, seed);
  std::vector<double> loss, gradient;
  for (int64_t row = 0; row < c.rows; ++row) {
    const bool counts = in.targets[row] != ignored_target;
    const Row expected = reference_row(c.kind, row_of(c, in.logits, row), in.values.data() + row * c.count);
    const double weight = counts ? weight_of(c, row) : 0;
    loss.push_back(expected.loss * weight);
    for (const double slope : expected.gradient) gradient.push_back(slope * weight * c.scale);
  }
  const Outcome first = compute(*tables()[0].table, c, in.logits, in, true, 1);
  EXPECT_LE(relative_error(first.loss, loss), 1e-6);
  EXPECT_LE(relative_error(first.logits.floats(), gradient), tolerance(c.dtype));
  for (size_t row = 0; row < in.targets.size(); ++row)
    if (in.targets[row] == ignored_target) { EXPECT_EQ(first.loss[row], 0.0f); }
  for (const NamedTable& named : tables())
    for (const int threads : {1, 3}) {
      SCOPED_TRACE(testing::Message() << named.name << " " << threads);
      const Outcome both = compute(*named.table, c, in.logits, in, true, threads);
      EXPECT_TRUE(same_bits(both.loss, first.loss));
      EXPECT_TRUE(same_bits(both.logits, first.logits));
      const Outcome only_loss = compute(*named.table, c, in.logits, in, false, threads);
      EXPECT_TRUE(same_bits(only_loss.loss, first.loss));
      EXPECT_TRUE(same_bits(only_loss.logits, in.logits));
    }
}

TEST(ValueLoss, AgreesWithDoublePrecision) {
  uint64_t seed = 1;
  for (const ValueLoss kind : {ValueLoss::binary_cross_entropy, ValueLoss::squared_error})
    for (const DType dtype : all_dtypes) {
      for (const int64_t count : {1, 2, 15, 16, 17, 63, 64, 65, 257, 1001})
        check({19, count, dtype, kind}, seed++);
      check({3, loss_columns + 17, dtype, kind}, seed++);
      check({9, 40, dtype, kind, 2, 0.125, {1, 0, 2, 0.5f, 1, 3, 1, -0.0f, 1}}, seed++);
    }
}

TEST(ValueLoss, GradientsAgreeWithFiniteDifferences) {
  for (const ValueLoss kind : {ValueLoss::binary_cross_entropy, ValueLoss::squared_error}) {
    const Case c{5, 23, DType::f32, kind, 2, 4, {1, 2, 0.3f, 1, 5}};
    Inputs in = random_inputs(c, 7);
    in.targets.assign(5, 0);
    std::vector<double> slopes;
    for (int64_t row = 0; row < c.rows; ++row) {
      std::vector<double> x = row_of(c, in.logits, row);
      for (double& value : x) {
        const double kept = value;
        const auto at = [&](double moved) {
          value = moved;
          return reference_row(kind, x, in.values.data() + row * c.count).loss;
        };
        const double above = at(kept + 1e-5);
        slopes.push_back((above - at(kept - 1e-5)) / 2e-5 * c.scale * weight_of(c, row));
        value = kept;
      }
    }
    for (const NamedTable& named : tables())
      EXPECT_LE(relative_error(compute(*named.table, c, in.logits, in, true, 1).logits.floats(), slopes),
                1e-6)
          << named.name;
  }
}

// Certain logits: losses far below 1 keep their digits, and nothing overflows.
TEST(ValueLoss, SurvivesExtremeLogits) {
  const std::vector<float> logits = {20, -20, 80, -80, 1e30f, -1e30f, 20, -20},
                           values = {1, 0, 1, 0, 1, 0, 0, 1};
  for (const NamedTable& named : tables())
    for (size_t i = 0; i < logits.size(); ++i) {
      const Inputs in{Buffer(DType::f32, std::vector<float>{logits[i]}), {values[i]}, {0}};
      const Outcome outcome =
          compute(*named.table, {1, 1, DType::f32, ValueLoss::binary_cross_entropy}, in.logits, in, true, 1);
      const double x = static_cast<double>(logits[i]), expected = std::fmax(x, 0) -
                                                                  x * static_cast<double>(values[i]) +
                                                                  std::log1p(std::exp(-std::fabs(x)));
      EXPECT_NEAR(outcome.loss[0], expected, 1e-6 * expected) << named.name << " " << logits[i];
      if (i >= 6) {
        EXPECT_FLOAT_EQ(static_cast<float>(outcome.logits.get(0)), values[i] == 1 ? -1.0f : 1.0f);
      } else {
        EXPECT_LE(std::fabs(outcome.logits.get(0)), 3e-9) << named.name;
      }
    }
}

// A value that is not finite makes the result of its row not finite if the row counts, and changes no other
// row.
TEST(ValueLoss, HidesNoNumberThatIsNotFinite) {
  for (const ValueLoss kind : {ValueLoss::binary_cross_entropy, ValueLoss::squared_error})
    for (const DType dtype : all_dtypes)
      for (const NamedTable& named : tables())
        for (const float odd : {INFINITY, static_cast<float>(NAN), -INFINITY}) {
          Buffer logits(dtype, 4 * 20);
          logits.set(20 + 7, odd), logits.set(40 + 7, odd), logits.set(60 + 7, odd);
          const Inputs in{logits, std::vector<float>(80, 0.5f), {0, 0, ignored_target, 0}};
          const Outcome outcome =
              compute(*named.table, {4, 20, dtype, kind, 1, 1, {1, 1, 1, 0}}, logits, in, true, 1);
          EXPECT_TRUE(std::isfinite(outcome.loss[0])) << named.name;
          EXPECT_FALSE(std::isfinite(outcome.loss[1])) << named.name << " " << odd;
          EXPECT_EQ(outcome.loss[2], 0.0f);
          EXPECT_EQ(outcome.loss[3], 0.0f);
          for (int64_t i = 40; i < 80; ++i) ASSERT_EQ(outcome.logits.get(i), 0) << named.name;
        }
}

// If rows lie further apart than they are long, the bits are the same, and zeros follow a gradient.
TEST(ValueLoss, RowsMayLieFurtherApart) {
  for (const DType dtype : all_dtypes)
    for (const auto& [count, stride] :
         {std::pair<int64_t, int64_t>{1, 16}, {5, 16}, {61, 67}, {130, 144}, {64, 64}}) {
      const Case c{9, count, dtype, ValueLoss::binary_cross_entropy, 2, 1, {1, 0, 1, 2, 1, 1, 0.5f, 1, 1}};
      const Inputs in = random_inputs(c, 14);
      for (const NamedTable& named : tables())
        for (const bool gradient : {false, true}) {
          SCOPED_TRACE(testing::Message() << named.name << ", " << count << " at a stride of " << stride
                                          << ", " << test::name_of(dtype));
          const Outcome expected = compute(*named.table, c, in.logits, in, gradient, 1);
          const Buffer apart = spread(in.logits, count, stride, [](int64_t) { return NAN; });
          const Outcome found = compute(*named.table, c, apart, in, gradient, 2, stride);
          EXPECT_TRUE(same_bits(found.loss, expected.loss));
          EXPECT_TRUE(same_bits(columns_of(found.logits, 0, count, stride), expected.logits));
          const Buffer past(dtype, c.rows * (stride - count));
          if (stride > count) {
            EXPECT_TRUE(same_bits(columns_of(found.logits, count, stride, stride),
                                  gradient ? past : columns_of(apart, count, stride, stride)));
          }
        }
    }
}

TEST(ValueHits, CountRowsThatAreAllRight) {
  Random random(5);
  for (const DType dtype : all_dtypes)
    for (const auto& [rows, count, padding] :
         {std::tuple{1, 1, 15}, {7, 3, 13}, {1100, 5, 11}, {33, 77, 3}}) {
      const int64_t stride = count + padding;
      std::vector<float> logits(static_cast<size_t>(rows * stride), 100), values;
      std::vector<int32_t> targets;
      uint32_t expected = 0, counted = 0;
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t kind = random.between(0, 3);  // All right; one is wrong; one is NaN; no values.
        const int64_t odd = random.between(0, count - 1);
        for (int64_t j = 0; j < count; ++j) {
          // A value of a half does not count as present.
          const float share = static_cast<float>(random.between(0, 4)) / 4;
          const bool is_there = share > 0.5f, is_right = kind != 1 || j != odd;
          values.push_back(share);
          const float size =
              random.between(0, 5) == 0 ? 0 : static_cast<float>(1 + random.between(0, 40)) / 8;
          // Zero is not above zero.
          logits[row * stride + j] = kind == 2 && j == odd  ? NAN
                                     : is_there == is_right ? (size == 0 ? 0.5f : size)
                                                            : -size;
        }
        targets.push_back(kind == 3 ? ignored_target : 0);
        expected += kind == 0;
        counted += kind != 3;
      }
      if (rows > 100) {
        EXPECT_GT(expected, 0u);
        EXPECT_LT(expected, counted);
      }
      for (const NamedTable& named : tables())
        for (const int threads : {1, 3}) {
          StepState state{};
          state.hits = 40;
          Buffer copy(dtype, logits);
          run(named.table->value_hits,
              ValueHitsArgs{
                  rows, count, targets.data(), values.data(), {copy.matrix().data, dtype}, stride, &state},
              threads, 0);
          EXPECT_EQ(state.hits, 40 + expected) << named.name << " " << rows << " x " << count;
        }
    }
}

}  // namespace
}  // namespace stw::kernels::test::value_loss_test
