// Muon compared with fp64 and with PyTorch; singular values; the update depends on neither layout nor scale.
#include "tests/golden/optimizers.h"
#include "tests/kernels/update/updates.h"

namespace stw::kernels::test::muon_test {
namespace {

struct Dense {
  int64_t rows, columns;
  std::vector<double> x;
  Dense(int64_t r, int64_t c) : rows(r), columns(c), x(static_cast<size_t>(r * c)) {}
  double& at(int64_t i, int64_t j) { return x[i * columns + j]; }
  double at(int64_t i, int64_t j) const { return x[i * columns + j]; }
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
// Computed by one-sided Jacobi rotations: rows are rotated until they are orthogonal to each other.
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

// The kernel's u alone: a parameter of zeros with a learning rate of -1 / (0.2·√max(rows, columns)). On
// tensor cores, the parameter has 16 bits, and its master is the result.
Dense update_of(Parameter& s, StepState state, ProductKernels products = ProductKernels::chain) {
  Dense u(s.rows(), s.columns);
  state.learning_rate = -1 / (0.2 * std::sqrt(static_cast<double>(std::max(u.rows, u.columns))));
  std::fill(s.p.begin(), s.p.end(), 0.0f);
  UpdateArgs args = s.args(state, 0, products == ProductKernels::chain ? DType::f32 : DType::f16);
  args.products = products;
  update(muon_rule, *tables().back().table, args, 2);
  std::copy(s.p.begin(), s.p.begin() + s.count, u.x.begin());
  return u;
}

// Rounding errors of 2^-24 of a normalised matrix grow by a factor of at most 3.4445 in each of five
// iterations, 485 in all: 3e-5. Measured: at most 2.7e-6 of the largest element of u, and 7.1e-8 of the
// parameter.
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

constexpr ProductKernels tensor = ProductKernels::tensor;
bool on_cuda() { return std::string(tables().back().name) == "CUDA"; }

double rms_error(const Dense& found, const Dense& expected) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < found.x.size(); ++i) {
    difference += (found.x[i] - expected.x[i]) * (found.x[i] - expected.x[i]);
    size += expected.x[i] * expected.x[i];
  }
  return std::sqrt(difference / size);
}
// The expected u of a first step from these gradients. The factor 0.1 + 0.9·0.1 is omitted: it does not
// matter.
Dense expected_of(const Parameter& s) {
  Dense u(s.rows(), s.columns);
  std::copy(s.gradient.begin(), s.gradient.end(), u.x.begin());
  return orthogonalised(u);
}
Parameter first_step(Random& random, const Extents& shape) {
  Parameter s(random, shape);
  std::fill(s.first.begin(), s.first.end(), 0.0f);
  return s;
}

// bf16 operands are off by at most 2^-9, there are 15 products in a row, and the polynomial of a step
// multiplies an error by at most 3.4445, near singular values of 1 by half of that. The root mean squares of
// the measured errors are 1.0 to 2.3 % of the update's, and 1.0 to 1.5 % for matrices of 64 × 4096 to 1000 ×
// 1000. torch.optim.Muon, which also rounds X, has 1.0 to 1.4 % for these.
TEST(Muon, OnTensorCoresAgreesWithDouble) {
  Random random(6);
  std::vector<Extents> shapes = shapes_of(muon_rule);
  shapes.insert(shapes.end(), {{24, 72}, {72, 24}, {16, 8}, {20, 90}, {91, 20}});
  for (const Extents& shape : shapes) {
    Parameter s = first_step(random, shape);
    const Dense expected = expected_of(s);
    EXPECT_LE(rms_error(update_of(s, state_of(), tensor), expected), 0.03)
        << shape.rows << "x" << shape.columns;
  }
}

// Typical gradients have a few directions and little noise, whose small singular values the iterations
// amplify. The update is off by 0.6 to 0.8 %. If X were rounded to bf16, the errors of the large values would
// exceed the small values, and the update would be off by 37 to 60 %.
TEST(Muon, OnTensorCoresKeepsSmallSingularValues) {
  Random random(7);
  for (const Extents& shape : {Extents{40, 72}, {72, 40}, {37, 101}}) {
    Parameter s = first_step(random, shape);
    const std::vector<float> left = normals(random, shape.rows * 4),
                             right = normals(random, shape.columns * 4);
    for (int64_t i = 0; i < shape.rows; ++i)
      for (int64_t j = 0; j < shape.columns; ++j) {
        float& g = s.gradient[i * shape.columns + j];
        g *= 0.01f;
        for (int64_t k = 0; k < 4; ++k) g += left[4 * i + k] * right[4 * j + k];
      }
    const Dense expected = expected_of(s);
    EXPECT_LE(rms_error(update_of(s, state_of(), tensor), expected), 0.015)
        << shape.rows << "x" << shape.columns;
  }
}

// A parameter in 16 bits uses our own product for all choices other than chain, whatever computes the other
// products.
TEST(Muon, UsesTensorCoresOnRequest) {
  Random random(8);
  const Parameter start(random, {24, 40});
  const StepState state = state_of();
  const auto updated = [&](ProductKernels products, DType dtype) {
    Parameter end = start;
    UpdateArgs args = end.args(state, 0.1, dtype);
    args.products = products;
    update(muon_rule, *tables().back().table, args, 2);
    return end.bytes();
  };
  EXPECT_TRUE(same_bits(updated(tensor, DType::f32), updated(ProductKernels::chain, DType::f32)));
  EXPECT_TRUE(
      same_bits(updated(ProductKernels::library, DType::f32), updated(ProductKernels::chain, DType::f32)));
  for (const DType dtype : {DType::bf16, DType::f16}) {
    EXPECT_EQ(same_bits(updated(tensor, dtype), updated(ProductKernels::chain, dtype)), !on_cuda());
    EXPECT_TRUE(same_bits(updated(tensor, dtype), updated(ProductKernels::library, dtype)));
    EXPECT_TRUE(same_bits(updated(tensor, dtype), updated(tensor, dtype)));
  }
}

// The fifth iterate of the polynomial lies in [0.67, 1.21] for all singular values from 0.004 to 1 of the
// norm.
TEST(Muon, MovesSingularValuesNearOne) {
  Random random(2);
  for (const Extents& shape : {Extents{17, 5}, {5, 17}, {33, 129}, {129, 33}, {1, 7}, {100, 200}}) {
    const Parameter start(random, shape);
    for (const ProductKernels products : {ProductKernels::chain, tensor}) {
      Parameter s = start;
      for (double value : singular_values(update_of(s, state_of(), products))) {
        EXPECT_GE(value, 0.6) << shape.rows << "x" << shape.columns;
        EXPECT_LE(value, 1.3) << shape.rows << "x" << shape.columns;
      }
    }
  }
}

// Only the direction of the first step's gradient matters: powers of two change no bit.
TEST(Muon, DoesNotDependOnTheSizeOfTheGradient) {
  Random random(3);
  for (const Extents& shape : shapes_of(muon_rule)) {
    Parameter start(random, shape);
    std::fill(start.first.begin(), start.first.end(), 0.0f);
    for (const ProductKernels products : {ProductKernels::chain, tensor}) {
      Parameter s = start;
      const Dense u = update_of(s, state_of(), products);
      for (float scale : {0x1p-10f, 0x1p10f, 0x1p55f, 3.0f, 1e-3f}) {
        s = start;
        for (float& g : s.gradient) g *= scale;
        const Dense scaled = update_of(s, state_of(), products);
        const bool power_of_two = std::log2(scale) == std::round(std::log2(scale));
        EXPECT_LE(relative_error(scaled.x, u.x), power_of_two         ? 0
                                                 : products == tensor ? 0.08
                                                                      : 1e-5)
            << scale;
      }
    }
  }
}

// Rows and columns swapped: the chains are the same, only the norm is summed in another order.
TEST(Muon, TransposedMatrixHasTheTransposedUpdate) {
  Random random(4);
  for (const Extents& shape : {Extents{17, 5}, {33, 129}, {110, 150}}) {
    Parameter s(random, shape), transpose(random, {shape.columns, shape.rows});
    for (int64_t i = 0; i < shape.rows; ++i)
      for (int64_t j = 0; j < shape.columns; ++j) {
        const auto from = static_cast<size_t>(i * shape.columns + j),
                   to = static_cast<size_t>(j * shape.rows + i);
        transpose.gradient[to] = s.gradient[from], transpose.first[to] = s.first[from];
      }
    EXPECT_LE(relative_error(transposed(update_of(transpose, state_of())).x, update_of(s, state_of()).x),
              1e-5);
  }
}

TEST(Muon, WithoutAGradientOnlyDecays) {
  Random random(5);
  for (const DType dtype : {DType::f32, DType::f16}) {
    Parameter s(random, {20, 30});
    std::fill(s.gradient.begin(), s.gradient.end(), 0.0f);
    std::fill(s.first.begin(), s.first.end(), 0.0f);
    const std::vector<float> before = s.p;
    const StepState state = state_of();
    UpdateArgs args = s.args(state, 0.1, dtype);
    args.products = tensor;
    update(muon_rule, *tables().back().table, args);
    for (size_t i = 0; i < 600; ++i) ASSERT_EQ(s.p[i], before[i] * (1 - 1e-3f));
  }
}

// PyTorch iterates in bf16: every product is rounded by 2^-9. Measured over the ten steps: 1.2e-2 of the
// largest move, 1.9e-2 on tensor cores.
TEST(Muon, ResemblesTorchAfterTenSteps) {
  const auto error_of = [](const golden::MuonCase& golden, const Table& table, ProductKernels products) {
    std::vector<float> p, m(golden::matrix_count), g = m;
    std::vector<uint16_t> half(golden::matrix_count);
    std::vector<double> moved, expected;
    for (int i = 0; i < golden::matrix_count; ++i) p.push_back(number_at(0, i));
    StepState state{};
    state.learning_rate = golden.learning_rate, state.momentum = golden.momentum, state.coefficient = 1;
    for (int step = 1; step <= golden::muon_steps; ++step) {
      for (int i = 0; i < golden::matrix_count; ++i) g[i] = number_at(step, i);
      UpdateArgs args{};
      args.count = golden::matrix_count, args.columns = golden.columns, args.products = products;
      args.dtype = DType::f16, args.parameter = half.data(), args.master = p.data();
      args.gradient[0] = g.data(), args.rate = 1, args.decay = golden.decay, args.state = &state,
      args.first = m.data();
      update(muon_rule, table, args);
    }
    for (int i = 0; i < golden::matrix_count; ++i) {
      moved.push_back(p[i] - number_at(0, i));
      expected.push_back(golden.matrix[i] - number_at(0, i));
    }
    return relative_error(moved, expected);
  };
  for (const golden::MuonCase& golden : golden::muon_cases)
    for (const NamedTable& entry : tables())
      for (const ProductKernels products : {ProductKernels::chain, tensor})
        EXPECT_LE(error_of(golden, *entry.table, products), 0.03) << entry.name;
}

}  // namespace
}  // namespace stw::kernels::test::muon_test
