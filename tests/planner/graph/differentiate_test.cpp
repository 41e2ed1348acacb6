#include "planner/graph/differentiate.h"

#include <algorithm>

#include "planner/graph/update.h"
#include "planner/program/inference.h"
#include "planner/program/verify.h"
#include "tests/planner/small_graphs.h"

namespace stw {
namespace {

using namespace testing_tools;

Graph forward_graph(const std::string& json) {
  const ModelConfig config = config_of(json);
  return *architecture_of(config).build(config, 33, Format::f32, {});
}

// Freezes the parameters for which the predicate is true, then completes the graph.
template <class F>
Graph with_frozen(const std::string& json, const F& is_frozen) {
  Graph g = forward_graph(json);
  for (Tensor& t : g.tensors)
    if (t.role == Role::parameter && is_frozen(t.name)) t.trainable = false;
  differentiate(g);
  add_update(g, {});
  add_inference(g);
  add_transfers(g);
  return g;
}

void expect_plannable(const Graph& g) {
  for (uint32_t saved : {0u, ~0u, 5u}) {
    const Programs programs = make_programs(g, uniform_decisions(g, saved), 5, 2, 64);
    for (const Program* p : programs.all()) {
      const Status status = verify(g, programs.arena, *p, programs.arena_bytes);
      EXPECT_TRUE(status) << status.error().message;
    }
  }
}

bool has_gradient(const Graph& g, const std::string& name) {
  return std::any_of(g.gradients.begin(), g.gradients.end(),
                     [&](const ParameterGradient& p) { return g.at(p.parameter).name == name; });
}

TEST(Differentiate, EveryTrainableParameterHasAGradientOfItsShape) {
  for (const Graph& g : small_graphs()) {
    for (const ParameterGradient& p : g.gradients) {
      EXPECT_EQ(g.at(p.gradient).shape, g.at(p.parameter).shape);
      EXPECT_EQ(g.at(p.gradient).format, Format::f32);
      EXPECT_TRUE(g.owns_bytes(p.parameter));
    }
    for (int t = 0; t < static_cast<int>(g.tensors.size()); ++t)
      if (g.owns_bytes(t)) { EXPECT_EQ(has_gradient(g, g.at(t).name), g.at(t).trainable) << g.at(t).name; }
  }
}

// Embedding and head share a tensor. It has two gradient buffers, the earlier op's first, and both are in the
// update.
TEST(Differentiate, TiedHeadHasTwoBuffersInOpOrder) {
  for (const std::string& json : {small_gpt2(), small_qwen2()}) {
    const Graph g = graph_of(json);
    std::vector<int> buffers;
    for (const ParameterGradient& p : g.gradients)
      if (g.at(p.parameter).name == "transformer.wte.weight" ||
          g.at(p.parameter).name == "model.embed_tokens.weight")
        buffers.push_back(p.gradient);
    ASSERT_EQ(buffers.size(), 2u);
    auto writer = [&](int gradient) {
      for (const Op& op : g.gradient_ops)
        if (std::count(op.outputs.begin(), op.outputs.end(), gradient)) return op.kind;
      return OpKind::add;
    };
    EXPECT_EQ(writer(buffers[0]), OpKind::embedding_gradient);
    EXPECT_EQ(writer(buffers[1]), OpKind::linear_weight_gradient);
    int sums = 0, updates = 0;
    for (const Op& op : g.update_ops)
      if (op.inputs == buffers) (op.kind == OpKind::square_sum ? sums : updates) += 1;
    EXPECT_EQ(sums, 1);
    EXPECT_EQ(updates, 1);
  }
  const Graph untied = graph_of(small_llama());
  EXPECT_EQ(std::count_if(untied.gradients.begin(), untied.gradients.end(),
                          [&](const ParameterGradient& p) {
                            return untied.at(p.parameter).shape[0] == small_vocabulary;
                          }),
            2);
}

TEST(Differentiate, FrozenParametersHaveNeitherGradientNorState) {
  const Graph g = with_frozen(small_llama(), [](const std::string& name) {
    return name.find("k_proj") != std::string::npos || name.find("norm") != std::string::npos;
  });
  for (int t = 0; t < static_cast<int>(g.tensors.size()); ++t) {
    if (!g.owns_bytes(t)) continue;
    EXPECT_EQ(has_gradient(g, g.at(t).name), g.at(t).trainable) << g.at(t).name;
    const bool updated = std::any_of(g.update_ops.begin(), g.update_ops.end(), [&](const Op& op) {
      return op.kind == OpKind::adamw && op.outputs[0] == t;
    });
    EXPECT_EQ(updated, g.at(t).trainable) << g.at(t).name;
  }
  EXPECT_LT(g.trainable_count(), g.parameter_count());
  expect_plannable(g);
}

// The backward pass stops below the lowest trainable parameter.
TEST(Differentiate, NothingRunsBelowTheLowestTrainableParameter) {
  for (const std::string& json : {small_llama(), small_gpt2("0.1")}) {
    const Graph g = with_frozen(json, [](const std::string& name) {
      return name.find("embed_tokens") != std::string::npos || name.find("wte") != std::string::npos ||
             name.find("wpe") != std::string::npos || name.find("layers.0.") != std::string::npos ||
             name.find(".h.0.") != std::string::npos;
    });
    for (const Segment& s : g.segments) {
      if (s.kind == SegmentKind::embedding || s.block == 0) {
        EXPECT_EQ(s.gradient_op_count, 0);
      } else {
        EXPECT_GT(s.gradient_op_count, 0);
      }
    }
    // The second block needs no gradient of its input.
    for (const Op& op : g.gradient_ops)
      if (op.kind == OpKind::norm_gradient && op.segment == 2 && op.inputs[0] == g.segments[2].inputs[0]) {
        EXPECT_EQ(op.outputs[0], -1);
      }
    expect_plannable(g);
  }
  const Graph head_only =
      with_frozen(small_llama(), [](const std::string& name) { return name != "lm_head.weight"; });
  ASSERT_EQ(head_only.gradients.size(), 1u);
  EXPECT_EQ(head_only.gradient_ops.size(), 2u);  // the loss, and the weight of the head
  expect_plannable(head_only);
}

TEST(Differentiate, OnlyTheHeadIsChunked) {
  for (const Graph& g : small_graphs())
    for (const Tensor& t : g.tensors)
      if (t.chunked) { EXPECT_TRUE(t.name == "logits" || t.name == "dlogits") << t.name; }
}

// Tensor cores take products of 16-bit values that begin at multiples of 16 bytes. All products of a 16-bit
// model satisfy this, including the head's.
TEST(Differentiate, ProductsAreOfTheComputeFormat) {
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
    Numerics n;
    n.precision = precision;
    for (const std::string& config : testing_tools::small_models()) {
      const Graph g = build_model(testing_tools::config_of(config), 12, n);
      const auto check = [&](const Op& op, int operands) {
        for (int k = 0; k < operands; ++k) {
          const Tensor& t = g.at(op.inputs[k]);
          EXPECT_EQ(t.format, compute_format(precision)) << t.name;
          EXPECT_EQ(static_cast<uint64_t>(t.stride()) * element_bytes(t.format) % 16, 0u) << t.name;
        }
      };
      for (const Op& op : g.ops)
        if (op.kind == OpKind::linear)
          check({op.kind,
                 {},
                 {op.inputs[in(OpKind::linear, "x")], op.inputs[in(OpKind::linear, "weight")]},
                 {},
                 -1},
                2);
      for (const Op& op : g.gradient_ops) {
        if (op.kind == OpKind::linear_input_gradient)
          check({op.kind, {}, {op.inputs[0], op.inputs[2]}, {}, -1}, 2);
        if (op.kind == OpKind::linear_weight_gradient) check(op, 2);
      }
    }
  }
}

}  // namespace
}  // namespace stw
