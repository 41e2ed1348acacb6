// Tests the predicted speed of a GPU's kernels and of libraries.
#include "planner/search/pricing.h"

#include <algorithm>
#include <set>

#include "tests/launches.h"
#include "tests/planner/plans.h"
#include "tests/small_configs.h"

namespace stw {
namespace {

using namespace testing_tools;

Request hopper_request(int64_t batch, int64_t sequence) {
  Request r = request(batch, sequence);
  r.device = "h100";
  r.precision = Precision::bf16;
  return r;
}

// The library's instructions are faster on Hopper. Weight gradients that run sample after sample cost the
// traffic of their sums.
TEST(Price, OfTheLibrarysProducts) {
  const auto model = open("gpt2");
  // Samples of the least length that the library takes, with the fewest multiply-adds for each sum.
  Request r = hopper_request(512, least_library_sample);
  const auto tensor = make(*model, r);
  r.kernels = Kernels::cublaslt;
  const auto exact = make(*model, r);
  r.fast = true;
  const auto fast = make(*model, r);
  EXPECT_TRUE(exact->plan.numerics.exact);
  EXPECT_FALSE(fast->plan.numerics.exact);
  EXPECT_LT(fast->plan.step_picoseconds, exact->plan.step_picoseconds);
  // Kernels::tensor also computes GELU and biases in its products.
  EXPECT_LT(static_cast<double>(fast->plan.step_picoseconds),
            0.81 * static_cast<double>(tensor->plan.step_picoseconds));
  EXPECT_TRUE(exact->plan.decisions.tile_rows.empty());
  const auto read = Planned::load(*model, fast->json);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ((*read)->plan.numerics, fast->plan.numerics);

  r.kernels = Kernels::tensor;  // no gain
  EXPECT_TRUE(make(*model, r)->plan.numerics.exact);
  r.device = "cpu";
  r.kernels = {};
  r.precision = Precision::fp32;
  EXPECT_TRUE(make(*model, r)->plan.numerics.exact);
  r.kernels = Kernels::cublaslt;
  const auto refused = Planned::make(*model, r);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("cuBLASLt needs a GPU"), std::string::npos)
      << refused.error().message;
}

// Hopper's own instructions reach more of its tensor cores than mma.sync, in any format of the gradients.
TEST(Price, OfProductsByWarpgroups) {
  const auto model = open("smollm-135m");
  Request r = hopper_request(8, 1024);
  r.state_bits = 32;
  const auto time = [&](Gradients gradients, std::optional<Kernels> kernels) {
    r.gradients = gradients, r.kernels = kernels;
    return static_cast<double>(make(*model, r)->plan.step_picoseconds);
  };
  const double gain = time(Gradients::fp32, {}) - time(Gradients::fp32, Kernels::wgmma);
  EXPECT_GT(gain, 0.1 * time(Gradients::fp32, {}));
  EXPECT_NEAR(time(Gradients::bf16, {}) - time(Gradients::bf16, Kernels::wgmma), gain, 0.05 * gain);
  const auto planned = make(*model, r);
  const auto read = Planned::load(*model, planned->json);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ((*read)->plan.numerics.kernels, Kernels::wgmma);
  const auto refused = [&](const char* device, Precision precision) {
    r.device = device, r.precision = precision, r.gradients = Gradients::fp32;
    const auto made = Planned::make(*model, r);
    return !made && made.error().message.find("compute capability 9.0") != std::string::npos;
  };
  EXPECT_FALSE(refused("h200", Precision::fp16));
  EXPECT_TRUE(refused("h100", Precision::fp32));
  for (const char* device : {"cpu", "a100-80gb", "b200", "rtx5090"})
    EXPECT_TRUE(refused(device, Precision::bf16)) << device;
}

// cuBLASLt with wgmma for the other products. Exact weight gradients, those of the head, and attention use
// wgmma, so that both exact and fast plans are faster than with mma.sync.
TEST(Price, OfTheLibraryAndWarpgroups) {
  const auto model = open("gpt2");
  Request r = hopper_request(512, 1024);
  const auto time = [&](Kernels kernels, bool fast) {
    r.kernels = kernels, r.fast = fast;
    const auto planned = make(*model, r);
    EXPECT_EQ(planned->plan.numerics.exact, !fast);
    const auto read = Planned::load(*model, planned->json);
    EXPECT_TRUE(read && (*read)->plan.numerics == planned->plan.numerics);
    return static_cast<double>(planned->plan.step_picoseconds);
  };
  for (const bool fast : {false, true})
    EXPECT_LT(time(Kernels::cublaslt_wgmma, fast), 0.95 * time(Kernels::cublaslt, fast)) << fast;
  r.kernels = Kernels::cublaslt_wgmma, r.fast = false;
  const auto planned = make(*model, r);
  const Graph& graph = planned->graph;
  for (const auto* ops : {&graph.ops, &graph.gradient_ops})
    for (const Op& op : *ops) {
      const bool of_rows = op.kind == OpKind::linear || op.kind == OpKind::linear_input_gradient,
                 of_weights = op.kind == OpKind::linear_weight_gradient;
      EXPECT_EQ(graph.is_library_product(op), of_rows) << op_row(op.kind).name;
      EXPECT_EQ(graph.is_wgmma_product(op), of_weights) << op_row(op.kind).name;
      EXPECT_EQ(graph.is_wgmma_attention(op),
                op.kind == OpKind::attention || op.kind == OpKind::attention_gradient)
          << op_row(op.kind).name;
    }
  r.device = "a100-80gb";
  const auto refused = Planned::make(*model, r);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("compute capability 9.0"), std::string::npos)
      << refused.error().message;
}

