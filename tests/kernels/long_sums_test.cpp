// Sums over many tokens or a large vocabulary are about as close to the exact sums as PyTorch's
// (tests/golden/long_sums.py): within four times its error. A single chain of as many terms exceeds that.
#include "tests/golden/long_sums.h"
#include "tests/kernels/everywhere.h"

namespace stw::kernels::test::long_sums_test {
namespace {

constexpr int64_t inputs = 24, features = 16, rows_per_sample = 1024;
constexpr double factor = 4;

// The emulated machine is slow and computes only the shorter sums.
template <class Check>
void for_terms(std::span<const PyTorchError> errors, const Check& check) {
  for (const PyTorchError& e : errors) {
    if (emulated() && e.terms > 60000) continue;
    SCOPED_TRACE(std::to_string(e.terms) + " terms");
    check(e.terms, factor * e.error);
  }
}

// The error also goes into the test's report (--gtest_output=json:FILE), in billionths.
void expect_within(double bound, const std::vector<float>& found, const std::vector<double>& exact,
                   int64_t terms) {
  const double error = relative_error(found, exact);
  testing::Test::RecordProperty("error_of_" + std::to_string(terms), static_cast<int>(error * 1e9));
  EXPECT_LE(error, bound);
}

struct Tokens {
  int64_t rows;
  std::vector<float> x, dy;
  Tokens(int64_t tokens, uint64_t seed) : rows(tokens) {
    Random random(seed);
    x = normals(random, rows * inputs);
    dy = normals(random, rows * features);
  }
  LinearArgs args() {
    LinearArgs a = {};
    a.rows = rows, a.inputs = inputs, a.rows_per_sample = rows_per_sample, a.parts = 1;
    a.part[0].features = features, a.x = {x.data(), DType::f32}, a.y = {dy.data(), DType::f32},
    a.y_stride = features;
    return a;
  }
};

TEST(LongSums, OfWeightGradients) {
  for_terms(of_weight_gradient, [](int64_t tokens, double bound) {
    Tokens t(tokens, 1);
    std::vector<double> exact(features * inputs);
    std::vector<float> single(features * inputs);
    for (int64_t row = 0; row < tokens; ++row)
      for (int64_t i = 0; i < features * inputs; ++i) {
        const float dy = t.dy[row * features + i / inputs], x = t.x[row * inputs + i % inputs];
        exact[i] += static_cast<double>(dy) * static_cast<double>(x);
        single[i] = std::fmaf(dy, x, single[i]);
      }
    EXPECT_GT(relative_error(single, exact), bound);
    const Buffer found = everywhere([&](const Table& table, int threads) {
      Buffer dw(DType::f32, features * inputs);
      LinearArgs a = t.args();
      a.part[0].weight_gradient = dw.data();
      run(table.linear_weight_gradient, a, threads, linear_weight_gradient_workspace(a, threads));
      return std::vector<Buffer>{dw};
    })[0];
    expect_within(bound, found.floats(), exact, tokens);
  });
}

// The matrices are as narrow as those of adapters.
TEST(LongSums, OfAdaptersWeightGradients) {
  for_terms(of_weight_gradient, [](int64_t tokens, double bound) {
    Tokens t(tokens, 2);
    std::vector<double> exact(features * inputs);
    for (int64_t row = 0; row < tokens; ++row)
      for (int64_t i = 0; i < features * inputs; ++i)
        exact[i] += static_cast<double>(t.dy[row * features + i / inputs]) *
                    static_cast<double>(t.x[row * inputs + i % inputs]);
    const Buffer found = everywhere([&](const Table& table, int threads) {
      Buffer dw(DType::f32, features * inputs);
      AdapterArgs a = {};
      a.rows = tokens, a.rank = inputs, a.rows_per_sample = rows_per_sample, a.parts = 1, a.width = features;
      a.part[0] = {nullptr, floats_of(dw), features, 0};
      a.low = {t.x.data(), DType::f32}, a.y = {t.dy.data(), DType::f32};
      run(table.adapter_weight_gradient, a, threads, adapter_weight_gradient_workspace(a, threads));
      return std::vector<Buffer>{dw};
    })[0];
    expect_within(bound, found.floats(), exact, tokens);
  });
}

TEST(LongSums, OfBiasGradients) {
  for_terms(of_bias_gradient, [](int64_t tokens, double bound) {
    Tokens t(tokens, 3);
    std::vector<double> exact(features);
    for (int64_t i = 0; i < tokens * features; ++i) exact[i % features] += static_cast<double>(t.dy[i]);
    const Buffer found = everywhere([&](const Table& table, int threads) {
      Buffer db(DType::f32, features);
      LinearArgs a = t.args();
      a.part[0].bias_gradient = db.data();
      run(table.linear_bias_gradient, a, threads, linear_bias_gradient_workspace(a, threads));
      return std::vector<Buffer>{db};
    })[0];
    expect_within(bound, found.floats(), exact, tokens);
  });
}

TEST(LongSums, OfNormsWeightGradients) {
  for_terms(of_norm_gradient, [](int64_t tokens, double bound) {
    Random random(4);
    std::vector<float> x = normals(random, tokens * features), dy = normals(random, tokens * features);
    const std::vector<float> weight(features, 1.0f);
    std::vector<double> exact(features);
    for (int64_t row = 0; row < tokens; ++row) {
      const float* const values = x.data() + row * features;
      double mean = 0, variance = 0;
      for (int64_t i = 0; i < features; ++i) mean += static_cast<double>(values[i]) / features;
      for (int64_t i = 0; i < features; ++i)
        variance +=
            (static_cast<double>(values[i]) - mean) * (static_cast<double>(values[i]) - mean) / features;
      for (int64_t i = 0; i < features; ++i)
        exact[i] += static_cast<double>(dy[row * features + i]) * (static_cast<double>(values[i]) - mean) /
                    std::sqrt(variance + 1e-5);
    }
    const Buffer found = everywhere([&](const Table& table, int threads) {
      Buffer dw(DType::f32, features), dx(DType::f32, tokens * features);
      NormArgs a = {};
      a.rows = tokens, a.features = features, a.rows_per_sample = rows_per_sample, a.epsilon = 1e-5f;
      a.weight = weight.data(), a.x = {x.data(), DType::f32}, a.y = {dy.data(), DType::f32},
      a.dx = dx.matrix(), a.weight_gradient = floats_of(dw);
      run(table.norm_gradient, a, threads, norm_gradient_workspace(a, threads));
      return std::vector<Buffer>{dw};
    })[0];
    expect_within(bound, found.floats(), exact, tokens);
  });
}

TEST(LongSums, OfTableGradients) {
  for_terms(of_embedding_gradient, [](int64_t tokens, double bound) {
    constexpr int64_t vocabulary = 8;
    Random random(5);
    std::vector<float> dy = normals(random, tokens * features);
    std::vector<int32_t> token;
    std::vector<double> exact(vocabulary * features);
    for (int64_t row = 0; row < tokens; ++row) {
      token.push_back(static_cast<int32_t>(random.between(0, vocabulary - 1)));
      for (int64_t i = 0; i < features; ++i)
        exact[token.back() * features + i] += static_cast<double>(dy[row * features + i]);
    }
    const Buffer found = everywhere([&](const Table& table, int threads) {
      Buffer gradient(DType::f32, vocabulary * features);
      EmbeddingArgs a = {};
      a.rows = tokens, a.rows_per_sample = rows_per_sample, a.features = features, a.vocabulary = vocabulary;
      a.tokens = token.data(), a.y = {dy.data(), DType::f32}, a.table_gradient = floats_of(gradient);
      run(table.embedding_gradient, a, threads, embedding_gradient_workspace(a, threads));
      return std::vector<Buffer>{gradient};
    })[0];
    expect_within(bound, found.floats(), exact, tokens);
  });
}

// A few rows of logits, their losses and the gradients of the losses.
struct Logits {
  static constexpr int64_t rows = 4;
  int64_t vocabulary;
  std::vector<float> values;
  std::vector<int32_t> targets;
  std::vector<double> loss, gradient;
  Logits(int64_t tokens, uint64_t seed) : vocabulary(tokens) {
    Random random(seed);
    values = normals(random, rows * vocabulary, 2);
    for (int64_t row = 0; row < rows; ++row) {
      const float* const x = values.data() + row * vocabulary;
      targets.push_back(static_cast<int32_t>(random.between(0, vocabulary - 1)));
      double sum = 0;
      for (int64_t j = 0; j < vocabulary; ++j) sum += std::exp(static_cast<double>(x[j]));
      loss.push_back(std::log(sum) - static_cast<double>(x[targets.back()]));
      for (int64_t j = 0; j < vocabulary; ++j)
        gradient.push_back(std::exp(static_cast<double>(x[j])) / sum - (j == targets.back() ? 1 : 0));
    }
  }
};

TEST(LongSums, OfLosses) {
  for_terms(of_loss, [](int64_t vocabulary, double bound) {
    Logits logits(vocabulary, 6);
    const std::vector<Buffer> found = everywhere([&](const Table& table, int threads) {
      Buffer loss(DType::f32, Logits::rows), gradient(DType::f32, logits.values);
      CrossEntropyArgs a = {};
      a.rows = Logits::rows, a.vocabulary = a.stride = vocabulary, a.targets = logits.targets.data(),
      a.logits = gradient.matrix();
      a.gradient = true, a.token_loss = floats_of(loss);
      run(table.cross_entropy, a, threads, cross_entropy_workspace(a, threads));
      return std::vector<Buffer>{loss, gradient};
    });
    EXPECT_LE(relative_error(found[0].floats(), logits.loss), bound);
    const bool is_first = vocabulary == of_loss_gradient[0].terms;
    EXPECT_LE(relative_error(found[1].floats(), logits.gradient),
              factor * of_loss_gradient[is_first ? 0 : 1].error);
  });
}

// Gradients of the head from these losses, over as many features as there are tokens.
TEST(LongSums, OfTheHeadsInputGradients) {
  for_terms(of_head_gradient, [](int64_t vocabulary, double bound) {
    const Logits logits(vocabulary, 7);
    const std::vector<float> dy(logits.gradient.begin(), logits.gradient.end());
    Random random(8);
    const std::vector<float> weight = normals(random, vocabulary * inputs, 0.02);
    std::vector<double> exact(Logits::rows * inputs);
    std::vector<float> single(Logits::rows * inputs);
    for (int64_t row = 0; row < Logits::rows; ++row)
      for (int64_t j = 0; j < vocabulary; ++j)
        for (int64_t i = 0; i < inputs; ++i) {
          const float a = dy[row * vocabulary + j], b = weight[j * inputs + i];
          const auto at = static_cast<size_t>(row * inputs + i);
          exact[at] += static_cast<double>(a) * static_cast<double>(b);
          single[at] = std::fmaf(a, b, single[at]);
        }
    EXPECT_GT(relative_error(single, exact), bound);
    // Few rows, which are added up in another memory order, and more rows.
    for (const int64_t rows : {Logits::rows, 2 * Logits::rows}) {
      std::vector<float> dys = dy;
      if (rows > Logits::rows) dys.insert(dys.end(), dy.begin(), dy.end());
      const Buffer found = everywhere([&](const Table& table, int threads) {
        Buffer dx(DType::f32, rows * inputs);
        LinearArgs a = {};
        a.rows = a.rows_per_sample = rows, a.inputs = inputs, a.parts = 1, a.x = dx.matrix(),
        a.y = {dys.data(), DType::f32}, a.y_stride = vocabulary;
        a.part[0].weight = weight.data(), a.part[0].features = vocabulary;
        run(table.linear_input_gradient, a, threads, linear_input_gradient_workspace(a, threads));
        return std::vector<Buffer>{dx};
      })[0];
      std::vector<double> expected = exact;
      if (rows > Logits::rows) expected.insert(expected.end(), exact.begin(), exact.end());
      EXPECT_LE(relative_error(found.floats(), expected), bound);
    }
  });
}

}  // namespace
}  // namespace stw::kernels::test::long_sums_test
