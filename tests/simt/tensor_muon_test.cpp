// Muon on the emulated tensor cores, whose sums are known: every number of an update, with tiles of either
// size, compared with the formula of tensor_muon.cu, one element after the other.
#include "tests/kernels/update/updates.h"
#include "tests/simt/fragments.h"

namespace stw::kernels::test {
namespace {

// A sum in steps of 16 along k, the last one padded with zeros. Chains of chain_terms begin at zero, and
// their results are added up.
template <class A, class B>
float sum_in_steps(int64_t depth, const A& a, const B& b) {
  float total = 0, chain = 0;
  for (int64_t begin = 0; begin < depth; begin += 16) {
    float x[16] = {}, y[16] = {};
    for (int64_t k = begin; k < depth && k < begin + 16; ++k) x[k - begin] = a(k), y[k - begin] = b(k);
    chain = simt::add_products(chain, x, y);
    if ((begin + 16) % chain_terms == 0) total += chain, chain = 0;
  }
  return total + chain;
}

float half_of(float x) {  // Ties upward in magnitude.
  uint16_t half;
  int16_t remainder;
  split_master(x, half, remainder);
  return float_of_bf16(half);
}

// X of five iterations from u, row after row.
std::vector<float> iterated(std::vector<float> x, int64_t rows, int64_t columns, float scale) {
  const bool wide = rows <= columns;
  const int64_t s = wide ? rows : columns, l = wide ? columns : rows;
  std::vector<float> h = x, gram(static_cast<size_t>(s * s)), polynomial = gram;
  // i runs along the shorter side.
  const auto place = [&](int64_t i, int64_t k) {
    return static_cast<size_t>(wide ? i * columns + k : k * columns + i);
  };
  const auto square = [&](int64_t i, int64_t j) { return static_cast<size_t>(i * s + j); };
  for (int iteration = 0; iteration < 5; ++iteration) {
    const float by = iteration == 0 ? scale : 1.0f;
    for (size_t i = 0; i < x.size(); ++i) h[i] = half_of(x[i]);
    for (int64_t i = 0; i < s; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        const float sum = sum_in_steps(
            l, [&](int64_t k) { return h[place(i, k)]; }, [&](int64_t k) { return h[place(j, k)]; });
        gram[square(i, j)] = gram[square(j, i)] = float_of_bf16(bf16_of(sum * by * by));
      }
    for (int64_t i = 0; i < s; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        const float sum = sum_in_steps(
            s, [&](int64_t k) { return gram[square(i, k)]; }, [&](int64_t k) { return gram[square(j, k)]; });
        polynomial[square(i, j)] = polynomial[square(j, i)] =
            float_of_bf16(bf16_of(std::fma(2.0315f, sum, -4.7750f * gram[square(i, j)])));
      }
    for (int64_t i = 0; i < s; ++i)
      for (int64_t k = 0; k < l; ++k) {
        const float sum = sum_in_steps(
            s, [&](int64_t j) { return polynomial[square(i, j)]; },
            [&](int64_t j) { return h[place(j, k)]; });
        x[place(i, k)] = std::fma(3.4445f, x[place(i, k)], sum) * by;
      }
  }
  return x;
}

TEST(EmulatedMuon, HasTheBitsOfTheFormula) {
  Random random(12);
  for (const Extents& shape : {Extents{1, 1},
                               {1, 7},
                               {7, 1},
                               {17, 5},
                               {5, 17},
                               {64, 64},
                               {33, 129},
                               {129, 33},
                               {24, 80},
                               {80, 24},
                               {259, 262},
                               {262, 257},
                               {20, 600}}) {
    Parameter s(random, shape);
    const auto n = static_cast<size_t>(s.count);
    StepState state = state_of();
    state.learning_rate = -1 / (0.2 * std::sqrt(static_cast<double>(std::max(shape.rows, shape.columns))));
    const float momentum = static_cast<float>(state.momentum), rest = static_cast<float>(1 - state.momentum),
                coefficient = static_cast<float>(state.coefficient);
    std::vector<float> u(n);
    for (size_t i = 0; i < n; ++i) {
      const float g = rest * (coefficient * s.gradient[i]);
      u[i] = std::fma(momentum, std::fma(momentum, s.first[i], g), g);
    }
    double squares = 0;
    run(cpu_table(Isa::scalar)->square_sum, SquareSumArgs{s.count, {u.data(), nullptr}, &squares}, 1,
        (n + 4095) / 4096 * sizeof(float));
    const std::vector<float> expected =
        iterated(u, shape.rows, shape.columns, static_cast<float>(1 / std::sqrt(squares)));
    const float step = static_cast<float>(
        -state.learning_rate * 0.2 * std::sqrt(static_cast<double>(std::max(shape.rows, shape.columns))));
    std::fill(s.p.begin(), s.p.end(), 0.0f);
    UpdateArgs args = s.args(state, 0, DType::f16);
    args.products = ProductKernels::tensor;
    update(muon_rule, *cuda_table(), args);
    size_t wrong = 0;
    for (size_t i = 0; i < n; ++i) wrong += s.p[i] != step * expected[i];
    EXPECT_EQ(wrong, 0u) << shape.rows << "x" << shape.columns;
  }
}

}  // namespace
}  // namespace stw::kernels::test