// The speed of an H100 in thousands of tokens a second, computed from counts of instructions, tiles and
// bytes, and from what libraries and attention reach in published runs. None of it was measured. The counts
// treat ops one by one. Fused ops of our own kernels take up to 0.15 µs a token less: each of 12 blocks saves
// the traffic of some 32 KB.
TEST(Price, OfGpt2OnHopperIsAsComputed) {
  const auto model = open("gpt2");
  struct Case {
    Kernels kernels;
    bool fast;
    Attention attention;
    double least, most;
  };
  for (const Case& c : {Case{Kernels::wgmma, false, Attention::own, 430, 525},
                        {Kernels::tensor, false, Attention::own, 340, 450},
                        {Kernels::cublaslt, true, Attention::cudnn, 500, 600},
                        {Kernels::cublaslt_wgmma, true, Attention::cudnn, 500, 600}}) {
    Request r = hopper_request(512, 1024);
    r.kernels = c.kernels, r.fast = c.fast, r.attention = c.attention;
    const double thousands = 512 * 1024 * 1e9 / static_cast<double>(make(*model, r)->plan.step_picoseconds);
    EXPECT_GE(thousands, c.least) << kernels_names[static_cast<size_t>(c.kernels)];
    const double saved = c.fast ? 0 : 0.15e-3;  // seconds for a thousand tokens
    EXPECT_LE(thousands, 1 / (1 / c.most - saved)) << kernels_names[static_cast<size_t>(c.kernels)];
  }
}

// Attention uses wgmma for heads of 64 or 128 numbers; smollm's have 64. With dropout, the gradient for heads
// of 128 numbers uses mma.sync.
TEST(Price, OfAttentionByWarpgroups) {
  const auto peaks = [](const Model& model, Kernels kernels) {
    Request r = hopper_request(8, 40);
    r.state_bits = 32;
    r.kernels = kernels;
    const auto planned = make(model, r);
    std::set<std::pair<OpKind, Peak>> found;
    for (const auto* ops : {&planned->graph.ops, &planned->graph.gradient_ops})
      for (const Op& op : *ops)
        if (op.kind == OpKind::attention || op.kind == OpKind::attention_gradient)
          found.emplace(op.kind, planned->graph.peak_of(op));
    return found;
  };
  const auto model = open("smollm-135m"), small = open(small_llama());
  const auto dropped =
      open(R"({"model_type": "gpt2", "vocab_size": 61, "n_positions": 40, "n_embd": 256, "n_layer": 2, )"
           R"("n_head": 2})");
  using Found = std::set<std::pair<OpKind, Peak>>;
  EXPECT_EQ(peaks(*model, Kernels::wgmma),
            (Found{{OpKind::attention, Peak::wgmma}, {OpKind::attention_gradient, Peak::wgmma}}));
  EXPECT_EQ(peaks(*dropped, Kernels::wgmma),
            (Found{{OpKind::attention, Peak::wgmma}, {OpKind::attention_gradient, Peak::mma}}));
  for (const auto& [of, kernels] : {std::pair{model, Kernels::tensor}, {small, Kernels::wgmma}})
    EXPECT_EQ(peaks(*of, kernels),
              (Found{{OpKind::attention, Peak::mma}, {OpKind::attention_gradient, Peak::mma}}));
}

