// The linear kernels on tensor cores, and by the vendor's library if there is one, compared with fp64. Cuts
// between samples and the number of rows must change no bit, in whatever order the device adds. The CPU has
// neither tensor cores nor a library.
#include "tests/kernels/product/linear_problem.h"

namespace stw::kernels::test::tensor_product_test {
namespace {

using Addend = Problem::Addend;

struct Doubles {
  std::vector<double> y, dx, dx_added;
  std::vector<std::vector<double>> dw, db;
};
Doubles in_double(const Problem& p) {
  const auto size = [](int64_t n) { return static_cast<size_t>(n); };
  const int64_t inputs = p.shape.inputs;
  Doubles r;
  r.y.resize(size(p.rows * p.outputs));
  r.dx.resize(size(p.rows * inputs));
  int64_t first = 0;
  for (size_t part = 0; part < p.weight.size(); first += p.shape.features[part++]) {
    std::vector<double>&dw = r.dw.emplace_back(), &db = r.db.emplace_back();
    for (int64_t i = 0; i < p.weight_gradient[part].count(); ++i)
      dw.push_back(p.accumulate ? p.weight_gradient[part].get(i) : 0);
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
  for (int64_t i = 0; i < p.residual.count(); ++i) r.y[size(i)] += p.residual.get(i);
  r.dx_added = r.dx;
  for (int64_t i = 0; i < p.addend.count(); ++i) r.dx_added[size(i)] += p.addend.get(i);
  return r;
}

std::vector<ProductKernels> ways() {
  std::vector<ProductKernels> list = tensor_kernels();
  if (product_library()) list.push_back(ProductKernels::library);
  return list;
}

void expect_close(Problem& problem) {
  const Doubles expected = in_double(problem);
  const double limit = tolerance(problem.types.output);
  for (const NamedTable& t : tables()) {
    SCOPED_TRACE(std::string(t.name) + ", " + problem.describe());
    EXPECT_LT(relative_error(problem.forward(*t.table, 1).floats(), expected.y), limit);
    EXPECT_LT(relative_error(problem.input_gradient(*t.table, 1, Addend::none).floats(), expected.dx), limit);
    EXPECT_LT(relative_error(problem.input_gradient(*t.table, 1, Addend::other).floats(), expected.dx_added),
              limit);
    if (problem.types.addend == problem.types.output) {
      EXPECT_LT(
          relative_error(problem.input_gradient(*t.table, 1, Addend::in_place).floats(), expected.dx_added),
          limit);
    }
    const Problem::Gradients gradients = problem.parameter_gradients(*t.table, 1);
    for (size_t part = 0; part < problem.weight.size(); ++part) {
      EXPECT_LT(relative_error(gradients.weight[part].floats(), expected.dw[part]), 1e-5);
      EXPECT_LT(relative_error(gradients.bias[part].floats(), expected.db[part]), 1e-5);
    }
  }
}

TEST(TensorProduct, RandomShapesStayCloseToDoublePrecision) {
  Random random(1);
  for (int round = 0; round < 36; ++round) {
    Problem problem = random_tensor_problem(random, round);
    if (problem.shape.features.size() == 1) problem.add_residual(random);
    for (const ProductKernels products : tensor_kernels()) {
      problem.products = products;
      expect_close(problem);
    }
  }
}

// Tiles of either size inside the output, with all start values and epilogues of a product.
TEST(TensorProduct, WholeTilesStayCloseToDoublePrecision) {
  Random random(12);
  for (int round = 0; round < 4; ++round) {
    const DType half = round % 2 ? f16 : bf16, sum = round == 2 ? f32 : half;
    Problem problem =
        tensor_problem(random, {1, 133, 136, {264}}, {half, half, sum, sum}, round < 2, true, true);
    if (round != 1) problem.add_residual(random);
    for (const ProductKernels products : tensor_kernels()) {
      problem.products = products;
      expect_close(problem);
    }
  }
}

// With types that the library supports, and with others, which our kernels compute.
TEST(LibraryProduct, RandomShapesStayCloseToDoublePrecision) {
  Random random(5);
  for (int round = 0; product_library() && round < 48; ++round) {
    Problem problem = random_tensor_problem(random, round);
    const DType factors = dtype_of(round), sum = round % 8 < 3   ? factors
                                                 : round % 8 < 6 ? f32
                                                                 : dtype_of(round / 3);
    problem = Problem(random, problem.shape, {factors, round % 5 ? factors : dtype_of(round / 5), sum, sum},
                      problem.transposed, problem.bias, problem.accumulate);
    problem.products = ProductKernels::library;
    problem.exact = round % 2;
    if (problem.shape.features.size() == 1) problem.add_residual(random);
    expect_close(problem);
  }
}

// Contract E3 also holds if samples are not multiples of the steps.
TEST(TensorProduct, CutsBetweenSamplesGiveTheSameParameterGradients) {
  Random random(2);
  for (int64_t rows_per_sample : {1, 16, 24, 40, 48, 70})
    for (bool transposed : {false, true}) {
      Problem problem = tensor_problem(random, {6, rows_per_sample, 40, {48, 24}}, {bf16, bf16, f32, f32},
                                       transposed, true, transposed);
      for (const ProductKernels products : ways()) {
        problem.products = products;
        for (const NamedTable& t : tables()) {
          const Problem::Gradients whole = problem.parameter_gradients(*t.table, 1);
          for (const std::vector<int64_t>& cuts :
               {std::vector<int64_t>{1}, std::vector<int64_t>{2, 5}, std::vector<int64_t>{1, 2, 3, 4, 5}})
            EXPECT_TRUE(same(problem.parameter_gradients(*t.table, 1, cuts), whole))
                << t.name << " " << rows_per_sample;
        }
      }
    }
}

void expect_cuts_between_chains(Problem& problem, const Table& table, const char* name, Random& random) {
  const int64_t rows_per_sample = problem.shape.rows_per_sample;
  const Buffer whole = problem.parameter_gradients(table, 1).weight[0];
  Buffer pieces = problem.weight_gradient[0];
  for (int64_t row = 0, end; row < problem.rows; row = end) {
    end = std::min(problem.rows, row + random.between(chain_terms, 2 * rows_per_sample + chain_terms));
    end -= end % rows_per_sample % chain_terms;
    LinearArgs a = problem.args({static_cast<uint16_t*>(problem.x.data()) + row * problem.shape.inputs, bf16},
                                {static_cast<uint16_t*>(problem.dy.data()) + row * problem.outputs, bf16});
    a.rows = end - row, a.first_row = row % rows_per_sample;
    a.accumulate = problem.accumulate || row > 0;
    a.part[0].weight_gradient = pieces.data();
    run(table.linear_weight_gradient, a, 1, linear_weight_gradient_workspace(a, 1));
  }
  EXPECT_TRUE(same_bits(pieces, whole)) << name << ", " << problem.describe();
}

// Loss chunks begin and end within samples, between chains.
TEST(TensorProduct, CutsBetweenChainsGiveTheSameWeightGradients) {
  Random random(7);
  constexpr int64_t samples = 4;
  for (int64_t rows_per_sample : {5, 70, 256, 300, 513, 530})
    for (int round = 0; round < (rows_per_sample < 256 ? 2 : 4); ++round) {
      Problem problem = tensor_problem(random, {samples, rows_per_sample, 40, {72}}, {bf16, bf16, f32, f32},
                                       round % 2, false, round % 3);
      for (const ProductKernels products : tensor_kernels()) {
        problem.products = products;
        for (const NamedTable& t : tables()) expect_cuts_between_chains(problem, *t.table, t.name, random);
      }
    }
}

// Every range of rows alone has the same bits as within the whole, whatever tile it falls into.
void expect_rows_alone(Problem& problem) {
  const int64_t inputs = problem.shape.inputs;
  const DType factors = problem.types.activation, sum = problem.types.output;
  const auto size = [](DType t) { return t == f32 ? 4 : 2; };
  for (const NamedTable& t : tables()) {
    const Buffer y = problem.forward(*t.table, 1), dx = problem.input_gradient(*t.table, 1, Addend::none);
    for (int64_t some : {1, 7, 16, 65, 129})
      for (int64_t first : {int64_t{0}, int64_t{3}, problem.rows - some}) {
        Buffer y_some(sum, some * problem.outputs), dx_some(sum, some * inputs);
        LinearArgs a =
            problem.args({static_cast<char*>(problem.x.data()) + first * inputs * size(factors), factors},
                         y_some.matrix());
        a.rows = a.rows_per_sample = some;
        run(t.table->linear, a, 1, linear_workspace(a, 1));
        EXPECT_EQ(std::memcmp(y_some.data(), y.bytes().data() + first * problem.outputs * size(sum),
                              y_some.bytes().size()),
                  0)
            << t.name << " rows " << some;
        a.x = dx_some.matrix();
        a.y = {static_cast<char*>(problem.dy.data()) + first * problem.outputs * size(factors), factors};
        run(t.table->linear_input_gradient, a, 1, linear_input_gradient_workspace(a, 1));
        EXPECT_EQ(std::memcmp(dx_some.data(), dx.bytes().data() + first * inputs * size(sum),
                              dx_some.bytes().size()),
                  0)
            << t.name << " rows " << some;
      }
  }
}

TEST(TensorProduct, TheNumberOfRowsDoesNotChangeTheBits) {
  Random random(3);
  constexpr int64_t rows = 150, inputs = 72;
  for (bool transposed : {false, true}) {
    Problem problem = tensor_problem(random, {1, rows, inputs, {200, 136}}, {f16, f16, bf16, bf16},
                                     transposed, true, false);
    for (const ProductKernels products : tensor_kernels()) {
      problem.products = products;
      expect_rows_alone(problem);
    }
    if (!product_library()) continue;
    for (const DType sum : {bf16, f32}) {
      problem = tensor_problem(random, {1, rows, inputs, {200, 136}}, {bf16, bf16, sum, sum}, transposed,
                               sum == bf16, false);
      problem.products = ProductKernels::library;
      expect_rows_alone(problem);
    }
  }
}

// Weight gradients as large as GPT-2's get the large tiles, even on a device of a hundred multiprocessors.
// 64 rows of such a gradient alone get other tiles.
TEST(TensorProduct, TheTileDoesNotChangeTheBitsOfWeightGradients) {
  Random random(8);
  constexpr int64_t inputs = 768, features = 3072, some = 64;
  Problem problem =
      tensor_problem(random, {2, 19, inputs, {features}}, {bf16, bf16, f32, f32}, false, false, true);
  for (const ProductKernels products : tensor_kernels()) {
    problem.products = products;
    for (const NamedTable& t : tables()) {
      const Buffer whole = problem.parameter_gradients(*t.table, 1).weight[0];
      for (const int64_t first : {int64_t{0}, int64_t{1088}, features - some}) {
        Buffer alone(f32, some * inputs);
        const size_t at = static_cast<size_t>(first * inputs) * sizeof(float);
        std::memcpy(alone.data(), problem.weight_gradient[0].bytes().data() + at, alone.bytes().size());
        LinearArgs a =
            problem.args(problem.x.matrix(), {static_cast<uint16_t*>(problem.dy.data()) + first, bf16});
        a.part[0].features = some, a.part[0].weight_gradient = alone.data();
        run(t.table->linear_weight_gradient, a, 1, linear_weight_gradient_workspace(a, 1));
        EXPECT_EQ(std::memcmp(alone.data(), whole.bytes().data() + at, alone.bytes().size()), 0)
            << t.name << " from " << first;
      }
    }
  }
}

// A vocabulary is odd: rows of logits lie further apart, and tensor cores support them.
TEST(TensorProduct, OddNumbersOfOutputsWithZerosAfterThem) {
  Random random(6);
  for (int64_t features : {61, 131})
    for (bool transposed : {false, true}) {
      Problem problem =
          tensor_problem(random, {2, 35, 72, {features}}, {bf16, bf16, bf16, bf16}, transposed, false, true);
      const Doubles expected = in_double(problem);
      problem.y_stride = (features + 15) / 16 * 16;
      problem.dy = spread(problem.dy, features, problem.y_stride,
                          [&](int64_t column) { return column < (features + 7) / 8 * 8 ? 0.0f : NAN; });
      for (const ProductKernels products : ways()) {
        problem.products = products;
        for (const NamedTable& t : tables()) {
          SCOPED_TRACE(std::string(t.name) + ", " + problem.describe());
          EXPECT_LT(relative_error(problem.input_gradient(*t.table, 1, Addend::none).floats(), expected.dx),
                    tolerance(bf16));
          EXPECT_LT(
              relative_error(problem.parameter_gradients(*t.table, 1).weight[0].floats(), expected.dw[0]),
              1e-5);
        }
      }
    }
}

TEST(TensorProduct, PartsWithoutGradientsStayUnchanged) {
  Random random(4);
  Problem problem =
      tensor_problem(random, {2, 19, 24, {16, 40, 8}}, {bf16, bf16, f32, f32}, false, true, true);
  for (const ProductKernels products : ways()) {
    problem.products = products;
    for (const NamedTable& t : tables()) {
      const Problem::Gradients all = problem.parameter_gradients(*t.table, 1),
                               some = problem.parameter_gradients(*t.table, 1, {}, 1);
      for (size_t part = 0; part < 3; ++part)
        EXPECT_TRUE(
            same_bits(some.weight[part], part == 1 ? problem.weight_gradient[part] : all.weight[part]))
            << t.name;
    }
  }
}

}  // namespace
}  // namespace stw::kernels::test::tensor_product_test
