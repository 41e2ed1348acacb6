// Losses, reductions and updates while the emulated machine runs their threads in other orders. No bit may
// change.
#include "tests/kernels/update/update.h"
#include "tests/kernels/update/updates.h"
#include "tests/simt/orders.h"

namespace stw::kernels::test {
namespace {

// result() under every order, compared with that under the first.
template <class Result>
void in_every_order(const Result& result) {
  const std::vector<Buffer> expected = result();
  for (const simt::Options& order : simt::other_orders) {
    const simt::InOrder in_order(order);
    const std::vector<Buffer> found = result();
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(same_bits(found[i], expected[i]))
          << "order " << static_cast<int>(order.order) << ", output " << i;
  }
}

std::vector<int32_t> some_tokens(Random& random, int64_t rows, int64_t vocabulary) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < rows; ++i)
    tokens.push_back(static_cast<int32_t>(random.between(0, 2) == 0 ? 0 : random.between(0, vocabulary - 1)));
  return tokens;
}

TEST(Order, LossAndItsSumStayTheSame) {
  Random random(1);
  for (DType dtype : all_dtypes) {
    const int64_t rows = 40, vocabulary = 301;
    const Buffer logits = Buffer::normal(dtype, random, rows * vocabulary);
    const std::vector<int32_t> targets = some_tokens(random, rows, vocabulary);
    in_every_order([&] {
      StepState state = unscaled_state();
      state.label_smoothing = 0.1, state.z_loss = 1e-3;
      Buffer gradient = logits, loss(DType::f32, rows), sums(DType::f32, sizeof(StepState) / 4);
      CrossEntropyArgs args = {};
      args.rows = rows, args.vocabulary = args.stride = vocabulary, args.targets = targets.data(),
      args.logits = gradient.matrix();
      args.gradient = true, args.token_loss = floats_of(loss), args.state = &state;
      run(cuda_table()->cross_entropy, args, 1, 0);
      run(cuda_table()->loss_sum, LossSumArgs{4, rows / 4, floats_of(loss), targets.data(), &state}, 1, 0);
      std::memcpy(sums.data(), &state, sizeof state);
      return std::vector<Buffer>{gradient, loss, sums};
    });
  }
}

TEST(Order, EmbeddingGradientStaysTheSame) {
  Random random(2);
  for (int64_t vocabulary : {50, 70000}) {
    const int64_t rows = 1300, features = 20;  // Three blocks of the sort.
    Buffer dy = Buffer::normal(DType::bf16, random, rows * features);
    const std::vector<int32_t> tokens = some_tokens(random, rows, vocabulary);
    in_every_order([&] {
      Buffer gradient(DType::f32, vocabulary * features);
      EmbeddingArgs args = {};
      args.rows = args.rows_per_sample = rows, args.features = features, args.vocabulary = vocabulary;
      args.tokens = tokens.data(), args.y = dy.matrix(), args.table_gradient = floats_of(gradient);
      run(cuda_table()->embedding_gradient, args, 1, 0);
      return std::vector<Buffer>{gradient};
    });
  }
}

TEST(Order, SquareSumStaysTheSame) {
  Random random(3);
  const std::vector<float> g = normals(random, 9001);
  in_every_order([&] {
    Buffer sum(DType::f32, 2);
    run(cuda_table()->square_sum, SquareSumArgs{9001, {g.data(), nullptr}, static_cast<double*>(sum.data())},
        1, 0);
    return std::vector<Buffer>{sum};
  });
}

TEST(Order, UpdatesStayTheSame) {
  Random random(4);
  for (const Rule& rule : rules)
    for (const Extents& shape : {Extents{40, 70}, {5000, 0}}) {
      if (!(shape.columns > 0 ? rule.matrix : rule.vector)) continue;
      const Parameter start = Parameter(random, shape).for_rule(rule);
      const StepState state = state_of();
      for (ProductKernels products : {ProductKernels::chain, ProductKernels::tensor}) {
        if (products == ProductKernels::tensor && rule.single != &Table::muon) continue;
        in_every_order([&] {
          Parameter end = start;
          UpdateArgs args = end.args(state, 0.1, DType::bf16);
          args.products = products;
          update(rule, *cuda_table(), args);
          return std::vector<Buffer>{end.bytes()};
        });
      }
    }
}

}  // namespace
}  // namespace stw::kernels::test
