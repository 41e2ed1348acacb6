// kernels/cpu/product/linear*.cpp and gemm.cpp: every table compared with naive chains of fmaf bit for bit,
// with fp64, and with finite differences. Threads, the number of rows and cuts between samples must not
// change a bit.
#include "tests/kernels/product/linear_problem.h"

namespace stw::kernels::test::linear_test {
namespace {

void expect_naive_bits(Problem& problem, const std::vector<int>& thread_counts) {
  using Addend = Problem::Addend;
  const Buffer y = problem.naive_forward(), dx = problem.naive_input_gradient(false),
               dx_added = problem.naive_input_gradient(true);
  const Problem::Gradients gradients = problem.naive_parameter_gradients();
  for (const NamedTable& t : tables())
    for (int threads : thread_counts) {
      if (emulated() && threads != thread_counts[0]) continue;  // The device does not use these threads.
      SCOPED_TRACE(std::string(t.name) + ", threads " + std::to_string(threads) + ", " + problem.describe());
      EXPECT_TRUE(same_bits(problem.forward(*t.table, threads), y)) << "y";
      EXPECT_TRUE(same_bits(problem.input_gradient(*t.table, threads, Addend::none), dx)) << "dx";
      EXPECT_TRUE(same_bits(problem.input_gradient(*t.table, threads, Addend::other), dx_added))
          << "dx + addend";
      if (problem.types.addend == problem.types.output) {
        EXPECT_TRUE(same_bits(problem.input_gradient(*t.table, threads, Addend::in_place), dx_added))
            << "dx in place";
      }
      EXPECT_TRUE(same(problem.parameter_gradients(*t.table, threads), gradients)) << "parameters";
    }
}

TEST(Linear, RandomOddShapesHaveTheBitsOfNaiveChains) {
  Random random(1);
  for (int i = 0; i < 81; ++i) {
    Shape shape = {random.between(1, 3), random.between(1, 23), random.between(1, 70), {}};
    for (int64_t parts = random.between(1, max_parts); parts > 0; --parts)
      shape.features.push_back(random.between(1, i % 2 ? 20 : 70));
    Problem problem(random, shape,
                    {dtype_of(i), dtype_of(i / 3), dtype_of(i / 9), dtype_of(random.between(0, 2))},
                    random.bits() & 1, random.bits() & 1, random.bits() & 1);
    if (shape.features.size() == 1) problem.add_residual(random);
    expect_naive_bits(problem, {1, 3});
  }
}

// Generation: few rows take a path of their own, for both layouts of the weight.
TEST(Linear, FewRowsHaveTheBitsOfNaiveChains) {
  Random random(2);
  for (int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8})
    for (bool transposed : {false, true})
      for (DType type : all_dtypes) {
        Problem problem(random, {1, rows, 261, {77, 48}}, {f32, type, type, f32}, transposed, true, true);
        expect_naive_bits(problem, {1, 2});
        Problem added(random, {1, rows, 130, {77}}, {type, type, type, f32}, transposed, true, true);
        added.add_residual(random);
        expect_naive_bits(added, {1, 2});
      }
}

// More than one block along every dimension.
TEST(Linear, SeveralBlocksHaveTheBitsOfNaiveChains) {
  Random random(3);
  // On the emulated machine: enough for tiles of either size.
  const Shape wide = {2, 35, emulated() ? 80 : 300, {1100}},
              tall = {3, 131, emulated() ? 140 : 270, {40, 33}},
              deep = {2, emulated() ? 60 : 150, 35, {emulated() ? 230 : 530, 19}};
  for (const Shape& shape : {wide, tall, deep})
    for (bool transposed : {false, true}) {
      Problem problem(random, shape, {f32, f32, transposed ? bf16 : f32, f32}, transposed, true, transposed);
      if (shape.features.size() == 1) problem.add_residual(random);
      expect_naive_bits(problem, {2});
      Problem halves(random, shape, {f16, f16, f16, f32}, transposed, false, transposed);
      expect_naive_bits(halves, {2});
    }
}

// Sums of many chains: over inputs and features, and over rows of samples of every kind of length.
TEST(Linear, SeveralChainsHaveTheBitsOfNaiveOnes) {
  Random random(15);
  const auto expect = [&](Shape shape, bool transposed, Types types) {
    Problem problem(random, std::move(shape), types, transposed, true, transposed);
    if (problem.shape.features.size() == 1) problem.add_residual(random);
    expect_naive_bits(problem, {2});
    if (types.activation == DType::f32) return;
    problem.residual = Buffer();
    problem.round_gradients(random.bits());
    expect_naive_bits(problem, {2});
  };
  int round = 0;
  for (int64_t rows_per_sample : {1, 3, 64, 100, 255, 256, 257, 300, 512, 640}) {
    if (emulated() && round % 3 == 2) continue;
    const int64_t samples = rows_per_sample < 300 ? 5 : 2, features = round % 2 ? 37 : 13;
    expect({samples, rows_per_sample, 21, {features, 3}}, round % 2,
           round % 3 == 1 ? Types{bf16, f32, f32, bf16} : Types{f32, f32, f32, f32});
    ++round;
  }
  // Few rows of dW, which are read in another order.
  for (int64_t rows_per_sample : {7, 300}) expect({3, rows_per_sample, 70, {3}}, false, {f32, f32, f32, f32});
  for (int64_t rows : {1, 2, 3, 4, 5, 13})
    for (bool transposed : {false, true}) {
      expect({1, rows, 1500, {19}}, transposed, {f32, f32, f32, f32});
      expect({1, rows, 19, {530, 300}}, transposed, {bf16, bf16, f32, f32});
      expect({1, rows, 513, {257}}, transposed, {f16, f32, f16, f16});
    }
}

// Products leave out tokens whose gradients are zero, of either sign: the padding at the end of samples, and
// tokens without a loss.
TEST(Linear, TokensWithoutAGradientHaveTheBitsOfNaiveChains) {
  Random random(17);
  using IsZero = bool (*)(Random&, int64_t row, int64_t rows_per_sample);
  const IsZero patterns[] = {
      [](Random&, int64_t row, int64_t n) { return row % n >= n * 3 / 4; },
      [](Random& r, int64_t, int64_t) { return r.between(0, 7) > 0; },
      [](Random&, int64_t row, int64_t n) { return row < n || row % n < 40; },
      [](Random&, int64_t, int64_t) { return true; },
  };
  int round = 0;
  for (int64_t rows_per_sample : {24, 100, 256, 300, 512})
    for (const IsZero is_zero : patterns) {
      ++round;
      if (emulated() && round % 5 != 2) continue;
      const bool transposed = round % 2;
      const DType type = round % 3 == 0 ? bf16 : f32;
      Problem problem(random, {rows_per_sample < 200 ? 4 : 2, rows_per_sample, 70, {45, 14}},
                      {type, f32, type, f32}, transposed, false, round % 4 > 1);
      for (int64_t row = 0; row < problem.rows; ++row)
        if (is_zero(random, row, rows_per_sample)) {
          for (int64_t i = 0; i < problem.outputs; ++i)
            problem.dy.set(row * problem.outputs + i, random.bits() & 1 ? 0.0f : -0.0f);
          problem.addend.set(row * problem.shape.inputs, -0.0f);
        }
      expect_naive_bits(problem, {2});
    }
}

// Contract E3 within samples: cuts between chains change no bit.
TEST(Linear, CutsBetweenChainsGiveTheSameWeightGradients) {
  Random random(16);
  for (int64_t rows_per_sample : {300, 512, 700}) {
    if (emulated() && rows_per_sample == 700) continue;
    for (bool transposed : {false, true}) {
      Problem problem(random, {2, rows_per_sample, 18, {21}}, {f32, f32, f32, f32}, transposed, false,
                      !transposed);
      for (const NamedTable& t : tables()) {
        const Buffer whole = problem.weight_gradients_in(*t.table, {});
        EXPECT_TRUE(same_bits(problem.weight_gradients_in(*t.table, {chain_terms}), whole)) << t.name;
        EXPECT_TRUE(same_bits(problem.weight_gradients_in(
                                  *t.table, {chain_terms, rows_per_sample, rows_per_sample + chain_terms}),
                              whole))
            << t.name;
        EXPECT_TRUE(same_bits(problem.weight_gradients_in(*t.table, {rows_per_sample + chain_terms}), whole))
            << t.name;
      }
    }
  }
}

TEST(Linear, ThreadsAndTablesGiveTheSameBits) {
  Random random(4);
  for (DType output : all_dtypes) {
    Problem problem(random, {2, 97, 130, {200, 31, 31}}, {f32, f32, output, output}, false, true, true);
    const Buffer y = problem.forward(*tables()[0].table, 1),
                 dx = problem.input_gradient(*tables()[0].table, 1, Problem::Addend::in_place);
    const Problem::Gradients gradients = problem.parameter_gradients(*tables()[0].table, 1);
    for (const NamedTable& t : tables())
      for (int threads : {1, 2, 3, 5, 16}) {
        if (emulated() && threads > 1) continue;
        SCOPED_TRACE(std::string(t.name) + ", threads " + std::to_string(threads));
        EXPECT_TRUE(same_bits(problem.forward(*t.table, threads), y));
        EXPECT_TRUE(same_bits(problem.input_gradient(*t.table, threads, Problem::Addend::in_place), dx));
        EXPECT_TRUE(same(problem.parameter_gradients(*t.table, threads), gradients));
      }
  }
}

// Contract E3: the split of a batch into micro-batches.
TEST(Linear, CutsBetweenSamplesGiveTheSameParameterGradients) {
  Random random(5);
  for (int64_t rows_per_sample : {1, 16, 70, 130})
    for (bool transposed : {false, true}) {
      Problem problem(random, {6, rows_per_sample, 37, {50, 19}}, {bf16, f32, f32, f32}, transposed, true,
                      false);
      for (const NamedTable& t : tables()) {
        const Problem::Gradients whole = problem.parameter_gradients(*t.table, 2);
        for (const std::vector<int64_t>& cuts :
             {std::vector<int64_t>{1}, std::vector<int64_t>{5}, std::vector<int64_t>{2, 4},
              std::vector<int64_t>{1, 2, 3, 4, 5}})
          EXPECT_TRUE(same(problem.parameter_gradients(*t.table, 2, cuts), whole))
              << t.name << " " << rows_per_sample;
      }
    }
}

TEST(Linear, TheNumberOfRowsDoesNotChangeTheForwardBits) {
  Random random(6);
  for (bool transposed : {false, true}) {
    Problem problem(random, {1, 50, 300, {90}}, {f32, f32, f32, f32}, transposed, true, false);
    for (const NamedTable& t : tables()) {
      const Buffer whole = problem.forward(*t.table, 1);
      for (int64_t rows : {1, 2, 3, 4, 5, 7, 8, 13, 49})
        for (int64_t first : {int64_t{0}, 50 - rows}) {
          Buffer y(f32, rows * problem.outputs);
          LinearArgs a =
              problem.args({static_cast<char*>(problem.x.data()) + first * 300 * 4, f32}, y.matrix());
          a.rows = a.rows_per_sample = rows;
          run(t.table->linear, a, 2, linear_workspace(a, 2));
          const auto* expected = whole.bytes().data() + first * problem.outputs * 4;
          EXPECT_EQ(std::memcmp(y.data(), expected, y.bytes().size()), 0) << t.name << " rows " << rows;
        }
    }
  }
}

TEST(Linear, PartsWithoutGradientsStayUnchanged) {
  Random random(7);
  Problem problem(random, {2, 9, 21, {18, 33, 7}}, {f32, f32, f32, f32}, false, true, true);
  const Problem::Gradients expected = problem.naive_parameter_gradients();
  for (const NamedTable& t : tables())
    for (int frozen = 0; frozen < 3; ++frozen) {
      const Problem::Gradients found = problem.parameter_gradients(*t.table, 2, {}, frozen);
      for (int i = 0; i < 3; ++i) {
        const auto part = static_cast<size_t>(i);
        EXPECT_TRUE(same_bits(found.weight[part],
                              i == frozen ? problem.weight_gradient[part] : expected.weight[part]));
        EXPECT_TRUE(
            same_bits(found.bias[part], i == frozen ? problem.bias_gradient[part] : expected.bias[part]));
      }
    }
}

// The loss Σ y·r in fp64; its derivatives are the gradients for dy = r.
double loss(const Problem& p, const std::vector<double>& x, const std::vector<std::vector<double>>& w,
            const std::vector<std::vector<double>>& b) {
  double sum = 0;
  for (int64_t row = 0; row < p.rows; ++row) {
    int64_t at = row * p.outputs;
    for (size_t part = 0; part < w.size(); ++part)
      for (int64_t feature = 0; feature < p.shape.features[part]; ++feature, ++at) {
        double y = b[part][feature];
        for (int64_t i = 0; i < p.shape.inputs; ++i)
          y += x[row * p.shape.inputs + i] * w[part][p.dw_at(part, feature, i)];
        sum += y * p.dy.get(at);
      }
  }
  return sum;
}

// The derivative of the loss by every element of `values`. The loss is linear in each, so a step of 1 is
// exact.
template <class Loss>
std::vector<double> differences(std::vector<double>& values, const Loss& value_of) {
  std::vector<double> result;
  for (double& value : values) {
    const double kept = value;
    value = kept + 0.5;
    const double above = value_of();
    value = kept - 0.5;
    result.push_back(above - value_of());
    value = kept;
  }
  return result;
}

TEST(Linear, GradientsAgreeWithFiniteDifferences) {
  Random random(8);
  for (bool transposed : {false, true}) {
    Problem p(random, {2, 5, 11, {7, 4}}, {f32, f32, f32, f32}, transposed, true, false);
    std::vector<double> x = doubles(p.x);
    std::vector<std::vector<double>> w = {doubles(p.weight[0]), doubles(p.weight[1])},
                                     b = {doubles(p.biases[0]), doubles(p.biases[1])};
    const auto value_of = [&] { return loss(p, x, w, b); };
    const std::vector<double> dx = differences(x, value_of);
    for (const NamedTable& t : tables()) {
      EXPECT_LT(relative_error(p.input_gradient(*t.table, 1, Problem::Addend::none).floats(), dx), 1e-6)
          << t.name;
      const Problem::Gradients gradients = p.parameter_gradients(*t.table, 1);
      for (size_t part = 0; part < 2; ++part) {
        EXPECT_LT(relative_error(gradients.weight[part].floats(), differences(w[part], value_of)), 1e-6)
            << t.name;
        EXPECT_LT(relative_error(gradients.bias[part].floats(), differences(b[part], value_of)), 1e-6)
            << t.name;
      }
    }
  }
}

TEST(Linear, LongChainsStayCloseToDoublePrecision) {
  Random random(9);
  Problem p(random, {4, 512, 33, {17}}, {f32, f32, f32, f32}, false, true, false);
  std::vector<double> dw(33 * 17), db(17);
  for (int64_t row = 0; row < p.rows; ++row)
    for (int64_t f = 0; f < 17; ++f) {
      db[f] += p.dy.get(row * 17 + f);
      for (int64_t i = 0; i < 33; ++i)
        dw[f * 33 + i] += static_cast<double>(p.dy.get(row * 17 + f)) * p.x.get(row * 33 + i);
    }
  Problem q(random, {1, 9, 3000, {40}}, {f32, f32, f32, f32}, false, true, false);
  std::vector<double> y(9 * 40);
  for (int64_t row = 0; row < 9; ++row)
    for (int64_t f = 0; f < 40; ++f) {
      double& sum = y[row * 40 + f] = q.biases[0].get(f);
      for (int64_t i = 0; i < 3000; ++i) sum += static_cast<double>(q.x.get(row * 3000 + i)) * q.w(0, f, i);
    }
  for (const NamedTable& t : tables()) {
    const Problem::Gradients gradients = p.parameter_gradients(*t.table, 2);
    EXPECT_LT(relative_error(gradients.weight[0].floats(), dw), 1e-5) << t.name;
    EXPECT_LT(relative_error(gradients.bias[0].floats(), db), 1e-5) << t.name;
    EXPECT_LT(relative_error(q.forward(*t.table, 2).floats(), y), 1e-5) << t.name;
  }
}

// Rows of y are further apart than they are long. The gaps hold NaN where no kernel may read.
TEST(Linear, RowsOfOutputsMayLieFurtherApart) {
  Random random(12);
  for (DType dtype : all_dtypes)
    for (bool transposed : {false, true})
      for (const std::vector<int64_t>& features :
           {std::vector<int64_t>{61}, std::vector<int64_t>{130}, std::vector<int64_t>{20, 9}}) {
        Problem p(random, {2, 37, 40, features}, {dtype, dtype, dtype, dtype}, transposed, true, true);
        const int64_t stride = (p.outputs + 15) / 16 * 16, padded = (p.outputs + 7) / 8 * 8;
        const auto gap = [&](int64_t column) { return column < padded ? 0.0f : NAN; };
        for (const NamedTable& t : tables()) {
          SCOPED_TRACE(std::string(t.name) + ", " + p.describe());
          const Buffer y = p.forward(*t.table, 2), dx = p.input_gradient(*t.table, 2, Problem::Addend::other);
          const Problem::Gradients gradients = p.parameter_gradients(*t.table, 2);
          Problem apart = p;
          apart.y_stride = stride;
          apart.dy = spread(p.dy, p.outputs, stride, gap);
          Buffer y_apart(dtype, p.rows * stride);
          for (int64_t i = 0; i < y_apart.count(); ++i) y_apart.set(i, 7);
          const LinearArgs a = apart.args(apart.x.matrix(), y_apart.matrix());
          run(t.table->linear, a, 2, linear_workspace(a, 2));
          EXPECT_TRUE(same_bits(columns_of(y_apart, 0, p.outputs, stride), y));
          for (float value : columns_of(y_apart, p.outputs, stride, stride).floats())
            ASSERT_EQ(value, 7) << "written past a row";
          EXPECT_TRUE(same_bits(apart.input_gradient(*t.table, 2, Problem::Addend::other), dx));
          EXPECT_TRUE(same(apart.parameter_gradients(*t.table, 2), gradients));
        }
      }
}

// Columns of dx may be computed separately. The features may also be taken in turn, in whole chains, with the
// sums in between in fp32.
TEST(Linear, InputGradientsInPiecesHaveTheBitsOfTheWhole) {
  Random random(13);
  for (const DType dtype : all_dtypes)
    for (const Problem::Addend kind :
         {Problem::Addend::none, Problem::Addend::other, Problem::Addend::in_place}) {
      // Features of the second part: one whole chain, and a rest. It is computed in two pieces below, because
      // a piece may begin only where a chain begins.
      const int64_t late = chain_terms + 48;
      Problem p(random, {2, 37, 96, {48, late}}, {dtype, dtype, dtype, dtype}, false, false, false);
      for (const NamedTable& t : tables()) {
        SCOPED_TRACE(std::string(t.name) + ", " + p.describe());
        const Buffer whole = p.input_gradient(*t.table, 2, kind);
        Buffer columns = kind == Problem::Addend::in_place ? p.addend : Buffer(dtype, p.rows * 96);
        const int64_t bytes = dtype == DType::f32 ? 4 : 2;
        for (const auto& [first, width] : {std::pair<int64_t, int64_t>{0, 32}, {32, 48}, {80, 16}}) {
          std::vector<Buffer> weights;
          for (const Buffer& w : p.weight) weights.push_back(columns_of(w, first, first + width, 96));
          LinearArgs a = p.args({static_cast<char*>(columns.data()) + first * bytes, dtype}, p.dy.matrix());
          if (kind == Problem::Addend::other)
            a.addend = {static_cast<char*>(p.addend.data()) + first * bytes, dtype};
          if (kind == Problem::Addend::in_place) a.addend = {a.x.data, dtype};
          a.inputs = width, a.x_stride = 96;
          for (int i = 0; i < a.parts; ++i) a.part[i].weight = weights[i].data();
          run(t.table->linear_input_gradient, a, 2, linear_input_gradient_workspace(a, 2));
        }
        EXPECT_TRUE(same_bits(columns, whole));
        Buffer sums(DType::f32, p.rows * 96),
            turns = kind == Problem::Addend::in_place ? p.addend : Buffer(dtype, p.rows * 96);
        int64_t at = 0;
        for (const auto& [part, first, width] :
             {std::tuple<size_t, int64_t, int64_t>{0, 0, 48}, {1, 0, chain_terms}, {1, chain_terms, 48}}) {
          const bool last = at + width == p.outputs;
          LinearArgs a = p.args(last ? turns.matrix() : sums.matrix(),
                                {static_cast<char*>(p.dy.data()) + at * bytes, dtype});
          a.parts = 1, a.part[0] = a.part[part], a.part[0].features = width;
          a.part[0].weight = static_cast<char*>(p.weight[part].data()) + first * 96 * bytes;
          if (at > 0) a.addend = sums.const_matrix();
          else if (kind == Problem::Addend::other) a.addend = p.addend.const_matrix();
          else if (kind == Problem::Addend::in_place) a.addend = turns.const_matrix();
          run(t.table->linear_input_gradient, a, 2, linear_input_gradient_workspace(a, 2));
          at += width;
        }
        EXPECT_TRUE(same_bits(turns, whole));
      }
    }
}

// Features may be computed separately. The rows of y and of the residual then have the stride of the whole
// matrix.
TEST(Linear, FeaturesInPiecesHaveTheBitsOfTheWhole) {
  Random random(14);
  for (const DType dtype : all_dtypes) {
    Problem p(random, {2, 37, 40, {112}}, {dtype, dtype, dtype, dtype}, false, true, false);
    p.add_residual(random);
    for (const NamedTable& t : tables()) {
      SCOPED_TRACE(std::string(t.name) + ", " + p.describe());
      Buffer apart(dtype, p.rows * 112);
      const int64_t bytes = dtype == DType::f32 ? 4 : 2;
      for (const auto& [first, width] : {std::pair<int64_t, int64_t>{0, 64}, {64, 48}}) {
        LinearArgs a = p.args(p.x.matrix(), {static_cast<char*>(apart.data()) + first * bytes, dtype});
        a.residual = {static_cast<char*>(p.residual.data()) + first * bytes, dtype};
        a.part[0].weight = static_cast<char*>(p.weight[0].data()) + first * 40 * bytes,
        a.part[0].bias = static_cast<char*>(p.biases[0].data()) + first * bytes;
        a.part[0].features = width;
        run(t.table->linear, a, 2, linear_workspace(a, 2));
      }
      EXPECT_TRUE(same_bits(apart, p.forward(*t.table, 2)));
    }
  }
}

// Gradients over no rows are 0. The workspace is bounded for the largest shapes.
TEST(Linear, EmptyAndHugeShapes) {
  Random random(10);
  Problem p(random, {1, 4, 10, {6}}, {f32, f32, f32, f32}, false, false, false);
  for (const NamedTable& t : tables()) {
    Buffer dw = p.weight_gradient[0], db = p.bias_gradient[0];
    LinearArgs a = p.args(p.x.matrix(), p.dy.matrix());
    a.rows = 0;
    a.part[0].weight_gradient = dw.data(), a.part[0].bias_gradient = db.data();
    run(t.table->linear_weight_gradient, a, 1, linear_weight_gradient_workspace(a, 1));
    run(t.table->linear_bias_gradient, a, 1, 0);
    EXPECT_TRUE(same_bits(dw, Buffer(f32, 60))) << t.name;
    EXPECT_TRUE(same_bits(db, Buffer(f32, 6))) << t.name;
  }
  LinearArgs huge = p.args({nullptr, bf16}, {nullptr, bf16});
  huge.rows = 1 << 16, huge.inputs = 16384, huge.part[0].features = 262144;
  for (int threads : {1, 2, 16, 128}) {
    EXPECT_LE(linear_workspace(huge, threads), static_cast<uint64_t>(threads) << 20);
    EXPECT_LE(linear_input_gradient_workspace(huge, threads), static_cast<uint64_t>(threads) << 20);
  }
}

}  // namespace
}  // namespace stw::kernels::test::linear_test
