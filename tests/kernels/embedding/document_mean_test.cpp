// Means of documents compared with fp64, and bit by bit where the order of additions is fixed; their
// gradients compared with the definition and with finite differences.
#include <functional>

#include "tests/kernels/everywhere.h"

namespace stw::kernels::test::document_mean_test {
namespace {

// Samples of consecutive documents. The rows after the last document are documents of one row each.
struct Documents {
  int64_t sequence;
  std::vector<int32_t> positions, following;
  std::vector<int64_t> first, count;  // For each row: the first row and the number of rows of its document.
  Documents(int64_t samples, int64_t rows, const std::function<int64_t()>& length) : sequence(rows) {
    for (int64_t sample = 0; sample < samples; ++sample)
      for (int64_t row = 0; row < sequence;) {
        int64_t n = length();
        if (row + n > sequence) n = 1;
        for (int64_t i = 0; i < n; ++i) {
          positions.push_back(static_cast<int32_t>(i)), following.push_back(static_cast<int32_t>(n - i - 1));
          first.push_back(sample * sequence + row), count.push_back(n);
        }
        row += n;
      }
  }
  int64_t rows() const { return static_cast<int64_t>(positions.size()); }
  DocumentMeanArgs args(int64_t features, const Buffer& x, Buffer& y) const {
    return {rows(), features, positions.data(), following.data(), x.const_matrix(), y.matrix()};
  }
};

// The means in fp32 by the definition: chains from the document's first row.
std::vector<float> means_in_order(const Documents& d, int64_t features, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  for (int64_t row = 0; row < d.rows(); ++row) {
    const auto at = static_cast<size_t>(row);
    if (d.positions[at] != 0) continue;
    for (int64_t i = 0; i < features; ++i) {
      float total = 0;
      for (int64_t begin = 0; begin < d.count[at]; begin += chain_terms) {
        float chain = 0;
        for (int64_t k = begin; k < std::min(d.count[at], begin + chain_terms); ++k)
          chain += x[(row + k) * features + i];
        total += chain;
      }
      y[row * features + i] = total / static_cast<float>(d.count[at]);
    }
  }
  return y;
}

TEST(DocumentMean, IsTheMeanOfADocumentsRowsInItsFirstRow) {
  Random random(11);
  const auto up_to = [&](int64_t most) { return [&random, most] { return random.between(1, most); }; };
  struct Case {
    int64_t samples, sequence, features;
    std::function<int64_t()> length;
  };
  const Case cases[] = {{3, 40, 37, up_to(17)},
                        {2, 300, 64, up_to(290)},
                        {1, 70, 1, up_to(1)},
                        {1, 5000, 144, [] { return int64_t{4999}; }},
                        {4, 33, 260, up_to(33)},
                        {1, 2100, 20, [] { return int64_t{256}; }},
                        {1, 600, 16, [] { return int64_t{257}; }}};
  int round = 0;
  for (const Case& c : cases) {
    const Documents documents(c.samples, c.sequence, c.length);
    const int64_t elements = documents.rows() * c.features;
    for (const DType dtype : {DType::f32, dtype_of(++round)}) {
      const Buffer x = Buffer::normal(dtype, random, elements), dy = Buffer::normal(dtype, random, elements);
      // The output's type may differ from the input's.
      const DType other = round % 2 == 0 ? dtype : DType::f32;
      const std::vector<Buffer> out = everywhere([&](const Table& table, int threads) {
        Buffer y(other, elements), dx(other, elements);
        run(table.document_mean, documents.args(c.features, x, y), threads, 0);
        run(table.document_mean_gradient, documents.args(c.features, dy, dx), threads, 0);
        return std::vector<Buffer>{y, dx};
      });
      std::vector<double> y(static_cast<size_t>(elements)), dx(y);
      for (int64_t row = 0; row < documents.rows(); ++row) {
        const int64_t first = documents.first[row];
        const double share = 1.0 / static_cast<double>(documents.count[row]);
        for (int64_t i = 0; i < c.features; ++i) {
          y[first * c.features + i] += share * x.get(row * c.features + i);
          dx[row * c.features + i] = share * dy.get(first * c.features + i);
        }
      }
      EXPECT_LE(relative_error(out[0].floats(), y), tolerance(other));
      EXPECT_LE(relative_error(out[1].floats(), dx), tolerance(other));
      EXPECT_TRUE(same_bits(out[0], Buffer(other, means_in_order(documents, c.features, x.floats()))));
    }
  }
}

// The gradient of sum(weights · y) by differences: y is linear in x, so one step of any length gives it.
TEST(DocumentMean, GradientAgreesWithFiniteDifferences) {
  Random random(12);
  const int64_t features = 3;
  const Documents documents(2, 9, [&] { return random.between(1, 5); });
  const int64_t elements = documents.rows() * features;
  const Buffer x = Buffer::normal(DType::f32, random, elements),
               weights = Buffer::normal(DType::f32, random, elements);
  for (const NamedTable& entry : tables()) {
    const auto value = [&](const Buffer& at) {
      Buffer y(DType::f32, elements);
      run(entry.table->document_mean, documents.args(features, at, y), 1, 0);
      double sum = 0;
      for (int64_t i = 0; i < elements; ++i) sum += weights.get(i) * y.get(i);
      return sum;
    };
    Buffer dx(DType::f32, elements);
    run(entry.table->document_mean_gradient, documents.args(features, weights, dx), 1, 0);
    for (int64_t i = 0; i < elements; ++i) {
      Buffer above = x, below = x;
      above.set(i, x.get(i) + 0.5), below.set(i, x.get(i) - 0.5);
      EXPECT_NEAR(value(above) - value(below), dx.get(i), 1e-5) << entry.name << ", " << i;
    }
  }
}

// A document's mean is the same wherever the document lies and whatever lies around it.
TEST(DocumentMean, ADocumentDoesNotDependOnOthers) {
  Random random(13);
  const int64_t features = 48, length = 700;
  const Buffer x = Buffer::normal(DType::f32, random, length * features);
  const std::vector<float> values = x.floats();
  for (const int64_t before : {1, 63, 300}) {
    int64_t documents_before = before;  // Documents of one row each.
    const Documents alone(1, length, [] { return length; }),
        among(1, before + length, [&] { return documents_before-- > 0 ? 1 : length; });
    std::vector<float> longer(static_cast<size_t>(before * features), NAN);
    longer.insert(longer.end(), values.begin(), values.end());
    const Buffer x_among(DType::f32, longer);
    everywhere([&](const Table& table, int threads) {
      Buffer y(DType::f32, length * features), y_among(DType::f32, (before + length) * features);
      run(table.document_mean, alone.args(features, x, y), threads, 0);
      run(table.document_mean, among.args(features, x_among, y_among), threads, 0);
      std::vector<float> own = y_among.floats();
      own.erase(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(before * features));
      EXPECT_EQ(own, y.floats());
      return std::vector<Buffer>{y};
    });
  }
}

}  // namespace
}  // namespace stw::kernels::test::document_mean_test
