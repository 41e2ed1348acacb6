// Operations fused into products (LinearArgs: GELU, its derivative and the gradient of the bias before it)
// and products that share a call (`further`) have the bits of separate calls.
#include "tests/kernels/product/linear_problem.h"

namespace stw::kernels::test::fused_product_test {
namespace {

using Addend = Problem::Addend;

// GPU kernels that end in GELU may write the gradient over their input.
struct Way {
  ProductKernels products;
  bool in_place;
};
bool is_of_cpu(const Table* table) {
  for (Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512, Isa::neon})
    if (cpu_table(isa) == table) return true;
  return false;
}
std::vector<Way> ways() {
  std::vector<Way> list{{ProductKernels::chain, false}};
  for (const ProductKernels products : tensor_kernels())
    list.push_back({products, false}), list.push_back({products, true});
  return list;
}

Buffer gelu_of(const Table& table, const Buffer& x, int threads) {
  Buffer from = x, y = x;
  run(table.gelu, {x.count(), Activation::gelu_tanh, from.const_matrix(), {}, y.matrix(), true}, threads, 0);
  return y;
}

// Tiles of either size inside the output, and over its edges; rows and columns that no tile divides.
std::vector<Problem> problems() {
  Random random(31);
  std::vector<Problem> list;
  const Shape shapes[] = {{2, 128, 72, {256}}, {3, 64, 24, {72}},   {2, 40, 128, {136}},
                          {1, 192, 264, {24}}, {5, 64, 256, {128}}, {2, 33, 40, {48}}};
  for (size_t i = 0; i < std::size(shapes); ++i) {
    const DType half = i % 2 ? f16 : bf16;
    list.push_back(
        tensor_problem(random, shapes[i], {half, half, half, half}, i % 4 < 2, i != 2, i % 3 == 0));
  }
  return list;
}

TEST(FusedProduct, GeluHasTheBitsOfTwoCalls) {
  for (Problem& problem : problems())
    for (const auto& [products, in_place] : ways())
      for (const NamedTable& t : tables()) {
        if (in_place) continue;
        problem.products = products;
        SCOPED_TRACE(std::string(t.name) + ", " + problem.describe());
        const Buffer y = problem.forward(*t.table, 2), expected = gelu_of(*t.table, y, 2);
        for (bool keeps : {true, false}) {
          Buffer kept(problem.types.output, y.count()), activated(problem.types.output, y.count());
          LinearArgs a = problem.args(problem.x.matrix(), kept.matrix());
          if (!keeps) a.y.data = nullptr;
          a.activated = activated.matrix();
          run(t.table->linear, a, 2, linear_workspace(a, 2));
          EXPECT_TRUE(same_bits(activated, expected));
          if (keeps) { EXPECT_TRUE(same_bits(kept, y)); }
        }
      }
}

TEST(FusedProduct, SlopeAndBiasHaveTheBitsOfThreeCalls) {
  Random random(32);
  for (Problem& problem : problems()) {
    const Buffer before = Buffer::normal(problem.types.output, random, problem.rows * problem.shape.inputs);
    const Buffer start = Buffer::normal(f32, random, problem.shape.inputs);
    for (const auto& [products, in_place] : ways())
      for (const NamedTable& t : tables()) {
        if (in_place &&
            (is_of_cpu(t.table) || !ends_in_gelu(problem.shape.inputs, problem.shape.features[0])))
          continue;
        problem.products = products;
        SCOPED_TRACE(std::string(t.name) + ", " + problem.describe() + (in_place ? " in place" : ""));
        Buffer expected = problem.input_gradient(*t.table, 2, Addend::none), h = before, sums = start;
        run(t.table->gelu_gradient,
            {h.count(), Activation::gelu_tanh, h.const_matrix(), expected.const_matrix(), expected.matrix(),
             true},
            2, 0);
        for (bool has_bias : {true, false}) {
          Buffer dx = in_place ? before : Buffer(problem.types.output, before.count()), bias = start;
          LinearArgs a = problem.args(dx.matrix(), problem.dy.matrix());
          a.before_gelu = in_place ? dx.const_matrix() : h.const_matrix();
          a.input_bias_gradient = has_bias ? static_cast<float*>(bias.data()) : nullptr;
          run(t.table->linear_input_gradient, a, 2, linear_input_gradient_workspace(a, 2));
          EXPECT_TRUE(same_bits(dx, expected));
          if (has_bias) {
            a.input_bias_gradient = static_cast<float*>(sums.data());
            LinearArgs alone = input_bias_args(a);
            run(t.table->linear_bias_gradient, alone, 2, linear_bias_gradient_workspace(alone, 2));
          }
          EXPECT_TRUE(same_bits(bias, has_bias ? sums : start));
          if (!has_bias) continue;
          // One call computes the sums of tiles, another call adds them up.
          const int64_t in_sample = (problem.shape.rows_per_sample + token_tile - 1) / token_tile;
          Buffer tiles(f32, problem.rows / problem.shape.rows_per_sample * in_sample * problem.shape.inputs),
              again = in_place ? before : dx, folded = start;
          a.x = again.matrix();
          if (in_place) a.before_gelu = again.const_matrix();
          a.input_bias_gradient = nullptr, a.input_bias_sums = static_cast<float*>(tiles.data());
          run(t.table->linear_input_gradient, a, 2, linear_input_gradient_workspace(a, 2));
          EXPECT_TRUE(same_bits(again, expected));
          LinearArgs fold{};
          fold.rows = a.rows, fold.rows_per_sample = a.rows_per_sample, fold.parts = 1,
          fold.accumulate = a.accumulate;
          fold.part[0].features = a.inputs, fold.part[0].bias_gradient = folded.data(),
          fold.tile_sums = a.input_bias_sums;
          run(t.table->linear_bias_gradient, fold, 2, linear_bias_gradient_workspace(fold, 2));
          EXPECT_TRUE(same_bits(folded, sums));
        }
      }
  }
}

// Two and three ops, of the same and of different kinds: as many as one launch can take, and more.
TEST(FusedProduct, FurtherOpsHaveTheBitsOfSeparateCalls) {
  Random random(33);
  for (int round = 0; round < 6; ++round) {
    const DType half = round % 2 ? f16 : bf16;
    const auto problem = [&](int64_t inputs, std::vector<int64_t> features, bool transposed) {
      Problem p = tensor_problem(random, {3, 48, inputs, std::move(features)}, {half, half, half, half},
                                 transposed, true, round % 3 == 0);
      if (round >= 4) p.round_gradients(7);
      return p;
    };
    std::vector<Problem> list;
    list.push_back(problem(40, {48}, true));
    list.push_back(problem(128, {72, 24}, round != 1));
    if (round % 2)
      list.push_back(
          problem(24, round == 3 ? std::vector<int64_t>{8, 16, 30} : std::vector<int64_t>{200}, true));
    for (const auto& [products, in_place] : ways())
      for (const NamedTable& t : tables()) {
        if (in_place) continue;
        std::vector<Problem::Gradients> expected, found;
        std::vector<LinearArgs> args;
        for (Problem& p : list) {
          p.products = products;
          expected.push_back(p.parameter_gradients(*t.table, 2));
          found.push_back({p.weight_gradient, p.bias_gradient});
          args.push_back(p.args(p.x.matrix(), p.dy.matrix()));
        }
        for (size_t i = 0; i < args.size(); ++i) {
          for (size_t part = 0; part < list[i].weight.size(); ++part)
            args[i].part[part].weight_gradient = found[i].weight[part].data(),
            args[i].part[part].bias_gradient = found[i].bias[part].data();
          args[i].further = i + 1 < args.size() ? &args[i + 1] : nullptr;
        }
        uint64_t bytes = 0;
        for (const LinearArgs& a : args) bytes = std::max(bytes, linear_weight_gradient_workspace(a, 2));
        run(t.table->linear_weight_gradient, args[0], 2, bytes);
        run(t.table->linear_bias_gradient, args[0], 2, linear_bias_gradient_workspace(args[0], 2));
        for (size_t i = 0; i < args.size(); ++i)
          EXPECT_TRUE(same(found[i], expected[i])) << t.name << ", round " << round << ", op " << i;
      }
  }
}

}  // namespace
}  // namespace stw::kernels::test::fused_product_test
