// The norm of queries and keys compared with fp64, its gradient with finite differences of the fp64 forward
// pass.
#include "tests/kernels/everywhere.h"

namespace stw::kernels::test::qk_norm_test {
namespace {

struct Problem {
  int64_t samples, rows_per_sample;
  int query_heads, kv_heads, head_dim;
  DType dtype;
  Buffer x, dy, weight[2];
  int64_t rows() const { return samples * rows_per_sample; }
  int64_t heads() const { return query_heads + 2 * kv_heads; }
  int64_t elements() const { return rows() * heads() * head_dim; }
  // The kind of an element's head: 0 queries, 1 keys, 2 values.
  int part(int64_t element) const {
    const int64_t head = element / head_dim % heads();
    return head < query_heads ? 0 : head < query_heads + kv_heads ? 1 : 2;
  }
  void fill(Random& random) {
    x = Buffer::normal(dtype, random, elements(), 2);
    dy = Buffer::normal(dtype, random, elements());
    for (Buffer& w : weight) w = Buffer::normal(dtype, random, head_dim);
  }
  float weight_offset() const { return static_cast<float>(rows() % 2); }
  double factor(int part, size_t i) const {
    return static_cast<double>(weight[part].get(static_cast<int64_t>(i))) +
           static_cast<double>(weight_offset());
  }
  QkNormArgs args() {
    return {.rows = rows(),
            .rows_per_sample = rows_per_sample,
            .query_heads = query_heads,
            .kv_heads = kv_heads,
            .head_dim = head_dim,
            .epsilon = 1e-5f,
            .accumulate = false,
            .weight_dtype = dtype,
            .weight_offset = weight_offset(),
            .weight = {weight[0].data(), weight[1].data()},
            .x = x.matrix(),
            .y = {},
            .dx = {},
            .weight_gradient = {nullptr, nullptr}};
  }
};

Problem random_problem(Random& random, DType dtype, int head_dim) {
  const int kv_heads = static_cast<int>(random.between(1, 3));
  Problem p{random.between(1, 3),
            random.between(1, 90),
            kv_heads * static_cast<int>(random.between(1, 3)),
            kv_heads,
            head_dim,
            dtype,
            {},
            {},
            {}};
  p.fill(random);
  return p;
}

// x of the head at `at`, divided by its root mean square.
std::vector<double> normalized(const Problem& p, const double* x) {
  double square = 0;
  for (int i = 0; i < p.head_dim; ++i) square += x[i] * x[i] / p.head_dim;
  std::vector<double> h(x, x + p.head_dim);
  for (double& value : h) value /= std::sqrt(square + 1e-5f);
  return h;
}

std::vector<double> reference_dx(const Problem& p) {
  std::vector<double> x = doubles(p.x), dy = doubles(p.dy), dx = dy;  // For values, dx is dy.
  constexpr double step = 1e-5;
  for (size_t at = 0; at < x.size(); ++at) {
    const int part = p.part(static_cast<int64_t>(at));
    if (part == 2) continue;
    const size_t n = static_cast<size_t>(p.head_dim), head = at / n * n;
    const auto loss = [&](double change) {
      const double old = x[at];
      x[at] = old + change;
      const std::vector<double> h = normalized(p, &x[head]);
      x[at] = old;
      double sum = 0;
      for (size_t i = 0; i < n; ++i) sum += h[i] * p.factor(part, i) * dy[head + i];
      return sum;
    };
    dx[at] = (loss(step) - loss(-step)) / (2 * step);
  }
  return dx;
}

TEST(QkNorm, AgreesWithDoubleOnRandomShapes) {
  Random random(1);
  for (int round = 0; round < 18; ++round) {
    Problem p = random_problem(random, dtype_of(round),
                               static_cast<int>(round < 6 ? 64 * (1 + round / 3) : random.between(1, 150)));
    const std::vector<Buffer> out = everywhere([&](const Table& table, int threads) {
      Buffer y(p.dtype, p.elements()), in_place = p.x;
      QkNormArgs args = p.args();
      args.y = y.matrix();
      run(table.qk_norm, args, threads, 0);
      args.x = args.y = in_place.matrix();
      run(table.qk_norm, args, threads, 0);
      return std::vector<Buffer>{y, in_place};
    });
    const std::vector<double> x = doubles(p.x);
    std::vector<double> expected = x;
    for (int64_t head = 0; head < p.elements(); head += p.head_dim) {
      if (p.part(head) == 2) continue;
      const std::vector<double> h = normalized(p, &x[head]);
      for (int i = 0; i < p.head_dim; ++i)
        expected[head + i] = h[i] * p.factor(p.part(head), static_cast<size_t>(i));
    }
    EXPECT_LE(relative_error(out[0].floats(), expected), tolerance(p.dtype))
        << p.rows() << " rows, heads of " << p.head_dim;
    EXPECT_TRUE(same_bits(out[0], out[1]));
    for (int64_t i = 0; i < p.elements(); ++i) {
      if (p.part(i) < 2) continue;
      ASSERT_EQ(out[0].get(i), p.x.get(i)) << i;
    }
  }
}

TEST(QkNormGradient, AgreesWithFiniteDifferences) {
  Random random(2);
  for (int round = 0; round < 12; ++round) {
    Problem p = random_problem(random, dtype_of(round / 3),
                               static_cast<int>(round % 3 == 0 ? 64 : random.between(2, 40)));
    const bool accumulate = round % 2 == 1;
    const Buffer start[] = {Buffer::normal(DType::f32, random, p.head_dim),
                            Buffer::normal(DType::f32, random, p.head_dim)};
    const std::vector<Buffer> out = everywhere([&](const Table& table, int threads) {
      Buffer dx(p.dtype, p.elements()), in_place = p.dy, dw[] = {start[0], start[1]},
                                        again[] = {start[0], start[1]};
      QkNormArgs args = p.args();
      args.accumulate = accumulate;
      args.y = p.dy.matrix();
      args.dx = dx.matrix();
      for (int i = 0; i < 2; ++i) args.weight_gradient[i] = floats_of(dw[i]);
      run(table.qk_norm_gradient, args, threads, qk_norm_gradient_workspace(args, threads));
      args.y = args.dx = in_place.matrix();
      for (int i = 0; i < 2; ++i) args.weight_gradient[i] = floats_of(again[i]);
      run(table.qk_norm_gradient, args, threads, qk_norm_gradient_workspace(args, threads));
      return std::vector<Buffer>{dx, dw[0], dw[1], in_place, again[0], again[1]};
    });
    EXPECT_LE(relative_error(out[0].floats(), reference_dx(p)), tolerance(p.dtype)) << "round " << round;
    const std::vector<double> x = doubles(p.x);
    std::vector<double> dw[] = {doubles(start[0]), doubles(start[1])};
    for (std::vector<double>& sum : dw)
      if (!accumulate) sum.assign(sum.size(), 0);
    for (int64_t head = 0; head < p.elements(); head += p.head_dim) {
      if (p.part(head) == 2) continue;
      const std::vector<double> h = normalized(p, &x[head]);
      std::vector<double>& sum = dw[p.part(head)];
      for (int i = 0; i < p.head_dim; ++i) sum[i] += h[i] * p.dy.get(head + i);
    }
    for (int i = 0; i < 2; ++i)
      EXPECT_LE(relative_error(out[1 + i].floats(), dw[i]), 1e-5) << "round " << round;
    for (size_t i = 0; i < 3; ++i)
      EXPECT_TRUE(same_bits(out[i], out[3 + i])) << "output " << i << " where dx takes dy's place";
  }
}

// One call for all samples gives the same bits as one call before a cut and one after it.
TEST(QkNormGradient, CutBetweenSamplesChangesNothing) {
  Random random(3);
  for (int64_t rows_per_sample : {1, 64, 65, 150}) {
    Problem p{4, rows_per_sample, 4, 2, 24, DType::f32, {}, {}, {}};
    p.fill(random);
    const int64_t width = p.heads() * p.head_dim;
    auto gradients = [&](const Table& table, int threads, int64_t cut) {
      Buffer dx(DType::f32, p.elements()),
          dw[] = {Buffer(DType::f32, p.head_dim), Buffer(DType::f32, p.head_dim)};
      for (int part = 0; part < 2; ++part) {
        const int64_t first = part == 0 ? 0 : cut * rows_per_sample;
        QkNormArgs args = p.args();
        args.rows = part == 0 ? cut * rows_per_sample : p.rows() - first;
        if (args.rows == 0) continue;
        args.accumulate = first > 0;
        args.x = {floats_of(p.x) + first * width, DType::f32};
        args.y = {floats_of(p.dy) + first * width, DType::f32};
        args.dx = {floats_of(dx) + first * width, DType::f32};
        for (int i = 0; i < 2; ++i) args.weight_gradient[i] = floats_of(dw[i]);
        run(table.qk_norm_gradient, args, threads, qk_norm_gradient_workspace(args, threads));
      }
      return std::vector<Buffer>{dx, dw[0], dw[1]};
    };
    const std::vector<Buffer> whole =
        everywhere([&](const Table& t, int threads) { return gradients(t, threads, 4); });
    for (int64_t cut = 1; cut < 4; ++cut) {
      const std::vector<Buffer> parts = gradients(*tables().back().table, 2, cut);
      for (size_t i = 0; i < 3; ++i)
        EXPECT_TRUE(same_bits(whole[i], parts[i])) << rows_per_sample << ", cut " << cut;
    }
  }
}

// Heads longer than the columns that a block takes at a time, many rows, operands of two types, and unaligned
// addresses: the same bits on every device.
TEST(QkNormGradient, SameBitsForManyRowsAndForLongHeads) {
  Random random(4);
  const struct {
    int64_t samples, rows_per_sample;
    int queries, keys, head_dim;
  } shapes[] = {{3, 403, 4, 2, 16}, {1, 66, 2, 1, 600}, {2, 65, 3, 3, 129}, {1, 7, 1, 1, 2048}};
  for (int round = 0; round < 8; ++round) {
    const auto& s = shapes[round % 4];
    Problem p{s.samples, s.rows_per_sample, s.queries, s.keys, s.head_dim, dtype_of(round), {}, {}, {}};
    p.fill(random);
    if (round == 6) p.dy = Buffer::normal(DType::f32, random, p.elements());
    everywhere([&](const Table& table, int threads) {
      Buffer y(p.dtype, p.elements()),
          dx = y, dw[] = {Buffer(DType::f32, p.head_dim), Buffer(DType::f32, p.head_dim)};
      QkNormArgs args = p.args();
      args.y = y.matrix();
      run(table.qk_norm, args, threads, 0);
      args.y = p.dy.matrix();
      args.dx = dx.matrix();
      for (int i = 0; i < 2; ++i) args.weight_gradient[i] = floats_of(dw[i]);
      run(table.qk_norm_gradient, args, threads, qk_norm_gradient_workspace(args, threads));
      return std::vector<Buffer>{y, dx, dw[0], dw[1]};
    });
  }
}

TEST(QkNormGradient, WritesOnlyRequestedOutputs) {
  Random random(5);
  Problem p{2, 70, 4, 2, 33, DType::f32, {}, {}, {}};
  p.fill(random);
  for (const NamedTable& entry : tables()) {
    const auto gradients = [&](bool wants_dx, bool wants_queries, bool wants_keys) {
      Buffer dx(DType::f32, p.elements()), queries(DType::f32, p.head_dim), keys = queries;
      QkNormArgs args = p.args();
      args.y = p.dy.matrix();
      if (wants_dx) args.dx = dx.matrix();
      args.weight_gradient[0] = wants_queries ? floats_of(queries) : nullptr;
      args.weight_gradient[1] = wants_keys ? floats_of(keys) : nullptr;
      run(entry.table->qk_norm_gradient, args, 1, qk_norm_gradient_workspace(args, 1));
      return std::vector<Buffer>{dx, queries, keys};
    };
    const std::vector<Buffer> all = gradients(true, true, true), none = gradients(false, false, false);
    for (size_t requested = 0; requested < 3; ++requested) {
      const std::vector<Buffer> one = gradients(requested == 0, requested == 1, requested == 2);
      for (size_t i = 0; i < 3; ++i)
        EXPECT_TRUE(same_bits(one[i], i == requested ? all[i] : none[i]))
            << entry.name << ", requested " << requested << ", output " << i;
    }
  }
}

}  // namespace
}  // namespace stw::kernels::test::qk_norm_test
