// Adafactor compared with fp64 and with PyTorch, and its limits.
#include "tests/golden/optimizers.h"
#include "tests/kernels/update/updates.h"

namespace stw::kernels::test::adafactor_test {
namespace {

struct Expected {
  std::vector<double> p, first, second;
  double update_rms;
};

double rms(const std::vector<double>& values) {
  double squares = 0;
  for (double value : values) squares += value * value;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

Expected expected_of(const Parameter& s, const StepState& state, double decay) {
  const auto n = static_cast<size_t>(s.count), columns = static_cast<size_t>(s.columns);
  const size_t rows = columns == 0 ? 0 : n / columns;
  const double share = state.fresh_share;
  std::vector<double> p(s.p.begin(), s.p.begin() + s.count), g, u, row(rows), column(columns), full;
  for (float value : s.gradient) g.push_back(state.coefficient * value);
  const double alpha = std::max(1e-3, rms(p)) * std::min(state.learning_rate, state.inverse_root);
  double mean = 0;
  if (rows > 0) {
    for (size_t i = 0; i < n; ++i) {
      row[i / columns] += g[i] * g[i] / static_cast<double>(columns);
      column[i % columns] += g[i] * g[i] / static_cast<double>(rows);
    }
    for (size_t i = 0; i < rows; ++i) row[i] = (1 - share) * s.first[i] + share * row[i];
    for (size_t j = 0; j < columns; ++j) column[j] = (1 - share) * s.second[j] + share * column[j];
    for (double value : row) mean += value / static_cast<double>(rows);
  } else {
    for (size_t i = 0; i < n; ++i) full.push_back((1 - share) * s.second[i] + share * g[i] * g[i]);
  }
  const double epsilon = 0x1p-23;
  for (size_t i = 0; i < n; ++i) {
    const double v = rows > 0 ? row[i / columns] * column[i % columns] / std::max(mean, epsilon) : full[i];
    u.push_back(g[i] / std::sqrt(std::max(v, epsilon * epsilon)));
  }
  const double update_rms = rms(u);
  for (size_t i = 0; i < n; ++i)
    p[i] = p[i] * (1 - state.learning_rate * decay) - alpha / std::max(1.0, update_rms) * u[i];
  return {p, row, rows > 0 ? column : full, update_rms};
}

double state_error(const std::vector<float>& found, const std::vector<double>& expected) {
  return relative_error(
      std::vector<float>(found.begin(), found.begin() + static_cast<int64_t>(expected.size())), expected);
}

// The errors come from sums of up to 4096 positive terms by 16 lanes in fp32, and from a few roundings of
// 2^-24. The largest measured error is 3.6e-7.
TEST(Adafactor, AgreesWithDouble) {
  Random random(1);
  for (const Extents& shape : shapes_of(adafactor_rule))
    for (double t : {1.0, 4.0, 1000.0})
      for (float scale : {1.0f, 30.0f, 1e-6f}) {  // Usual, clipped, below epsilon.
        Parameter s = Parameter(random, shape).for_rule(adafactor_rule);
        for (float& value : s.gradient) value *= scale;
        if (scale < 1 || t == 1)
          for (std::vector<float>* state : {&s.first, &s.second})
            std::fill(state->begin(), state->end(), 0.0f);
        const StepState state = state_of(t);
        const Expected expected = expected_of(s, state, 0.1);
        if (scale > 1 && t > 1) { EXPECT_GT(expected.update_rms, 1); }
        update(adafactor_rule, *tables().back().table, s.args(state, 0.1), 2);
        if (shape.columns > 0) { EXPECT_LE(state_error(s.first, expected.first), 1e-6); }
        EXPECT_LE(state_error(s.second, expected.second), 1e-6);
        EXPECT_LE(state_error(s.p, expected.p), 1e-6) << shape.rows << "x" << shape.columns << " at " << t;
      }
}

// A learning rate above 1 / √t has the effect of 1 / √t. Parameters near 0 move by at least 1e-3 of the rate.
TEST(Adafactor, BoundsTheStep) {
  Random random(2);
  const Table& table = *tables().back().table;
  for (int64_t columns : {0, 13}) {
    Parameter small(random, {17, columns}), large = small;
    StepState state = state_of(100);
    state.learning_rate = 0.1;
    update(adafactor_rule, table, small.args(state));
    state.learning_rate = 5;
    update(adafactor_rule, table, large.args(state));
    EXPECT_TRUE(same_bits(small.bytes(), large.bytes()));
    Parameter zeros(random, {17, columns});
    std::fill(zeros.p.begin(), zeros.p.end(), 0.0f);
    const Expected expected = expected_of(zeros, state, 0);
    update(adafactor_rule, table, zeros.args(state));
    EXPECT_LE(state_error(zeros.p, expected.p), 1e-6);
    EXPECT_NEAR(rms({zeros.p.begin(), zeros.p.begin() + zeros.count}),
                1e-4 * std::min(1.0, expected.update_rms), 1e-8);
  }
}

TEST(Adafactor, WithoutAGradientOnlyDecays) {
  Random random(3);
  for (int64_t columns : {0, 30}) {
    Parameter s(random, {20, columns});
    for (std::vector<float>* zeroed : {&s.gradient, &s.first, &s.second})
      std::fill(zeroed->begin(), zeroed->end(), 0.0f);
    const std::vector<float> before = s.p;
    const StepState state = state_of(1);
    update(adafactor_rule, *tables().back().table, s.args(state, 0.1));
    for (size_t i = 0; i < static_cast<size_t>(s.count); ++i) ASSERT_EQ(s.p[i], before[i] * (1 - 1e-3f));
  }
}

void train(const Table& table, const golden::AdafactorCase& golden, int count, int columns, int first_element,
           const float* expected) {
  std::vector<float> p, first(static_cast<size_t>(count)), second = first, g = first;
  for (int i = 0; i < count; ++i) p.push_back(number_at(0, first_element + i));
  for (int step = 1; step <= golden::steps; ++step) {
    for (int i = 0; i < count; ++i) g[i] = number_at(step, first_element + i);
    StepState state = state_of(step);
    state.learning_rate = golden.learning_rate, state.coefficient = 1;
    UpdateArgs args{};
    args.count = count, args.columns = columns, args.parameter = p.data(), args.gradient[0] = g.data();
    args.rate = 1, args.decay = golden.decay, args.state = &state, args.first = first.data(),
    args.second = second.data();
    update(adafactor_rule, table, args);
  }
  EXPECT_LE(relative_error(p, std::vector<double>(expected, expected + count)), 1e-6)
      << columns << " columns";
}

// Both sides round in fp32 a hundred times, in slightly different places. The largest measured error is
// 5.6e-7.
TEST(Adafactor, AgreesWithTorchAfterAHundredSteps) {
  for (const golden::AdafactorCase& golden : golden::adafactor_cases)
    for (const NamedTable& entry : tables()) {
      train(*entry.table, golden, golden::matrix_count, 10, 0, golden.matrix);
      train(*entry.table, golden, golden::vector_count, 0, 1000, golden.vector);
    }
}

}  // namespace
}  // namespace stw::kernels::test::adafactor_test
