// LayerNorm and RMSNorm compared with fp64, their gradients with finite differences of the fp64 forward pass.
#include "tests/kernels/everywhere.h"

namespace stw::kernels::test::norm_test {
namespace {

struct Problem {
  int64_t samples, rows_per_sample, features;
  bool rms, has_bias;
  DType dtype;
  Buffer x, dy, weight, bias, addend;
  float weight_offset = 0;
  double factor(size_t i) const {
    return static_cast<double>(weight.get(static_cast<int64_t>(i))) + static_cast<double>(weight_offset);
  }
  int64_t rows() const { return samples * rows_per_sample; }
  NormArgs args() {
    return {.rows = rows(),
            .features = features,
            .rows_per_sample = rows_per_sample,
            .epsilon = 1e-5f,
            .rms = rms,
            .accumulate = false,
            .weight_dtype = dtype,
            .weight_offset = weight_offset,
            .weight = weight.data(),
            .bias = has_bias ? bias.data() : nullptr,
            .x = x.matrix(),
            .y = {},
            .dx = {},
            .addend = {},
            .weight_gradient = nullptr,
            .bias_gradient = nullptr};
  }
};

Problem random_problem(Random& random, DType dtype, bool rms, int64_t features) {
  Problem p{random.between(1, 3),
            random.between(1, 150),
            features,
            rms,
            !rms && random.between(0, 1) == 1,
            dtype,
            {},
            {},
            {},
            {},
            {}};
  p.weight_offset = static_cast<float>(p.rows() % 2);
  const std::vector<float> shift = normals(random, p.rows(), 3);
  std::vector<float> x = normals(random, p.rows() * features);
  for (size_t i = 0; i < x.size(); ++i) x[i] += shift[i / static_cast<size_t>(features)];
  p.x = Buffer(dtype, x);
  p.dy = Buffer::normal(dtype, random, p.rows() * features);
  p.addend = Buffer::normal(dtype, random, p.rows() * features);
  p.weight = Buffer::normal(dtype, random, features);
  p.bias = Buffer::normal(dtype, random, features);
  return p;
}

std::vector<double> normalized(const Problem& p, const double* x) {
  const auto n = static_cast<size_t>(p.features);
  double mean = 0, square = 0;
  for (size_t i = 0; i < n && !p.rms; ++i) mean += x[i] / static_cast<double>(n);
  for (size_t i = 0; i < n; ++i) square += (x[i] - mean) * (x[i] - mean) / static_cast<double>(n);
  std::vector<double> h(n);
  for (size_t i = 0; i < n; ++i) h[i] = (x[i] - mean) / std::sqrt(square + 1e-5f);
  return h;
}

std::vector<double> reference_dx(const Problem& p) {
  const auto n = static_cast<size_t>(p.features);
  std::vector<double> x = doubles(p.x), dy = doubles(p.dy), dx(x.size());
  auto loss = [&](size_t row) {
    const std::vector<double> h = normalized(p, &x[row * n]);
    double sum = 0;
    for (size_t i = 0; i < n; ++i) sum += h[i] * p.factor(i) * dy[row * n + i];
    return sum;
  };
  constexpr double step = 1e-5;
  for (size_t at = 0; at < x.size(); ++at) {
    const double old = x[at];
    x[at] = old + step;
    const double above = loss(at / n);
    x[at] = old - step;
    dx[at] = (above - loss(at / n)) / (2 * step);
    x[at] = old;
  }
  return dx;
}

TEST(Norm, AgreesWithDoubleOnRandomShapes) {
  Random random(1);
  for (int round = 0; round < 24; ++round) {
    Problem p = random_problem(random, dtype_of(round), round % 4 < 2, random.between(2, 400));
    const Buffer y = everywhere([&](const Table& table, int threads) {
      Buffer out(p.dtype, p.rows() * p.features);
      NormArgs args = p.args();
      args.y = out.matrix();
      run(table.norm, args, threads, 0);
      return std::vector<Buffer>{out};
    })[0];
    const std::vector<double> x = doubles(p.x);
    std::vector<double> expected;
    for (int64_t row = 0; row < p.rows(); ++row) {
      const std::vector<double> h = normalized(p, &x[row * p.features]);
      for (int64_t i = 0; i < p.features; ++i)
        expected.push_back(h[i] * p.factor(static_cast<size_t>(i)) + (p.has_bias ? p.bias.get(i) : 0.0f));
    }
    EXPECT_LE(relative_error(y.floats(), expected), tolerance(p.dtype)) << p.rows() << " x " << p.features;
  }
}

TEST(NormGradient, AgreesWithFiniteDifferences) {
  Random random(2);
  for (int round = 0; round < 16; ++round) {
    Problem p = random_problem(random, dtype_of(round / 3), round % 4 < 2, random.between(5, 70));
    const bool add = round % 3 != 0, in_place = round % 3 == 2, accumulate = round % 5 < 2;
    const Buffer start_w = Buffer::normal(DType::f32, random, p.features);
    const Buffer start_b = Buffer::normal(DType::f32, random, p.features);
    const std::vector<Buffer> out = everywhere([&](const Table& table, int threads) {
      Buffer dx = in_place ? p.addend : Buffer(p.dtype, p.rows() * p.features), dw = start_w, db = start_b;
      NormArgs args = p.args();
      args.accumulate = accumulate;
      args.y = p.dy.matrix();
      args.dx = dx.matrix();
      if (add) args.addend = in_place ? dx.const_matrix() : p.addend.const_matrix();
      args.weight_gradient = floats_of(dw);
      args.bias_gradient = p.has_bias ? floats_of(db) : nullptr;
      run(table.norm_gradient, args, threads, norm_gradient_workspace(args, threads));
      return std::vector<Buffer>{dx, dw, db};
    });
    std::vector<double> dx = reference_dx(p);
    for (size_t i = 0; add && i < dx.size(); ++i) dx[i] += p.addend.get(static_cast<int64_t>(i));
    EXPECT_LE(relative_error(out[0].floats(), dx), tolerance(p.dtype)) << "round " << round;
    const std::vector<double> x = doubles(p.x);
    const auto n = static_cast<size_t>(p.features);
    std::vector<double> dw = doubles(start_w), db = doubles(start_b);
    if (!accumulate) dw.assign(n, 0);
    if (!accumulate && p.has_bias) db.assign(n, 0);
    for (size_t row = 0; row < static_cast<size_t>(p.rows()); ++row) {
      const std::vector<double> h = normalized(p, &x[row * n]);
      for (size_t i = 0; i < n; ++i) {
        const double dy = p.dy.get(static_cast<int64_t>(row * n + i));
        dw[i] += h[i] * dy;
        if (p.has_bias) db[i] += dy;
      }
    }
    EXPECT_LE(relative_error(out[1].floats(), dw), 1e-5);
    EXPECT_LE(relative_error(out[2].floats(), db), 1e-5);  // Untouched if there is no bias.
  }
}

// One call for all samples gives the same bits as one call before a cut and one after it.
TEST(NormGradient, CutBetweenSamplesChangesNothing) {
  Random random(3);
  for (int64_t rows_per_sample : {1, 7, 64, 65, 150}) {
    Problem p = random_problem(random, DType::f32, rows_per_sample % 2 == 0, 77);
    p.samples = 5, p.rows_per_sample = rows_per_sample, p.has_bias = true;
    p.x = Buffer::normal(DType::f32, random, p.rows() * p.features);
    p.dy = Buffer::normal(DType::f32, random, p.rows() * p.features);
    auto gradients = [&](const Table& table, int threads, int64_t cut) {
      Buffer dx(DType::f32, p.rows() * p.features), dw(DType::f32, p.features), db(DType::f32, p.features);
      for (int part = 0; part < 2; ++part) {
        const int64_t first = part == 0 ? 0 : cut * rows_per_sample;
        NormArgs args = p.args();
        args.rows = part == 0 ? cut * rows_per_sample : p.rows() - first;
        if (args.rows == 0) continue;
        args.accumulate = first > 0;
        args.x.data = floats_of(p.x) + first * p.features;
        args.y = {floats_of(p.dy) + first * p.features, DType::f32};
        args.dx = {floats_of(dx) + first * p.features, DType::f32};
        args.weight_gradient = floats_of(dw);
        args.bias_gradient = floats_of(db);
        run(table.norm_gradient, args, threads, norm_gradient_workspace(args, threads));
      }
      return std::vector<Buffer>{dx, dw, db};
    };
    const std::vector<Buffer> whole =
        everywhere([&](const Table& t, int threads) { return gradients(t, threads, 5); });
    for (int64_t cut = 1; cut < 5; ++cut) {
      const std::vector<Buffer> parts = gradients(*tables().back().table, 2, cut);
      for (size_t i = 0; i < 3; ++i)
        EXPECT_TRUE(same_bits(whole[i], parts[i])) << rows_per_sample << ", cut " << cut;
    }
  }
}

// A GPU gives a block a whole tile if there are many tiles, else some rows, and takes a long row in pieces.
// All of these give the same bits.
TEST(NormGradient, SameBitsForManyRowsAndForLongOnes) {
  Random random(5);
  const struct {
    int64_t samples, rows_per_sample, features;
  } shapes[] = {{3, 703, 24},  {2, 515, 300}, {1, 3, 12004}, {1, 2, 11999},
                {5, 65, 1100}, {4, 63, 2048}, {4, 33, 2049}, {2, 130, 768}};
  for (int round = 0; round < 16; ++round) {
    const auto& shape = shapes[round % 8];
    Problem p = random_problem(random, dtype_of(round), round < 8, shape.features);
    p.samples = shape.samples, p.rows_per_sample = shape.rows_per_sample, p.has_bias = round >= 8;
    for (Buffer* b : {&p.x, &p.dy, &p.addend}) *b = Buffer::normal(p.dtype, random, p.rows() * p.features);
    // Operands of two types.
    if (round == 2 || round == 9) p.dy = Buffer::normal(DType::f32, random, p.rows() * p.features);
    everywhere([&](const Table& table, int threads) {
      Buffer y(p.dtype, p.rows() * p.features), dx = y, dw(DType::f32, p.features), db = dw;
      NormArgs args = p.args();
      args.y = y.matrix();
      run(table.norm, args, threads, 0);
      args.y = p.dy.matrix();
      args.dx = dx.matrix();
      args.addend = p.addend.const_matrix();
      args.weight_gradient = floats_of(dw);
      args.bias_gradient = p.has_bias ? floats_of(db) : nullptr;
      run(table.norm_gradient, args, threads, norm_gradient_workspace(args, threads));
      return std::vector<Buffer>{y, dx, dw, db};
    });
  }
}

// Gradients of biases in the same call, one of which reads the addend. They have the bits of separate calls,
// in both ways in which a GPU takes rows.
TEST(NormGradient, BiasesHaveTheBitsOfSeparateCalls) {
  Random random(6);
  const struct {
    int64_t samples, rows_per_sample, features;
  } shapes[] = {{1, 70, 24}, {5, 65, 300}, {2, 515, 96}, {4, 64, 1100}, {3, 130, 2060}};
  for (int round = 0; round < 15; ++round) {
    const auto& shape = shapes[round % 5];
    Problem p = random_problem(random, dtype_of(round), round % 3 == 0, shape.features);
    p.samples = shape.samples, p.rows_per_sample = shape.rows_per_sample;
    const bool in_place = round % 2 == 0, accumulate = round % 4 < 2;
    for (Buffer* b : {&p.x, &p.dy, &p.addend}) *b = Buffer::normal(p.dtype, random, p.rows() * p.features);
    const int64_t parts[] = {40, 17, 100}, width = 160;  // Another op, whose rows are further apart.
    Buffer other_dy = Buffer::normal(p.dtype, random, p.rows() * width);
    const Buffer start = Buffer::normal(DType::f32, random, p.features),
                 start_of_part = Buffer::normal(DType::f32, random, 100);
    const auto gradients = [&](const Table& table, int threads, bool together) {
      Buffer addend = p.addend, dx = addend, dw = start, db = start, of_addend = start, first = start_of_part,
             last = start_of_part;
      LinearArgs a{};
      a.rows = p.rows(), a.rows_per_sample = p.rows_per_sample, a.parts = 1, a.accumulate = accumulate;
      LinearArgs other = a;
      a.part[0].features = p.features, a.part[0].bias_gradient = of_addend.data();
      a.y = in_place ? dx.matrix() : addend.matrix(), a.y_stride = p.features;
      other.parts = 3, other.y = other_dy.matrix(), other.y_stride = width;
      for (int i = 0; i < 3; ++i) other.part[i].features = parts[i];
      other.part[0].bias_gradient = first.data(), other.part[2].bias_gradient = last.data();
      NormArgs args = p.args();
      args.accumulate = accumulate;
      args.y = p.dy.matrix(), args.dx = dx.matrix(), args.addend = {a.y.data, a.y.dtype};
      args.weight_gradient = floats_of(dw), args.bias_gradient = p.rms ? nullptr : floats_of(db);
      if (together) {
        other.further = &a;
        args.biases = &other;
      } else {
        for (const LinearArgs& one : {a, other})
          run(table.linear_bias_gradient, one, threads, linear_bias_gradient_workspace(one, threads));
      }
      run(table.norm_gradient, args, threads, norm_gradient_workspace(args, threads));
      return std::vector<Buffer>{dx, dw, db, of_addend, first, last};
    };
    const std::vector<Buffer> alone =
        everywhere([&](const Table& t, int threads) { return gradients(t, threads, false); });
    const std::vector<Buffer> together =
        everywhere([&](const Table& t, int threads) { return gradients(t, threads, true); });
    for (size_t i = 0; i < alone.size(); ++i)
      EXPECT_TRUE(same_bits(alone[i], together[i])) << round << ", " << i;
  }
}

TEST(NormGradient, WritesOnlyRequestedOutputs) {
  Random random(4);
  for (int64_t samples : {1, 6}) {
    Problem p = random_problem(random, DType::f32, false, 33);
    p.samples = samples;
    for (Buffer* b : {&p.x, &p.dy}) *b = Buffer::normal(p.dtype, random, p.rows() * p.features);
    for (const NamedTable& entry : tables()) {
      Buffer dx(DType::f32, p.rows() * p.features), dw(DType::f32, p.features);
      Buffer only_dx = dx, only_dw = dw;
      NormArgs args = p.args();
      args.y = p.dy.matrix();
      args.dx = dx.matrix();
      args.weight_gradient = floats_of(dw);
      run(entry.table->norm_gradient, args, 1, norm_gradient_workspace(args, 1));
      args.weight_gradient = nullptr;
      args.dx = only_dx.matrix();
      run(entry.table->norm_gradient, args, 1, norm_gradient_workspace(args, 1));
      args.weight_gradient = floats_of(only_dw);
      args.dx = {};
      run(entry.table->norm_gradient, args, 1, norm_gradient_workspace(args, 1));
      EXPECT_TRUE(same_bits(dx, only_dx));
      EXPECT_TRUE(same_bits(dw, only_dw));
    }
  }
}

}  // namespace
}  // namespace stw::kernels::test::norm_test