// cuDNN's gradient keeps scores: more for longer samples. If they do not fit, our own attention is offered.
TEST(Price, OfTheLibrarysAttention) {
  const auto model = open("smollm-135m");
  Request r = hopper_request(8, 2048);
  r.state_bits = 32;
  const auto own = make(*model, r);
  r.attention = Attention::cudnn;
  const auto library = make(*model, r);
  EXPECT_LT(library->plan.step_picoseconds, own->plan.step_picoseconds);
  EXPECT_GT(library->plan.minimum_bytes,
            std::max(own->plan.minimum_bytes, library->plan.bytes.reserve + uint64_t{2} * 9 * 2048 * 2048));
  const auto read = Planned::load(*model, library->json);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ((*read)->plan.numerics.attention, Attention::cudnn);
  r.memory_bytes = own->plan.minimum_bytes;
  const auto tight = Planned::make(*model, r);
  ASSERT_TRUE(tight) << tight.error().message;
  ASSERT_FALSE((*tight)->plan.fits);
  EXPECT_TRUE(std::any_of((*tight)->plan.relaxations.begin(), (*tight)->plan.relaxations.end(),
                          [](const Relaxation& x) { return x.change == "attention own"; }));

  const auto refusal = [&](const auto& change) {
    Request other = request(8, 256);
    other.device = "h100";
    other.precision = Precision::bf16;
    other.attention = Attention::cudnn;
    change(other);
    const auto refused = Planned::make(*model, other);
    return refused ? std::string() : refused.error().message;
  };
  EXPECT_EQ(refusal([](Request&) {}), "");
  EXPECT_NE(refusal([](Request& o) { o.precision = Precision::fp32; }).find("16-bit precision and a GPU"),
            std::string::npos);
  EXPECT_NE(refusal([](Request& o) { o.device = "cpu"; }).find("16-bit precision and a GPU"),
            std::string::npos);
  EXPECT_NE(refusal([](Request& o) { o.inputs.positions = true; }).find("documents"), std::string::npos);
}

// GPT-2 124M on an H100: the launches of a micro-step, as tests/launches.h declares them and tests/simt
// counts them.
TEST(Price, LaunchesOfAMicroStep) {
  const auto model = open("gpt2");
  Request r = hopper_request(512, 1024);
  r.state_bits = 32;
  for (Kernels kernels : {Kernels::tensor, Kernels::wgmma}) {
    r.kernels = kernels;
    const auto planned = make(*model, r);
    Decisions d = planned->plan.decisions;
    d.loss_chunks = 16;
    const Program micro = build_micro(planned->graph, planned->programs.arena, d, d.micro_batch, 0, true);
    EXPECT_LE(launches_of(planned->graph, micro, 132), 300);
  }
}

// Kernels without the tensor cores compute at the fp32 peak.
TEST(Price, OfPortableKernels) {
  const auto model = open("gpt2");
  Request r = request(8, 1024);
  r.device = "a100-80gb";
  r.precision = Precision::bf16;
  const auto tensor = make(*model, r);
  r.kernels = Kernels::portable;
  const auto portable = make(*model, r);
  EXPECT_GT(portable->plan.step_picoseconds, 3 * tensor->plan.step_picoseconds);
  r.precision = Precision::fp32;
  EXPECT_LT(portable->plan.step_picoseconds, make(*model, r)->plan.step_picoseconds) << "less memory to read";

  r.kernels = {};  // a change to 16 bits is priced with the kernels that it would run on
  Request in_bf16 = r;
  in_bf16.precision = Precision::bf16;
  r.memory_bytes = make(*model, in_bf16)->plan.minimum_bytes;
  r.keep = keep_optimizer | keep_clipping;
  const auto none = make(*model, r);
  const auto it = std::find_if(none->plan.relaxations.begin(), none->plan.relaxations.end(),
                               [](const Relaxation& x) { return x.change == "precision bf16"; });
  ASSERT_NE(it, none->plan.relaxations.end());
  EXPECT_LT(it->costs_fraction, -0.7);
}

}  // namespace
}  // namespace stw
