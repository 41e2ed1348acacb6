// Muon: against fp64, singular values, what the update may not depend on, PyTorch.
#include "tests/golden/optimizers.h"
#include "tests/kernels/updates.h"

namespace stw::kernels::test {
namespace {

struct Dense {
  int64_t rows, columns;
  std::vector<double> x;
  Dense(int64_t r, int64_t c) : rows(r), columns(c), x(static_cast<size_t>(r * c)) {}
  double& at(int64_t i, int64_t j) { return x[static_cast<size_t>(i * columns + j)]; }
  double at(int64_t i, int64_t j) const { return x[static_cast<size_t>(i * columns + j)]; }
};
Dense transposed(const Dense& a) {
  Dense t(a.columns, a.rows);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < a.columns; ++j) t.at(j, i) = a.at(i, j);
  return t;
}
Dense product(const Dense& a, const Dense& b) {
  Dense c(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t k = 0; k < a.columns; ++k)
      for (int64_t j = 0; j < b.columns; ++j) c.at(i, j) += a.at(i, k) * b.at(k, j);
  return c;
}
Dense orthogonalised(Dense u) {
  double squares = 0;
  for (double value : u.x) squares += value * value;
  for (double& value : u.x) value /= std::max(std::sqrt(squares), 1e-7);
  const bool tall = u.rows > u.columns;
  if (tall) u = transposed(u);
  for (int step = 0; step < 5; ++step) {
    const Dense gram = product(u, transposed(u)), square = product(gram, gram);
    Dense polynomial = gram;
    for (size_t i = 0; i < gram.x.size(); ++i) polynomial.x[i] = -4.7750 * gram.x[i] + 2.0315 * square.x[i];
    const Dense high = product(polynomial, u);
    for (size_t i = 0; i < u.x.size(); ++i) u.x[i] = 3.4445 * u.x[i] + high.x[i];
  }
  return tall ? transposed(u) : u;
}
// By one-sided Jacobi rotations: rows are turned until they are orthogonal to each other.
std::vector<double> singular_values(Dense a) {
  if (a.rows > a.columns) a = transposed(a);
  const auto dot = [&a](int64_t i, int64_t j) {
    double sum = 0;
    for (int64_t k = 0; k < a.columns; ++k) sum += a.at(i, k) * a.at(j, k);
    return sum;
  };
  for (int sweep = 0; sweep < 12; ++sweep)
    for (int64_t i = 0; i < a.rows; ++i)
      for (int64_t j = i + 1; j < a.rows; ++j) {
        const double angle = 0.5 * std::atan2(2 * dot(i, j), dot(i, i) - dot(j, j));
        for (int64_t k = 0; k < a.columns; ++k) {
          const double x = a.at(i, k), y = a.at(j, k);
          a.at(i, k) = std::cos(angle) * x + std::sin(angle) * y;
          a.at(j, k) = std::cos(angle) * y - std::sin(angle) * x;
        }
      }
  std::vector<double> values;
  for (int64_t i = 0; i < a.rows; ++i) values.push_back(std::sqrt(dot(i, i)));
  return values;
}

// The kernel's u alone: a parameter of zeros with a learning rate of -1 / (0.2·√max(rows, columns)).
Dense update_of(Parameter& s, StepState state) {
  Dense u(s.rows(), s.columns);
  state.learning_rate = -1 / (0.2 * std::sqrt(static_cast<double>(std::max(u.rows, u.columns))));
  std::fill(s.p.begin(), s.p.end(), 0.0f);
  update(muon_rule, *tables().back().table, s.args(state), 2);
  std::copy(s.p.begin(), s.p.begin() + s.count, u.x.begin());
  return u;
}

// Rounding errors of 2^-24 of a normalised matrix grow by at most 3.4445 in each of five iterations, 485 in all: 3e-5.
// Measured: at most 2.7e-6 of the largest element of u, and 7.1e-8 of the parameter.
TEST(Muon, AgreesWithDouble) {
  Random random(1);
  for (const Extents& shape : shapes_of(muon_rule)) {
    Parameter s(random, shape);
    const Parameter start = s;
    const StepState state = state_of();
    Dense mixed(shape.rows, shape.columns), p = mixed;
    std::vector<double> m;
    for (size_t i = 0; i < s.gradient.size(); ++i) {
      const double g = 0.37 * s.gradient[i];
      m.push_back(0.9 * s.first[i] + 0.1 * g);
      mixed.x[i] = 0.1 * g + 0.9 * m[i];
    }
    const Dense u = orthogonalised(mixed);
    const double rate = 1e-2 * 0.2 * std::sqrt(static_cast<double>(std::max(shape.rows, shape.columns)));
    for (size_t i = 0; i < u.x.size(); ++i) p.x[i] = s.p[i] * (1 - 1e-3) - rate * u.x[i];
    const Dense found = update_of(s, state);
    EXPECT_LE(relative_error(found.x, u.x), 1e-5) << shape.rows << "x" << shape.columns;
    EXPECT_LE(relative_error(std::vector<float>(s.first.begin(), s.first.begin() + s.count), m), 3e-7);
    s = start;
    update(muon_rule, *tables().back().table, s.args(state, 0.1), 2);
    EXPECT_LE(relative_error(std::vector<float>(s.p.begin(), s.p.begin() + s.count), p.x), 3e-7);
  }
}

// The polynomial's fifth iterate lies in [0.67, 1.21] for all singular values from 0.004 to 1 of the norm.
TEST(Muon, MovesSingularValuesNearOne) {
  Random random(2);
  for (const Extents& shape : {Extents{17, 5}, {5, 17}, {33, 129}, {129, 33}, {1, 7}, {100, 200}}) {
    Parameter s(random, shape);
    for (double value : singular_values(update_of(s, state_of()))) {
      EXPECT_GE(value, 0.6) << shape.rows << "x" << shape.columns;
      EXPECT_LE(value, 1.3) << shape.rows << "x" << shape.columns;
    }
  }
}

// Of the first step's gradient only the direction matters: powers of two change no bit.
TEST(Muon, DoesNotDependOnTheSizeOfTheGradient) {
  Random random(3);
  for (const Extents& shape : shapes_of(muon_rule)) {
    Parameter start(random, shape);
    std::fill(start.first.begin(), start.first.end(), 0.0f);
    Parameter s = start;
    const Dense u = update_of(s, state_of());
    for (float scale : {0x1p-10f, 0x1p10f, 3.0f, 1e-3f}) {
      s = start;
      for (float& g : s.gradient) g *= scale;
      const Dense scaled = update_of(s, state_of());
      const bool power_of_two = std::log2(scale) == std::round(std::log2(scale));
      EXPECT_LE(relative_error(scaled.x, u.x), power_of_two ? 0 : 1e-5) << scale;
    }
  }
}

// Rows and columns change places: the chains are the same, only the norm is summed in another order.
TEST(Muon, TransposedMatrixHasTheTransposedUpdate) {
  Random random(4);
  for (const Extents& shape : {Extents{17, 5}, {33, 129}, {110, 150}}) {
    Parameter s(random, shape), turned(random, {shape.columns, shape.rows});
    for (int64_t i = 0; i < shape.rows; ++i)
      for (int64_t j = 0; j < shape.columns; ++j) {
        const auto from = static_cast<size_t>(i * shape.columns + j), to = static_cast<size_t>(j * shape.rows + i);
        turned.gradient[to] = s.gradient[from], turned.first[to] = s.first[from];
      }
    EXPECT_LE(relative_error(transposed(update_of(turned, state_of())).x, update_of(s, state_of()).x), 1e-5);
  }
}

TEST(Muon, WithoutAGradientOnlyDecays) {
  Random random(5);
  Parameter s(random, {20, 30});
  std::fill(s.gradient.begin(), s.gradient.end(), 0.0f);
  std::fill(s.first.begin(), s.first.end(), 0.0f);
  const std::vector<float> before = s.p;
  const StepState state = state_of();
  update(muon_rule, *tables().back().table, s.args(state, 0.1));
  for (size_t i = 0; i < 600; ++i) ASSERT_EQ(s.p[i], before[i] * (1 - 1e-3f));
}

// PyTorch iterates in bf16: every product is rounded by 2^-9. Measured over the ten steps: 1.2e-2 of the largest move.
TEST(Muon, ResemblesTorchAfterTenSteps) {
  for (const golden::MuonCase& golden : golden::muon_cases)
    for (const NamedTable& entry : tables()) {
      std::vector<float> p, m(golden::matrix_count), g = m;
      std::vector<double> moved, expected;
      for (int i = 0; i < golden::matrix_count; ++i) p.push_back(number_at(0, i));
      StepState state{};
      state.learning_rate = golden.learning_rate, state.momentum = golden.momentum, state.coefficient = 1;
      for (int step = 1; step <= golden::muon_steps; ++step) {
        for (int i = 0; i < golden::matrix_count; ++i) g[static_cast<size_t>(i)] = number_at(step, i);
        UpdateArgs args{};
        args.count = golden::matrix_count, args.columns = golden.columns, args.parameter = p.data();
        args.gradient[0] = g.data(), args.rate = 1, args.decay = golden.decay, args.state = &state, args.first = m.data();
        update(muon_rule, *entry.table, args);
      }
      for (int i = 0; i < golden::matrix_count; ++i) {
        moved.push_back(p[static_cast<size_t>(i)] - number_at(0, i));
        expected.push_back(golden.matrix[i] - number_at(0, i));
      }
      EXPECT_LE(relative_error(moved, expected), 0.03) << entry.name;
    }
}

}  // namespace
}  // namespace stw::kernels::test
