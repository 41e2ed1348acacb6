// The linear kernels with `tensor_cores`: against fp64, and the contracts that hold whatever a tensor core does inside a step:
// cuts between samples and the number of rows change no bit. On the CPU the field changes nothing.
#include "tests/kernels/linear_problem.h"
#if defined(STW_SIMT)
#include "tests/simt/machine.h"
#endif

namespace stw::kernels::test {
namespace {

using Addend = Problem::Addend;
constexpr DType halves[] = {bf16, f16};

Problem tensor_problem(Random& random, Shape shape, Types types, bool transposed, bool bias, bool accumulate) {
  Problem problem(random, std::move(shape), types, transposed, bias, accumulate);
  problem.tensor_cores = true;
  return problem;
}

// Extents in multiples of eight but for one in eight, which no tensor core takes.
int64_t extent(Random& random, int64_t largest) {
  const int64_t any = random.between(1, largest);
  return random.between(0, 7) == 0 ? any : (any + 7) / 8 * 8;
}
Problem random_problem(Random& random, int round) {
  Shape shape = {random.between(1, 3), random.between(1, 50), extent(random, 90), {}};
  for (int64_t parts = random.between(1, max_parts); parts > 0; --parts) shape.features.push_back(extent(random, round % 2 ? 30 : 90));
  const DType half = halves[round % 2];
  return tensor_problem(random, shape, {half, half, dtype_of(round / 2), dtype_of(round / 6)}, random.bits() & 1, random.bits() & 1, random.bits() & 1);
}

struct Doubles { std::vector<double> y, dx, dx_added; std::vector<std::vector<double>> dw, db; };
Doubles in_double(const Problem& p) {
  const auto size = [](int64_t n) { return static_cast<size_t>(n); };
  const int64_t inputs = p.shape.inputs;
  Doubles r;
  r.y.resize(size(p.rows * p.outputs));
  r.dx.resize(size(p.rows * inputs));
  int64_t first = 0;
  for (size_t part = 0; part < p.weight.size(); first += p.shape.features[part++]) {
    std::vector<double>& dw = r.dw.emplace_back(), &db = r.db.emplace_back();
    for (int64_t i = 0; i < p.weight_gradient[part].count(); ++i) dw.push_back(p.accumulate ? p.weight_gradient[part].get(i) : 0);
    for (int64_t feature = 0; feature < p.shape.features[part]; ++feature) {
      db.push_back(p.accumulate ? p.bias_gradient[part].get(feature) : 0);
      for (int64_t row = 0; row < p.rows; ++row) {
        const double dy = p.dy.get(row * p.outputs + first + feature);
        double& y = r.y[size(row * p.outputs + first + feature)] = p.bias ? p.biases[part].get(feature) : 0;
        db.back() += dy;
        for (int64_t i = 0; i < inputs; ++i) {
          const double x = p.x.get(row * inputs + i), w = p.w(part, feature, i);
          y += x * w;
          r.dx[size(row * inputs + i)] += dy * w;
          dw[size(p.dw_at(part, feature, i))] += dy * x;
        }
      }
    }
  }
  r.dx_added = r.dx;
  for (int64_t i = 0; i < p.addend.count(); ++i) r.dx_added[size(i)] += p.addend.get(i);
  return r;
}

TEST(TensorProduct, RandomShapesStayCloseToDoublePrecision) {
  Random random(1);
  for (int round = 0; round < 36; ++round) {
    Problem problem = random_problem(random, round);
    const Doubles expected = in_double(problem);
    const double limit = tolerance(problem.types.output);
    for (const NamedTable& t : tables()) {
      SCOPED_TRACE(std::string(t.name) + ", " + problem.describe());
      EXPECT_LT(relative_error(problem.forward(*t.table, 1).floats(), expected.y), limit);
      EXPECT_LT(relative_error(problem.input_gradient(*t.table, 1, Addend::none).floats(), expected.dx), limit);
      EXPECT_LT(relative_error(problem.input_gradient(*t.table, 1, Addend::other).floats(), expected.dx_added), limit);
      if (problem.types.addend == problem.types.output) {
        EXPECT_LT(relative_error(problem.input_gradient(*t.table, 1, Addend::in_place).floats(), expected.dx_added), limit);
      }
      const Problem::Gradients gradients = problem.parameter_gradients(*t.table, 1);
      for (size_t part = 0; part < problem.weight.size(); ++part) {
        EXPECT_LT(relative_error(gradients.weight[part].floats(), expected.dw[part]), 1e-5);
        EXPECT_LT(relative_error(gradients.bias[part].floats(), expected.db[part]), 1e-5);
      }
    }
  }
}

// Contract E3, also where samples are no multiples of the steps.
TEST(TensorProduct, CutsBetweenSamplesGiveTheSameParameterGradients) {
  Random random(2);
  for (int64_t rows_per_sample : {1, 16, 24, 40, 48, 70})
    for (bool transposed : {false, true}) {
      Problem problem = tensor_problem(random, {6, rows_per_sample, 40, {48, 24}}, {bf16, bf16, f32, f32}, transposed, true, transposed);
      for (const NamedTable& t : tables()) {
        const Problem::Gradients whole = problem.parameter_gradients(*t.table, 1);
        for (const std::vector<int64_t>& cuts : {std::vector<int64_t>{1}, std::vector<int64_t>{2, 5}, std::vector<int64_t>{1, 2, 3, 4, 5}})
          EXPECT_TRUE(same(problem.parameter_gradients(*t.table, 1, cuts), whole)) << t.name << " " << rows_per_sample;
      }
    }
}

// Every range of rows alone has the bits that it has among the others, whatever tile it falls into.
TEST(TensorProduct, TheNumberOfRowsDoesNotChangeTheBits) {
  Random random(3);
  constexpr int64_t rows = 150, inputs = 72;
  for (bool transposed : {false, true}) {
    Problem problem = tensor_problem(random, {1, rows, inputs, {200, 136}}, {f16, f16, bf16, bf16}, transposed, true, false);
    for (const NamedTable& t : tables()) {
      const Buffer y = problem.forward(*t.table, 1), dx = problem.input_gradient(*t.table, 1, Addend::none);
      for (int64_t some : {1, 7, 16, 65, 129})
        for (int64_t first : {int64_t{0}, int64_t{3}, rows - some}) {
          Buffer y_some(bf16, some * problem.outputs), dx_some(bf16, some * inputs);
          LinearArgs a = problem.args({static_cast<char*>(problem.x.data()) + first * inputs * 2, f16}, y_some.matrix());
          a.rows = a.rows_per_sample = some;
          run(t.table->linear, a, 1, linear_workspace(a, 1));
          EXPECT_EQ(std::memcmp(y_some.data(), y.bytes().data() + first * problem.outputs * 2, y_some.bytes().size()), 0) << t.name << " rows " << some;
          a.x = dx_some.matrix();
          a.y = {static_cast<char*>(problem.dy.data()) + first * problem.outputs * 2, f16};
          run(t.table->linear_input_gradient, a, 1, linear_input_gradient_workspace(a, 1));
          EXPECT_EQ(std::memcmp(dx_some.data(), dx.bytes().data() + first * inputs * 2, dx_some.bytes().size()), 0) << t.name << " rows " << some;
        }
    }
  }
}

TEST(TensorProduct, PartsWithoutGradientsAreLeftAlone) {
  Random random(4);
  Problem problem = tensor_problem(random, {2, 19, 24, {16, 40, 8}}, {bf16, bf16, f32, f32}, false, true, true);
  for (const NamedTable& t : tables()) {
    const Problem::Gradients all = problem.parameter_gradients(*t.table, 1), some = problem.parameter_gradients(*t.table, 1, {}, 1);
    for (size_t part = 0; part < 3; ++part)
      EXPECT_TRUE(same_bits(some.weight[part], part == 1 ? problem.weight_gradient[part] : all.weight[part])) << t.name;
  }
}

#if defined(STW_SIMT)
// The emulated tensor core adds the products of a step in order of k. So its numbers are those of one chain, and only a zero
// may have the other sign.
void expect_naive_numbers(const Buffer& found, const Buffer& expected, const char* what) {
  EXPECT_EQ(found.floats(), expected.floats()) << what;
}
void expect_naive_numbers(Problem& problem) {
  SCOPED_TRACE(problem.describe());
  const Table& table = *cuda_table();
  expect_naive_numbers(problem.forward(table, 1), problem.naive_forward(), "y");
  expect_naive_numbers(problem.input_gradient(table, 1, Addend::none), problem.naive_input_gradient(false), "dx");
  expect_naive_numbers(problem.input_gradient(table, 1, Addend::other), problem.naive_input_gradient(true), "dx + addend");
  const Problem::Gradients found = problem.parameter_gradients(table, 1), expected = problem.naive_parameter_gradients();
  for (size_t part = 0; part < problem.weight.size(); ++part) {
    expect_naive_numbers(found.weight[part], expected.weight[part], "dw");
    expect_naive_numbers(found.bias[part], expected.bias[part], "db");
  }
}

TEST(TensorProduct, EmulatedItHasTheNumbersOfOneChain) {
  Random random(5);
  for (int round = 0; round < 12; ++round) {
    Problem problem = random_problem(random, round);
    expect_naive_numbers(problem);
  }
  // Tiles of either size, for each of the three products.
  for (const Shape& shape : {Shape{2, 35, 48, {640, 200}}, Shape{3, 131, 136, {40, 24}}, Shape{1, 20, 328, {272}}})
    for (bool transposed : {false, true}) {
      Problem problem = tensor_problem(random, shape, {bf16, bf16, bf16, f32}, transposed, true, transposed);
      expect_naive_numbers(problem);
    }
}

// Without collectives there is no tensor core.
uint64_t collectives_of(Problem& problem) {
  const uint64_t before = simt::counters.collectives;
  problem.forward(*cuda_table(), 1);
  problem.input_gradient(*cuda_table(), 1, Addend::none);
  return simt::counters.collectives - before;
}
TEST(TensorProduct, OnlyWhereItIsAskedForAndFits) {
  Random random(6);
  const auto uses = [&](Shape shape, DType activation, DType weight, bool asked) {
    Problem problem(random, std::move(shape), {activation, weight, f32, f32}, false, false, false);
    problem.tensor_cores = asked;
    return collectives_of(problem) > 0;
  };
  EXPECT_TRUE(uses({1, 5, 16, {24}}, bf16, bf16, true));
  EXPECT_FALSE(uses({1, 5, 16, {24}}, bf16, bf16, false));
  EXPECT_FALSE(uses({1, 5, 16, {24}}, bf16, f16, true));
  EXPECT_FALSE(uses({1, 5, 16, {24}}, f32, f32, true));
  EXPECT_FALSE(uses({1, 5, 15, {23}}, bf16, bf16, true));
}

// Whichever thread comes first: with a barrier too few, slices would be used too early or too late.
TEST(TensorProduct, TheOrderOfThreadsChangesNothing) {
  const simt::Options before = simt::options;
  for (simt::Order order : {simt::Order::reverse, simt::Order::random})
    for (uint64_t seed : {1, 2}) {
      simt::options = {order, seed};
      Random random(7);
      for (bool transposed : {false, true}) {
        Problem small = tensor_problem(random, {2, 21, 136, {72, 24}}, {f16, f16, f16, f32}, transposed, true, true);
        expect_naive_numbers(small);
        small.tensor_cores = false;   // the chains of chain_product.h
        EXPECT_TRUE(same_bits(small.forward(*cuda_table(), 1), small.naive_forward()));
        EXPECT_TRUE(same_bits(small.input_gradient(*cuda_table(), 1, Addend::other), small.naive_input_gradient(true)));
        EXPECT_TRUE(same(small.parameter_gradients(*cuda_table(), 1), small.naive_parameter_gradients()));
      }
      Problem large = tensor_problem(random, {2, 35, 72, {648}}, {bf16, bf16, bf16, f32}, false, true, true);
      expect_naive_numbers(large);
    }
  simt::options = before;
}
#endif

}  // namespace
}  // namespace stw::kernels::test
