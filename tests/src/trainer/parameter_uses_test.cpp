// Parameters used by several ops, in graphs that no family builds: gradients against a copy of the parameter
// for each use, and bits at every split and plan. ALBERT, whose blocks share all parameters, is in
// encoder_test.cpp and classifier_test.cpp.
#include <cmath>
#include <functional>

#include "tests/planner/shared_graphs.h"
#include "tests/src/trainer/running_graph.h"

namespace stw::parameter_uses_test {
namespace {

using namespace testing_tools;

constexpr int64_t batch_size = Running::batch_size;

std::vector<SharedStack> stacks() {
  std::vector<SharedStack> list{{.blocks = 3},
                                {.blocks = 12},
                                {.blocks = 1, .products = 3},
                                {.blocks = 3, .products = 2, .apart = 1},
                                {.blocks = 35}};
  SharedStack adapted{.blocks = 3, .products = 2};
  adapted.adapters.rank = 4, adapted.adapters.alpha = 8, adapted.adapters.targets = {all_targets};
  list.push_back(adapted);
  return list;
}

// In a graph with a copy of the parameter for each use, each copy has its own gradient. The fp32 sum of these
// in op order is the gradient of the shared parameter. The step's norm is the norm of that sum.
TEST(ParameterUses, TheGradientIsTheSumOverAllUses) {
  for (const SharedStack& s : stacks()) {
    SharedStack untied = s;
    untied.shares = false;
    Running shared(shared_graph(s), decisions_of(shared_graph(s), 2, ~0u)),
        apart(shared_graph(untied), decisions_of(shared_graph(untied), 2, ~0u));
    EXPECT_EQ(shared.forward_and_backward(0), apart.forward_and_backward(0));
    shared.update();
    std::map<std::string, std::vector<float>> sums;
    std::map<std::string, int> uses;
    const std::vector<std::string> names = shared.trained();
    for (const std::string& name : apart.trained()) {  // in op order
      // A block that shares nothing has its own names in both graphs.
      const std::string of = std::count(names.begin(), names.end(), name) ? name : shared_name(name);
      for (const std::vector<float>& values : apart.gradients(name)) {
        std::vector<float>& sum = sums[of];
        if (uses[of]++ == 0) sum = values;
        else
          for (size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
      }
    }
    ASSERT_EQ(sums.size(), names.size());
    double squares = 0;
    int most = 0;
    for (const auto& [name, sum] : sums) {
      const auto gradients = shared.gradients(name);
      EXPECT_EQ(static_cast<int>(gradients.size()), uses[name]) << name;
      most = std::max(most, uses[name]);
      double largest = 0;
      for (const float x : sum)
        squares += static_cast<double>(x) * static_cast<double>(x),
            largest = std::max(largest, std::fabs(static_cast<double>(x)));
      EXPECT_GT(largest, 0) << name;
      if (uses[name] == 2) continue;  // two gradients are summed in the norm and the update
      EXPECT_EQ(std::memcmp(gradients[0].data(), sum.data(), sum.size() * sizeof(float)), 0) << name;
    }
    EXPECT_GE(most, 3);
    const double norm = std::sqrt(squares) / static_cast<double>(shared.state().target_count);
    EXPECT_NEAR(shared.state().grad_norm, norm, 1e-6 * norm);
    EXPECT_NEAR(shared.state().coefficient * static_cast<double>(shared.state().target_count),
                std::min(1.0, 1 / norm), 1e-5);
  }
}

// The derivative of the loss along the gradient of a shared matrix is the gradient's length.
TEST(ParameterUses, TheGradientIsTheDerivativeOfTheLoss) {
  const Graph graph = shared_graph({.blocks = 3, .products = 2});
  Running run(graph, decisions_of(graph, 5, ~0u));
  run.forward_and_backward(0);
  run.update();
  const std::vector<float> gradient = run.gradients("matrix")[0];
  double length = 0;
  for (const float g : gradient) length += static_cast<double>(g) * static_cast<double>(g);
  length = std::sqrt(length);
  const auto loss_at = [&](double distance) {
    Running moved(graph, decisions_of(graph, 5, ~0u));
    float* values = moved.values<float>("matrix");
    for (size_t i = 0; i < gradient.size(); ++i)
      values[i] += static_cast<float>(distance * static_cast<double>(gradient[i]) / length);
    return moved.forward_and_backward(0);
  };
  constexpr double step = 1e-2;
  EXPECT_NEAR((loss_at(step) - loss_at(-step)) / (2 * step), length, 2e-3 * length);
}

struct Way {
  const char* name;
  Optimizer optimizer;
  Precision precision = Precision::fp32;
  int bits = 32;
  Gradients gradients = Gradients::fp32;
  Quantize quantize = Quantize::none;
};

// The bits are the same for every micro-batch, recompute choice and offload.
TEST(ParameterUses, TrainsTheSameBitsInEveryPlan) {
  SharedStack adapted{.blocks = 3, .products = 2};
  adapted.adapters.rank = 4, adapted.adapters.alpha = 8, adapted.adapters.targets = {all_targets},
  adapted.adapters.dropout = 0.1;
  for (const SharedStack& s : {SharedStack{.blocks = 4, .products = 2, .apart = 2, .width = 64},
                               SharedStack{.blocks = 1, .products = 3}, adapted})
    for (const Way& way : {Way{"adamw", Optimizer::adamw},
                           {"adamw in 8 bits", Optimizer::adamw, Precision::bf16, 8},
                           {"gradients in bf16", Optimizer::sgd, Precision::bf16, 32, Gradients::bf16},
                           {"lion in 8 bits", Optimizer::lion, Precision::bf16, 8},
                           {"muon", Optimizer::muon},
                           {"adafactor", Optimizer::adafactor},
                           {"nf4", Optimizer::adamw, Precision::bf16, 32, Gradients::fp32, Quantize::nf4}}) {
      if (way.quantize != Quantize::none && !s.adapters.any()) continue;
      Numerics n;
      n.optimizer = way.optimizer, n.precision = way.precision, n.state_bits = way.bits,
      n.gradients = way.gradients, n.quantize = way.quantize;
      const Graph graph = shared_graph(s, n);
      const auto train = [&](const Graph& g, const Decisions& d, double max_norm) {
        Running run(g, d);
        Trained trained;
        for (uint64_t step = 0; step < 2; ++step) {
          trained.figures.push_back(run.forward_and_backward(step, max_norm));
          run.update();
          trained.figures.push_back(run.state().grad_norm);
          EXPECT_EQ(run.state().skip, 0u);
        }
        trained.state = run.bytes();
        return trained;
      };
      const Trained whole = train(graph, decisions_of(graph, batch_size, ~0u), 1);
      EXPECT_GT(whole.figures[1], 0);
      for (const int64_t micro_batch : {1, 2, 3})
        expect_same(
            train(graph, decisions_of(graph, micro_batch, micro_batch == 2 ? 5u : 0u, micro_batch), 1), whole,
            way.name);
      for (const bool overlap : {false, true}) {
        Decisions d = decisions_of(graph, 2, 0);
        d.offload.parts = {graph.blocks() + 1, way.precision == Precision::bf16 ? graph.blocks() + 1 : 0,
                           graph.blocks(), graph.blocks(), graph.blocks()};
        d.offload.overlap = overlap;
        d.offload.slice = 256;
        expect_same(train(graph, d, 1), whole, way.name);
      }
      if (way.gradients == Gradients::bf16) continue;
      const Trained unclipped = train(graph, decisions_of(graph, 2, 0), 0);
      n.fused_update = true;
      const Graph fused = shared_graph(s, n);
      expect_same(train(fused, decisions_of(fused, batch_size, 0), 0), unclipped, way.name);
    }
}

// Two uses in parallel have equal gradients. In 16 bits each is rounded with random numbers of its own, so
// that the errors of many uses do not add up.
TEST(ParameterUses, RoundEachGradientByItsOwnRandomNumbers) {
  constexpr int64_t width = 32;
  Numerics n;
  n.precision = Precision::bf16, n.gradients = Gradients::bf16;
  GraphBuilder b("side by side", 20, 24, compute_format(n.precision));
  const auto matrix = [&](const char* name, int64_t features, int64_t inputs) {
    return LinearWeights{b.parameter(name, {features, inputs}, Initializer::normal, 0.02f)};
  };
  b.begin(SegmentKind::embedding, -1, -1);
  int x = b.embedding(matrix("table", 24, width).weight, -1, "embedding");
  b.end(x);
  b.begin(SegmentKind::block, 0, x);
  const int y = b.linear(x, {matrix("matrix", width, width), matrix("matrix", width, width)}, false, "twice");
  x = b.add(x,
            b.linear(b.activation(y, Activation::gelu_tanh, "gelu"), {matrix("down", width, 2 * width)},
                     false, "down"),
            "residual");
  b.end(x);
  b.begin(SegmentKind::head, -1, x);
  b.cross_entropy(b.linear(x, {matrix("head", 24, width)}, false, "logits"));
  const Graph graph = completed(*b.finish(), n);
  Running run(graph, decisions_of(graph, 5, ~0u));
  auto* const down = run.values<uint16_t>("down");
  for (int64_t row = 0; row < width; ++row)
    std::copy_n(down + 2 * row * width, width, down + (2 * row + 1) * width);
  run.forward_and_backward(0);
  const auto gradients = run.gradients<uint16_t>("matrix");
  ASSERT_EQ(gradients.size(), 2u);
  int differ = 0, far = 0;
  for (size_t i = 0; i < gradients[0].size(); ++i) {
    differ += gradients[0][i] != gradients[1][i];
    const float first = std::bit_cast<float>(uint32_t{gradients[0][i]} << 16),
                second = std::bit_cast<float>(uint32_t{gradients[1][i]} << 16);
    far += std::fabs(first - second) > 0.1f * std::fabs(first) + 1e-2f;
  }
  EXPECT_GT(differ, static_cast<int>(gradients[0].size() / 4));
  EXPECT_EQ(far, 0);
}

// A non-finite gradient in one of many uses skips the step.
TEST(ParameterUses, ANumberThatIsNotFiniteInOneUseSkipsTheStep) {
  const Graph graph = shared_graph({.blocks = 5});
  for (const int use : {0, 2, 4}) {
    Running run(graph, decisions_of(graph, 5, ~0u));
    run.forward_and_backward(0);
    int seen = 0;
    for (const ParameterGradient& g : graph.gradients)
      if (graph.at(g.parameter).name == "bias" && seen++ == use) run.poison(g.gradient);
    const State before = run.bytes();
    run.update();
    EXPECT_EQ(run.state().skip, static_cast<uint32_t>(kernels::skip_not_finite)) << use;
    EXPECT_EQ(differences(run.bytes(), before), "");
  }
}

}  // namespace
}  // namespace stw::parameter_uses_test
