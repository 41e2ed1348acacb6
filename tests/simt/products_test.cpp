// The linear kernels, tested for properties that only the emulated machine can show: the exact sum of a
// tensor-core step, any order of threads, and the number of collectives.
#include <cstdio>

#include "tests/kernels/product/linear_problem.h"
#include "tests/simt/fragments.h"
#include "tests/simt/orders.h"
#include "tests/simt/runtime.h"

namespace stw::kernels::test {
namespace {

using Addend = Problem::Addend;

// A sum in steps of 16 on tensor cores. The last step of a part or a sample is padded with zeros. Chains of
// `terms` terms begin at zero, and their results are added up. If `terms` is 0, one chain with all terms
// begins at the start value.
template <int64_t terms>
struct Steps {
  float value, chain = 0;
  int count = 0;
  int64_t added = 0;  // Terms of the chain.
  float a[16] = {}, b[16] = {};
  void add(float x, float y) {
    a[count] = x, b[count] = y;
    if (++count == 16) end_step();
  }
  void end() {
    if (count > 0) end_step();
    end_chain();
  }

 private:
  void end_step() {
    for (; count < 16; ++count) a[count] = b[count] = 0;
    float& sum = terms > 0 ? chain : value;
    sum = simt::add_products(sum, a, b);
    count = 0;
    if ((added += 16) == terms) end_chain();
  }
  void end_chain() {
    if (terms > 0 && added > 0) value += chain;
    chain = 0, added = 0;
  }
};
using OneChain = Steps<0>;
using Chains = Steps<chain_terms>;
using LongChains = Steps<8192>;  // narrow_chain_terms.

// A kernel without collectives uses no tensor core.
template <class Call>
bool uses_tensor_cores(const Call& call) {
  const uint64_t before = simt::counters.collectives;
  call();
  return simt::counters.collectives > before;
}

// Expects the same numbers. Only a zero may have the other sign.
void expect_numbers(const Buffer& found, const Buffer& expected, const char* what) {
  EXPECT_EQ(found.floats(), expected.floats()) << what;
}
void expect_numbers(const Problem::Gradients& found, const Problem::Gradients& expected) {
  for (size_t part = 0; part < found.weight.size(); ++part) {
    expect_numbers(found.weight[part], expected.weight[part], "dw");
    expect_numbers(found.bias[part], expected.bias[part], "db");
  }
}
// Calls compute(tag) with the kind of sum by which tensor cores add k terms of an output of type `output`.
template <class Compute>
Buffer in_steps_of(DType output, int64_t k, const Compute& compute) {
  if (output == f32) return compute(Chains{0});
  if (k > 8192) return compute(LongChains{0});
  return compute(OneChain{0});
}
// Expects the bits of steps, or those of chains of multiply-adds if tensor cores do not support the shape.
// Returns how many of the three products are sums of steps.
int expect_naive_numbers(Problem& problem) {
  SCOPED_TRACE(problem.describe());
  const Table& table = *cuda_table();
  Buffer y, dx, added;
  Problem::Gradients gradients;
  const auto naive_forward = [&] {
    return in_steps_of(problem.types.output, problem.shape.inputs,
                       [&](auto sum) { return problem.naive_forward<decltype(sum)>(); });
  };
  const auto naive_input_gradient = [&](bool with_addend) {
    return in_steps_of(problem.types.output, problem.outputs,
                       [&](auto sum) { return problem.naive_input_gradient<decltype(sum)>(with_addend); });
  };
  const bool forward = uses_tensor_cores([&] { y = problem.forward(table, 1); });
  expect_numbers(y, forward ? naive_forward() : problem.naive_forward(), "y");
  const bool backward = uses_tensor_cores([&] { dx = problem.input_gradient(table, 1, Addend::none); });
  added = problem.input_gradient(table, 1, Addend::other);
  expect_numbers(dx, backward ? naive_input_gradient(false) : problem.naive_input_gradient(false), "dx");
  expect_numbers(added, backward ? naive_input_gradient(true) : problem.naive_input_gradient(true),
                 "dx + addend");
  const bool weights = uses_tensor_cores([&] { gradients = problem.parameter_gradients(table, 1); });
  expect_numbers(gradients,
                 weights ? problem.naive_parameter_gradients<Chains>() : problem.naive_parameter_gradients());
  return forward + backward + weights;
}
int expect_naive_numbers_of_both(Problem& problem) {
  int in_steps = 0;
  for (const ProductKernels products : {ProductKernels::warpgroup, ProductKernels::tensor}) {
    problem.products = products;
    in_steps += expect_naive_numbers(problem);
  }
  return in_steps;
}

// As measured on devices: small products that each vanish in the sum do not vanish together; bits far below
// the sum are cut off, toward zero; and the order of products does not matter.
TEST(EmulatedTensorCores, AddAStepAtOnce) {
  const auto sum_of = [](float sum, std::vector<float> products) {
    const std::vector<float> ones(16, 1.0f);
    products.resize(16);
    return simt::add_products(sum, products.data(), ones.data());
  };
  EXPECT_EQ(sum_of(1, std::vector<float>(16, 0x1p-24f)), 1 + 0x1p-20f);
  EXPECT_EQ(sum_of(1, std::vector<float>(16, 0x1p-27f)), 1.0f);
  EXPECT_EQ(sum_of(1, {0x1.8p-24f}), 1.0f);
  EXPECT_EQ(sum_of(-1, {-0x1.8p-24f}), -1.0f);
  EXPECT_EQ(sum_of(0x1p30f, {0x1p-3f, -0x1p30f}), 0.0f);
  EXPECT_EQ(sum_of(0, {0x1p-130f, 0x1p-149f}), 0x1p-130f + 0x1p-149f);
  EXPECT_EQ(sum_of(3, {INFINITY}), INFINITY);
  EXPECT_TRUE(std::isnan(sum_of(INFINITY, {-INFINITY})));
  Random random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> products = Buffer::normal(f32, random, 16).floats();
    const float sum = static_cast<float>(round - 100), found = sum_of(sum, products);
    std::reverse(products.begin(), products.end());
    EXPECT_EQ(sum_of(sum, products), found);
  }
}

TEST(EmulatedProducts, HaveTheBitsOfSteps) {
  Random random(5);
  int in_steps = 0;
  for (int round = 0; round < 12; ++round) {
    Problem problem = random_tensor_problem(random, round);
    if (problem.shape.features.size() == 1) problem.add_residual(random);
    in_steps += expect_naive_numbers_of_both(problem);
  }
  EXPECT_GT(in_steps, 24);
  // Tiles of every size, for each of the three products.
  for (const Shape& shape :
       {Shape{2, 35, 48, {640, 200}}, Shape{3, 131, 136, {40, 24}}, Shape{1, 20, 328, {272}},
        Shape{2, 35, 184, {248}}, Shape{1, 67, 384, {96}}, Shape{2, 35, 376, {248}}})
    for (bool transposed : {false, true}) {
      Problem problem = tensor_problem(random, shape, {bf16, bf16, bf16, f32}, transposed, true, transposed);
      if (shape.features.size() == 1) problem.add_residual(random);
      EXPECT_EQ(expect_naive_numbers_of_both(problem), 6);
    }
}

// Tiles inside the output, with a residual and an addend in 16 bits, in fp32, and without either.
TEST(EmulatedProducts, HaveTheBitsOfStepsInWholeTiles) {
  Random random(13);
  for (const DType half : {bf16, f16})
    for (bool transposed : {false, true}) {
      Problem problem =
          tensor_problem(random, {2, 67, 136, {264}}, {half, half, half, transposed ? half : f32}, transposed,
                         transposed, transposed);
      if (transposed || half == f16) problem.add_residual(random);
      EXPECT_EQ(expect_naive_numbers_of_both(problem), 6);
    }
}

// Samples of several chains, whose last one ends within a step, within a slice, or within neither; fp32
// outputs of several chains; a k so long that 16-bit outputs have two chains, with one part and with
// several.
TEST(EmulatedProducts, CutLongSums) {
  Random random(14);
  const auto expect = [](Problem problem) { EXPECT_EQ(expect_naive_numbers_of_both(problem), 6); };
  for (const Shape& shape : {Shape{2, 530, 24, {40}}, Shape{2, 256, 40, {24}}})
    expect(tensor_problem(random, shape, {bf16, bf16, bf16, bf16}, true, true, true));
  expect(tensor_problem(random, {1, 20, 264, {280, 16}}, {bf16, bf16, f32, f32}, false, true, true));
  expect(tensor_problem(random, {1, 4, 8264, {8}}, {f16, f16, f16, f16}, false, true, true));
  expect(tensor_problem(random, {1, 4, 8, {8200, 24}}, {f16, f16, f16, f16}, true, true, true));
  for (int64_t rows_per_sample : {300, 530}) {
    Problem problem = rounded_problem(random, {2, rows_per_sample, 24, {40}}, bf16, false, true);
    const Problem::Gradients expected = problem.naive_parameter_gradients<Chains>();
    for (const ProductKernels products : tensor_kernels()) {
      problem.products = products;
      expect_numbers(problem.parameter_gradients(*cuda_table(), 1), expected);
    }
  }
}

// Gradients over 16,384 tokens are about as close to fp64 as PyTorch's: within 4 times 4e-7 of the largest
// element. One chain of tensor cores is not: its truncations add up.
TEST(EmulatedProducts, LongSumsStayAccurate) {
  constexpr int64_t tokens = 16384, edge = 64;
  constexpr double limit = 4 * 4e-7;
  Random random(15);
  Problem problem =
      tensor_problem(random, {1, tokens, edge, {edge}}, {bf16, bf16, bf16, bf16}, false, false, false);
  const std::vector<float> x = problem.x.floats(), dy = problem.dy.floats();
  std::vector<double> exact(edge * edge);
  std::vector<float> nearest(edge * edge);
  for (size_t token = 0; token < tokens; ++token)
    for (size_t i = 0; i < edge; ++i)
      for (size_t j = 0; j < edge; ++j) {
        const float a = dy[token * edge + i], b = x[token * edge + j];
        exact[i * edge + j] += static_cast<double>(a) * b;
        nearest[i * edge + j] = std::fmaf(a, b, nearest[i * edge + j]);
      }
  std::vector<float> cut_off = nearest;  // A row of one chain.
  for (size_t j = 0; j < edge; ++j) {
    OneChain sum{0};
    for (size_t token = 0; token < tokens; ++token) sum.add(dy[token * edge], x[token * edge + j]);
    sum.end();
    cut_off[j] = sum.value;
  }
  const double error_of_nearest = relative_error(nearest, exact);
  EXPECT_GT(relative_error(cut_off, exact), 4 * limit);
  for (const ProductKernels products : tensor_kernels()) {
    problem.products = products;
    const double error =
        relative_error(problem.parameter_gradients(*cuda_table(), 1).weight[0].floats(), exact);
    EXPECT_LT(error, limit);
    EXPECT_LT(error, error_of_nearest);
    std::printf("%s: error %.2g, of one chain rounded to nearest %.2g, of one chain cut off %.2g\n",
                products == ProductKernels::tensor ? "mma" : "wgmma", error, error_of_nearest,
                relative_error(cut_off, exact));
  }
}

// The error of a chain of narrow_chain_terms, in addition to the rounding of a 16-bit output: at most 2^-14
// of the size of the sum if all terms have one sign, and far less if they do not.
TEST(EmulatedProducts, ChainsOfNarrowOutputsLoseLittle) {
  Random random(16);
  for (const bool one_sign : {true, false}) {
    double worst = 0;
    for (int round = 0; round < 20; ++round) {
      OneChain sum{0};
      double exact = 0, size = 0;
      for (int k = 0; k < 8192; ++k) {
        const float a = float_of_bf16(bf16_of(static_cast<float>(random.normal()))),
                    b = float_of_bf16(bf16_of(static_cast<float>(random.normal())));
        const float product = one_sign ? std::fabs(a) : a;
        sum.add(product, one_sign ? std::fabs(b) : b);
        exact += static_cast<double>(product) * (one_sign ? std::fabs(b) : b);
        size += std::fabs(static_cast<double>(a) * b);
      }
      sum.end();
      worst = std::max(worst, std::fabs(sum.value - exact) / size);
    }
    EXPECT_LT(worst, one_sign ? 0x1p-14 : 0x1p-18);
    std::printf("terms of %s: error %.2g of the sum of sizes\n", one_sign ? "one sign" : "both signs", worst);
  }
}

TEST(EmulatedProducts, UseTensorCoresOnlyOnRequestAndForSupportedShapes) {
  Random random(6);
  const auto uses = [&](Shape shape, DType activation, DType weight, bool asked) {
    Problem problem(random, std::move(shape), {activation, weight, f32, f32}, false, false, false);
    problem.products = asked ? ProductKernels::tensor : ProductKernels::chain;
    return uses_tensor_cores([&] {
      problem.forward(*cuda_table(), 1);
      problem.input_gradient(*cuda_table(), 1, Addend::none);
    });
  };
  EXPECT_TRUE(uses({1, 5, 16, {24}}, bf16, bf16, true));
  EXPECT_FALSE(uses({1, 5, 16, {24}}, bf16, bf16, false));
  EXPECT_FALSE(uses({1, 5, 16, {24}}, bf16, f16, true));
  EXPECT_FALSE(uses({1, 5, 16, {24}}, f32, f32, true));
  EXPECT_FALSE(uses({1, 5, 15, {23}}, bf16, bf16, true));

  Problem odd(random, {1, 5, 16, {23}}, {bf16, bf16, f32, f32}, false, false, false);
  odd.products = ProductKernels::tensor;
  const auto gradients = [&] {
    const bool inputs = uses_tensor_cores([&] { odd.input_gradient(*cuda_table(), 1, Addend::none); });
    return std::pair(inputs, uses_tensor_cores([&] { odd.parameter_gradients(*cuda_table(), 1); }));
  };
  EXPECT_EQ(gradients(), std::pair(false, false)) << "rows of dy that are no multiples of 16 bytes";
  odd.y_stride = 32;
  odd.dy = spread(odd.dy, 23, 32, [](int64_t) { return 0.0f; });
  EXPECT_EQ(gradients(), std::pair(true, true));
}

// The products that go to the vendor's library, and their number.
TEST(EmulatedProducts, AskTheLibraryWhereItFits) {
  Random random(8);
  ProductKernels products = ProductKernels::library;
  const auto asked = [&](Shape shape, Types types, bool exact, bool bias = true) {
    Problem problem(random, std::move(shape), types, false, bias, false);
    problem.products = products;
    problem.exact = exact;
    std::vector<uint64_t> counts;
    const auto count = [&](const auto& call) {
      const uint64_t before = simt::library_products;
      call();
      counts.push_back(simt::library_products - before);
    };
    count([&] { problem.forward(*cuda_table(), 1); });
    count([&] { problem.input_gradient(*cuda_table(), 1, Addend::other); });
    count([&] { problem.parameter_gradients(*cuda_table(), 1); });
    return counts;
  };
  using Counts = std::vector<uint64_t>;
  EXPECT_EQ(asked({3, 5, 16, {24, 8}}, {bf16, bf16, bf16, bf16}, true), (Counts{2, 2, 6}));
  EXPECT_EQ(asked({3, 5, 16, {24, 8}}, {bf16, bf16, bf16, bf16}, false), (Counts{2, 2, 2}));
  EXPECT_EQ(asked({3, 5, 16, {24}}, {f32, f32, f32, f32}, true), (Counts{1, 1, 3}));
  EXPECT_EQ(asked({3, 5, 16, {24}}, {f16, f16, f32, f32}, true, false), (Counts{1, 1, 3}));
  EXPECT_EQ(asked({3, 5, 16, {24}}, {f16, f16, f32, f16}, true), (Counts{0, 0, 3}))
      << "bias and addend of other types";
  EXPECT_EQ(asked({3, 5, 16, {24}}, {bf16, f32, bf16, bf16}, true), (Counts{0, 0, 3}))
      << "weights of another type";
  EXPECT_EQ(asked({3, 5, 15, {24}}, {bf16, bf16, bf16, bf16}, true), (Counts{0, 0, 0}))
      << "rows that are no multiples of 16 bytes";
  products = ProductKernels::library_or_warpgroup;
  EXPECT_EQ(asked({3, 5, 16, {24, 8}}, {bf16, bf16, bf16, bf16}, false), (Counts{2, 2, 2}));
  products = ProductKernels::warpgroup;
  EXPECT_EQ(asked({3, 5, 16, {24, 8}}, {bf16, bf16, bf16, bf16}, false), (Counts{0, 0, 0}));
}

// The depth is new, because a library that has answered once for a shape is not asked again.
TEST(EmulatedProducts, UseOurKernelsIfTheLibraryHasNoAlgorithm) {
  Random random(9);
  Problem problem = tensor_problem(random, {3, 5, 56, {24, 40}}, {bf16, bf16, bf16, bf16}, false, true, true);
  const Buffer y = problem.forward(*cuda_table(), 1),
               dx = problem.input_gradient(*cuda_table(), 1, Addend::other);
  const Problem::Gradients gradients = problem.parameter_gradients(*cuda_table(), 1);
  problem.products = ProductKernels::library;
  const uint64_t before = simt::library_products;
  simt::faults.declines_products = true;
  EXPECT_TRUE(same_bits(problem.forward(*cuda_table(), 1), y));
  EXPECT_TRUE(same_bits(problem.input_gradient(*cuda_table(), 1, Addend::other), dx));
  EXPECT_TRUE(same(problem.parameter_gradients(*cuda_table(), 1), gradients));
  simt::faults.declines_products = false;
  EXPECT_TRUE(same_bits(problem.forward(*cuda_table(), 1), y)) << "the library was asked again";
  EXPECT_EQ(simt::library_products, before);
}

// All orders of threads give the same bits. With a missing barrier, slices would be used too early or too
// late.
TEST(EmulatedProducts, DoNotDependOnTheOrderOfThreads) {
  for (const simt::Options& order : simt::other_orders) {
    const simt::InOrder in_order(order);
    Random random(7);
    for (bool transposed : {false, true}) {
      Problem small =
          tensor_problem(random, {2, 21, 136, {72, 24}}, {f16, f16, f16, f32}, transposed, true, true);
      EXPECT_EQ(expect_naive_numbers_of_both(small), 6);
      small.products = ProductKernels::chain;  // The chains of chain_product.h.
      EXPECT_TRUE(same_bits(small.forward(*cuda_table(), 1), small.naive_forward()));
      EXPECT_TRUE(
          same_bits(small.input_gradient(*cuda_table(), 1, Addend::other), small.naive_input_gradient(true)));
      EXPECT_TRUE(same(small.parameter_gradients(*cuda_table(), 1), small.naive_parameter_gradients()));
    }
    Problem large = tensor_problem(random, {2, 35, 72, {648}}, {bf16, bf16, bf16, f32}, false, true, true);
    EXPECT_EQ(expect_naive_numbers_of_both(large), 6);
    for (int64_t inputs : {184, 376}) {  // Tiles that only weight gradients have.
      Problem gradient =
          tensor_problem(random, {2, 70, inputs, {248}}, {bf16, bf16, bf16, f32}, false, false, true);
      EXPECT_EQ(expect_naive_numbers_of_both(gradient), 6);
    }
  }
}

// Sums of a sample's steps, rounded. Tiles of either size, samples of any number of steps, threads in any
// order.
TEST(EmulatedProducts, RoundTheSumsOfSteps) {
  Random random(10);
  const auto expect = [](Problem problem) {
    SCOPED_TRACE(problem.describe());
    const Problem::Gradients expected = problem.naive_parameter_gradients<Chains>();
    for (const ProductKernels products : tensor_kernels()) {
      problem.products = products;
      expect_numbers(problem.parameter_gradients(*cuda_table(), 1), expected);
    }
  };
  for (const Shape& shape : {Shape{3, 35, 48, {640, 200}}, Shape{2, 70, 136, {264}},
                             Shape{2, 50, 136, {40, 24}}, Shape{4, 16, 64, {72}}, Shape{3, 70, 24, {8}}})
    for (bool transposed : {false, true})
      expect(rounded_problem(random, shape, transposed ? f16 : bf16, transposed, transposed));
  for (const simt::Options& order : simt::other_orders) {
    const simt::InOrder in_order(order);
    expect(rounded_problem(random, {3, 21, 136, {72, 24}}, bf16, false, true));
    Problem chain = rounded_problem(random, {3, 21, 101, {72, 24}}, bf16, true, true);
    EXPECT_TRUE(same(chain.parameter_gradients(*cuda_table(), 1), chain.naive_parameter_gradients()));
  }
}

}  // namespace
}  // namespace stw::kernels::test
